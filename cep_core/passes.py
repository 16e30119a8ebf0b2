"""One pass of the kernel over a slice: arrays made once, then run in the tier that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cep_core.automaton import Automaton
from cep_core.direct import Direct, applies
from cep_core.errors import WindowTooLargeError
from cep_core.kernels import trends as kernel
from cep_core.layout import layout, store_table
from cep_core.slices import Slice, check_alarm, make_layers, make_links, make_predicates, partition_ends
from cep_core.windows import Windows

Array = Any

MAX_BYTES = 8 << 30
"""Work memory of one pass; a larger window is refused by name."""

NEVER = kernel.NEVER
ALWAYS = 2**63 - 1


@dataclass(frozen=True)
class Tasks:
    """T windows of partitions: events [lo, hi) of the slice in [ws, we) microseconds; `window` is its index j."""

    lo: Array
    hi: Array
    window: Array
    ws: Array
    we: Array

    def subset(self, chosen: Array) -> Tasks:
        return Tasks(self.lo[chosen], self.hi[chosen], self.window[chosen], self.ws[chosen], self.we[chosen])


def window_tasks(slice_: Slice, windows: Windows, wanted: range | None) -> Tasks:
    """Every (partition, window) of the slice that has an event, in order; only `wanted` windows if given."""
    low, high = (wanted.start, wanted.stop - 1) if wanted is not None else (NEVER, ALWAYS)
    ends = partition_ends(slice_.partition)
    arguments = (slice_.time, ends, windows.within, windows.slide, windows.origin, low, high)
    count = _tasks(*arguments, np.zeros((0, 3), np.int64))
    table = np.zeros((count, 3), np.int64)
    _tasks(*arguments, table)
    start = windows.origin + table[:, 2] * windows.slide
    return Tasks(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), start, start + windows.within)


@njit(cache=True, nogil=True)
def _tasks(time: Array, ends: Array, within: int, slide: int, origin: int, low: int, high: int, out: Array) -> int:
    count = 0
    first = 0
    n = time.shape[0]
    while first < n:
        end = ends[first]
        lo = hi = first
        j = max(low, (time[first] - origin - within) // slide + 1)
        last = min(high, (time[end - 1] - origin) // slide)
        while j <= last:
            start = origin + j * slide
            while lo < end and time[lo] < start:
                lo += 1
            if lo == end:
                break
            if time[lo] >= start + within:
                j = (time[lo] - origin - within) // slide + 1
                continue
            hi = max(hi, lo)
            while hi < end and time[hi] < start + within:
                hi += 1
            if out.shape[0] > 0:
                out[count, 0], out[count, 1], out[count, 2] = lo, hi, j
            count += 1
            j += 1
        first = end
    return count


@dataclass(frozen=True)
class Weights:
    """Aggregates of a pass: sum k adds `weights[k]` for each event of variable `variable[k]` (row 0: trends, unused);
    extremum m is the largest of `extremes[m]` over events of variable `extreme[m]` (-1: over events that begin a
    trend)."""

    variable: Array
    weights: Array
    extreme: Array
    extremes: Array

    def without_extremes(self) -> Weights:
        return Weights(self.variable, self.weights, np.zeros(0, np.int64), np.zeros((0, self.weights.shape[1])))


@dataclass(frozen=True)
class Sums:
    """Results of a pass by task: `sums` (T, K) in its tier, `extremes` (T, M), `hit` (T): whether there is a trend."""

    sums: Array
    extremes: Array
    hit: Array


class Pass:
    """The kernel's arrays for one automaton over one slice. `bounds`, `after`: (G, n), see `guards`. `follows`: the
    (V, W) that may be adjacent, for the plan's selection; None: any match is selected."""

    def __init__(
        self,
        slice_: Slice,
        automaton: Automaton,
        bounds: Array,
        after: Array,
        follows: frozenset[tuple[str, str]] | None,
    ) -> None:
        plan = slice_.events.plan
        self.slice = slice_
        linked = plan.select != "skip_till_any_match" and follows is not None
        pairs = tuple(sorted(follows)) if linked and follows is not None else ()
        self.layout = layout(plan, automaton, linked, pairs)
        self.linking = kernel.ANY
        if linked:
            self.linking = kernel.NEXT if plan.select == "skip_till_next_match" else kernel.CONTIGUOUS
        self.layers = make_layers(slice_, self.layout)
        self.predicates = make_predicates(slice_, self.layout.tried)
        self.following = np.zeros((1, 1), np.int64)
        if linked:
            self.following = make_links(slice_, self.layout, pairs, self.predicates)
        self.bounds, self.after = bounds, after
        self.widest = int(_longest_tie(slice_.time, slice_.partition))
        self.direct: Direct | None = None
        if applies(self.layout, automaton, 0, linked):
            self.direct = Direct(slice_, automaton, self.layout, self.layers)
            if self.direct.bytes_per_number > 64 * slice_.length + (1 << 20):
                self.direct = None
        self.store_of, self.store_t, self.nodes = store_table(self.layout, self.layers.nodes)

    def run(self, tasks: Tasks, weights: Weights, tier: str, emit: Array | None = None) -> Sums:
        """One pass in tier F, U or E (`kernels.numbers`). Raises WindowTooLargeError when the rows would not fit."""
        if tier == "E" and self.direct is not None and not len(weights.extreme):
            numbers = len(weights.variable)
            self._fits(tasks, self.direct.bytes_per_number * numbers)
            sums, hit = self.direct.run(tasks.lo, tasks.hi, self.widest, weights.variable, weights.weights)
            return Sums(sums, np.zeros((len(tasks.lo), 0)), hit)
        if tier == "F" and self.direct is not None and not len(weights.extreme) and emit is None:
            windows = self.slice.events.plan.windows
            lanes = self.direct.lanes(-(-windows.within // windows.slide), len(weights.variable), self.nodes)
            if lanes:
                store = (self.store_of, self.store_t, self.nodes)
                plain, hit = self.direct.slide(
                    (tasks.lo, tasks.hi, tasks.ws, tasks.we), partition_ends(self.slice.partition), self.widest, lanes,
                    store, weights.variable, weights.weights,
                )  # fmt: skip
                return Sums(plain, np.zeros((len(tasks.lo), 0)), hit)
        states = len(self.layout.variable)
        longest = int((tasks.hi - tasks.lo).max(initial=0))
        kept = longest if self.layout.keep else self.widest
        numbers, extrema = len(weights.variable), len(weights.extreme)
        width = (8 if tier == "F" else 16) * numbers + 8 * extrema
        self._fits(tasks, (kept * states + self.nodes) * width + longest * states * 16)
        rows = kept * states + 1
        keep_events = longest if self.layout.keep else 0
        sums = _rows(tier, len(tasks.lo), numbers)
        extremes = np.full((len(tasks.lo), extrema), -np.inf)
        hit = np.zeros(len(tasks.lo), dtype=np.bool_)
        none = np.zeros(0)
        kernel.run(
            tasks.lo, tasks.hi, tasks.ws, tasks.we,
            self.slice.time, self.slice.ok,
            self.layout.variable,
            self.layout.start_of, self.layout.start_t,
            self.layout.into_of, self.layout.into_t,
            self.layout.accept_of, self.layout.accept_t,
            self.layout.guards, self.bounds, self.after,
            self.store_of, self.store_t,
            self.layers.rank, self.layers.limit, self.layers.seg_v, self.layers.seg_w,
            self.layers.seg_base, self.layers.seg_size,
            self.predicates,
            self.linking, self.following,
            weights.variable, weights.weights, weights.extreme, weights.extremes,
            _rows(tier, rows, numbers), np.zeros((rows, extrema)),
            _rows(tier, self.nodes, numbers), np.zeros((self.nodes, extrema)), np.zeros(self.nodes, np.int64),
            np.zeros((states, keep_events), np.int64), np.zeros(states, np.int64),
            np.zeros(keep_events, np.int64), np.zeros(rows, np.int64),
            self.layout.keep,
            sums, extremes, hit, none if emit is None else emit,
        )  # fmt: skip
        check_alarm(self.predicates)
        return Sums(sums, extremes, hit)

    def first_tier(self, weights: Weights) -> str:
        """The tier to begin with: E where its kernels are the fast ones (it tells all that F does), F for the vectors
        of overlapping windows and for the general kernel."""
        if self.direct is None or len(weights.extreme):
            return "F"
        windows = self.slice.events.plan.windows
        overlap = -(-windows.within // windows.slide)
        return "F" if self.direct.lanes(overlap, len(weights.variable), self.nodes) else "E"

    def _fits(self, tasks: Tasks, needed: int) -> None:
        if needed > MAX_BYTES:
            longest = int((tasks.hi - tasks.lo).max(initial=0))
            raise WindowTooLargeError(
                f"a window of {longest:,} events needs {needed / 2**30:.1f} GiB, more than {MAX_BYTES / 2**30:.0f}",
                hint="make `within` shorter, add an equivalence, or filter events in `where`",
            )


def _rows(tier: str, count: int, numbers: int) -> Array:
    if tier == "F":
        return np.zeros((count, numbers))
    return np.zeros((count, numbers, 2), dtype=np.uint64 if tier == "U" else np.float64)


@njit(cache=True, nogil=True)
def _longest_tie(time: Array, partition: Array) -> int:
    """The most events of one partition that share a time."""
    best = run = 0
    for i in range(time.shape[0]):
        run = run + 1 if i and time[i] == time[i - 1] and partition[i] == partition[i - 1] else 1
        best = max(best, run)
    return best
