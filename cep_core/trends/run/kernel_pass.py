"""One pass of the kernel over a slice: arrays made once, then run in the tier that is asked for."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.errors import WindowTooLargeError
from trendlake.cep_core.events.array_types import Float64s, UInt64s
from trendlake.cep_core.trends.compile.dfa import Automaton
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels import general as kernel
from trendlake.cep_core.trends.kernels.arguments import Guards, Halves, Links, Predecessors, Tasks, Weights, Work
from trendlake.cep_core.trends.kernels.divide_and_conquer import BLOCK
from trendlake.cep_core.trends.kernels.row_order import longest_tie
from trendlake.cep_core.trends.run.fast_path import LEVELS, Direct, applies, completed, results_of
from trendlake.cep_core.trends.run.kernel_tables import layout, store_table
from trendlake.cep_core.trends.run.ranks import Guarded, make_divides, make_layers
from trendlake.cep_core.trends.run.sorted_rows import Slice, check_alarm, make_predicates, partition_ends
from trendlake.cep_core.trends.run.successors import make_links
from trendlake.cep_core.trends.run.window_tasks import WIDTH, Sums, number_rows

MAX_BYTES = 8 << 30
"""Work memory of one pass; a larger window is refused with an error."""


class Pass:
    """The kernel's arrays for one automaton over one slice. `guards`: see `Guards.at`. `selects`: the plan's selection
    is one that links events to those that may follow, and asked of these trends (it is not of a NOT's). `whole`: only
    trends that begin with the first event of a task and end with its last, by a contiguous selection."""

    def __init__(
        self, slice_: Slice, automaton: Automaton, guards: Guarded, *, selects: bool, whole: bool = False
    ) -> None:
        plan = slice_.events.plan
        self.slice = slice_
        self.layout = layout(plan, automaton, selects)
        self.linking = kernel.ANY
        if selects:
            self.linking = kernel.NEXT if plan.select == "skip_till_next_match" else kernel.CONTIGUOUS
        if whole:
            self.linking = kernel.WHOLE
        self.layers = make_layers(slice_, self.layout.layers, guards)
        self.divides = make_divides(slice_, self.layout.divides, guards)
        self.predicates = make_predicates(slice_, self.layout.tried)
        self.following = np.zeros((1, 1), np.int64)
        if selects:
            self.following = make_links(slice_, self.layout, self.predicates)
        self.bounds, _, self.after = guards
        self.widest = int(longest_tie(slice_.time, slice_.partition))
        self.store_of, self.store_t, self.nodes = store_table(self.layout, self.layers.nodes)
        self.direct: Direct | None = None
        if not selects and applies(automaton, self.layout, self.layers):
            self.direct = Direct(slice_, automaton, self.layout, self.layers, guards)

    def run(
        self, tasks: Tasks, weights: Weights, tier: str, emit: Float64s | None = None, reach: Float64s | None = None
    ) -> Sums:
        """One pass in a tier (`cep_core.trends.kernels.numbers`); asked for E it may answer in D. `emit` (n): to be
        set to the largest extreme 0 of what ends at each event; not in tier F, which may end early. `reach` (n, S): to
        be set to extreme 0 of what leads to each event in each state, in tier F; counts then have no meaning. Raises
        WindowTooLargeError when the rows would not fit."""
        if self.direct is not None:
            check_memory(tasks, self.direct.bytes(tier, weights))
            lanes = self._lanes(weights) if tier in ("F", "U") and emit is None and reach is None else 0
            if lanes:
                store = (self.store_of, self.store_t, self.nodes)
                return self.direct.slide(
                    tasks, partition_ends(self.slice.partition), self.widest, lanes, store, weights, tier
                )
            return self.direct.run(tasks, self.widest, weights, tier, emit, reach)
        tier = "D" if tier == "E" else tier
        states = len(self.layout.nfa.variable)
        longest = int((tasks.hi - tasks.lo).max(initial=0))
        events = longest if self.layout.keep else self.widest
        numbers, extrema = len(weights.variable), len(weights.extreme)
        width = 8 * (WIDTH[tier] * numbers + extrema)
        parts, divides = len(self.layout.halves), len(self.layout.divides)
        halved = longest if parts else 0
        waiting = longest * parts
        links = self.layout.slots
        check_memory(
            tasks,
            (events * states + self.nodes + waiting + halved) * width
            + longest * states * 8 * (1 + links)
            + halved * 8 * (2 + 4 * divides),
        )
        rows = events * states + 1
        keep_events = longest if self.layout.keep else 0
        halves = Halves(
            halves=np.array(self.layout.halves, np.int64).reshape(parts, 2),
            pending=number_rows(tier, waiting, numbers),
            pending_ext=np.zeros((waiting, extrema)),
            waiting=np.zeros(waiting, np.bool_),
            branch=number_rows(tier, halved, numbers),
            branch_ext=np.zeros((halved, extrema)),
            branch_stamp=np.zeros(halved, np.int64),
            edges=np.zeros(longest + 2 if parts else 0, np.int64),
            words=np.zeros((divides, 4, halved), np.int64),
            place=np.zeros(halved, np.int64),
            spare=np.zeros(halved, np.int64),
        )
        work = Work(
            values=number_rows(tier, rows, numbers),
            ext=np.zeros((rows, extrema)),
            node=number_rows(tier, self.nodes, numbers),
            node_ext=np.zeros((self.nodes, extrema)),
            stamp=np.zeros(self.nodes, np.int64),
            active=np.zeros((states, keep_events), np.int64),
            active_n=np.zeros(states, np.int64),
            head=np.zeros(keep_events, np.int64),
            link=np.zeros((rows, links), np.int64),
        )
        link_tables = Links(self.following, self.layout.link_of, self.layout.link, self.layout.link_lists)
        results = results_of(tier, len(tasks.lo), weights, emit, reach)
        kernel.run(
            tasks,
            self.slice.in_kernels,
            self.layout.nfa._replace(store_of=self.store_of, store=self.store_t),
            Guards(self.layout.guards, self.bounds, self.after),
            Predecessors(
                self.layers.ranks,
                self.layers.ranges,
                self.layers.fenwick,
                halves,
                self.divides,
                self.predicates,
                link_tables,
            ),
            weights,
            work,
            self.linking,
            self.layout.keep,
            results,
        )
        check_alarm(self.predicates)
        return completed(results, lambda large: self.run(tasks.subset(large), weights, "D"))

    @property
    def linked(self) -> bool:
        """Whether events are linked to those that may follow."""
        return self.linking != kernel.ANY

    def in_lanes(self, tasks: Tasks, weights: Weights, masks: UInt64s, lanes: int) -> Float64s | None:
        """See `Direct.in_lanes`; None where another kernel is needed. Raises WindowTooLargeError as `run` does."""
        if self.direct is None:
            return None
        check_memory(tasks, self.direct.bytes("F", weights))
        store = (self.store_of, self.store_t, self.nodes)
        return self.direct.in_lanes(tasks, self.widest, masks, lanes, store, weights)

    def first_tier(self, weights: Weights) -> str:
        """The tier to begin with: E where its kernel is as fast (it tells all that F does), else F."""
        if self.direct is not None and (self.direct.shared(weights) or self.direct.linear(self.widest, weights)):
            return "E"
        return "F"

    def roundings(self, tasks: Tasks) -> Float64s:
        """For each task, how many additions at most have rounded what went into its count of trends (float64, T).

        A sum that contains a partial trend is added to at most once an event where it is stored; and where a row reads
        it, once for each transition and level of a tree (twice in a range), or pair that is tried: of linked events
        each is read at one time only, and divide and conquer tries the pairs of a block and builds a tree for each
        halving."""
        n = (tasks.hi - tasks.lo).astype(np.float64)
        states, nfa = len(self.layout.nfa.variable), self.layout.nfa
        into = int(np.diff(nfa.into_of).max(initial=1))
        levels = max(LEVELS, int(self.nodes).bit_length())
        ways = 2.0 if len(self.layers.ranges.floor) else 1.0
        reads: Float64s = np.full(len(n), 2.0 + ways * levels)
        if self.linking != kernel.ANY:
            reads += states * self.layout.slots
        elif ((nfa.into[:, c.STORE] < 0) & (nfa.into[:, c.HALF] < 0)).any():
            reads += n
        elif len(self.layout.halves):
            halvings = np.ceil(np.log2(n / BLOCK + 2))
            first = np.log2(BLOCK + self.widest) + 1.0  # levels of the smallest tree; the next one has one more
            reads += BLOCK + self.widest + halvings * ((halvings - 1.0) / 2.0 + first)
        size: Float64s = (n + 1) * (4 + 2 * states + into * reads) + 8 * (states + 1) ** 2
        return size

    def _lanes(self, weights: Weights) -> int:
        if self.direct is None or len(weights.extreme) or weights.spans:
            return 0
        return self.direct.lanes(len(weights.variable), self.nodes)


def check_memory(tasks: Tasks, needed: int) -> None:
    """Raises WindowTooLargeError where so many bytes are too many."""
    if needed > MAX_BYTES:
        longest = int((tasks.hi - tasks.lo).max(initial=0))
        raise WindowTooLargeError(
            f"a window of {longest:,} events needs {needed / 2**30:.1f} GiB, more than {MAX_BYTES / 2**30:.0f}",
            hint="make `within` shorter, add an equivalence, or filter events in `where`",
        )
