"""The arguments of the kernels of kind trends: named tuples of arrays, which numba passes as they are.

Sizes: T tasks, n events sorted by (partition, time), S states, G guards, L layers, K numbers a row, M extrema.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core.events.array_types import AnyArray, Bools, Float64s, Int32s, Int64s, UInt64s
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates


class Tasks(NamedTuple):
    """T windows of partitions: events [lo, hi) of the slice in [ws, we) microseconds; `window` is its index j."""

    lo: Int64s
    hi: Int64s
    window: Int64s
    ws: Int64s
    we: Int64s

    def subset(self, chosen: Int64s | Bools) -> Tasks:
        return Tasks(self.lo[chosen], self.hi[chosen], self.window[chosen], self.ws[chosen], self.we[chosen])


class Events(NamedTuple):
    """n each: microseconds; bit b: may be an event of variable b; the partition."""

    time: Int64s
    ok: UInt64s
    partition: Int32s


class Nfa(NamedTuple):
    """S: the `variable` of a state. S + 1 each: `start_of`, `into_of`, `accept_of` and `store_of` say which rows of the
    table next to them are a state's; `conditions` and `into` have the same rows. `columns` names the columns."""

    variable: Int64s
    start_of: Int64s
    start: Int64s
    into_of: Int64s
    into: Int64s
    conditions: Int64s
    accept_of: Int64s
    accept: Int64s
    store_of: Int64s
    store: Int64s


class Steps(NamedTuple):
    """The steps an event may do. By variable, `states_of`: ranges into `states`, those that its events may take. S
    each: a trend may begin, may end here. Of state q, into[into_of[q] : into_of[q + 1]]: source states (of `linear`),
    or the stores that it reads; and rows store_of[q] to store_of[q + 1] of `store` (as in `Nfa`), those it adds to."""

    states_of: Int64s
    states: Int64s
    begins: Bools
    ends: Bools
    into_of: Int64s
    into: Int64s
    store_of: Int64s
    store: Int64s


class Guards(NamedTuple):
    """`lists`: guards, list after list. (G, n) each: `bounds`, the latest start of a match of the NOT that has ended;
    `after`, the end of the first one later."""

    lists: Int64s
    bounds: Int64s
    after: Int64s


class Ranks(NamedTuple):
    """(L, n) each, see `cep_core.trends.run.ranks`: ranks and segments of the earlier event, limits and segments of the
    later one. -1 as a segment: not in the layer (NULL, or of another variable)."""

    rank: Int32s
    limit: Int32s
    seg_v: Int32s
    seg_w: Int32s


class Ranges(NamedTuple):
    """Layers whose inequalities are a range, see `ranges`. (L): `row`, its row in `floor` (-1: no such layer), and
    `of_earlier`: the range is the earlier event's. The one event has a rank, in `Ranks.rank`; the other asks for
    `floor` (R, n) to `Ranks.limit`, which is not among them."""

    row: Int64s
    of_earlier: Bools
    floor: Int32s


class Divides(NamedTuple):
    """Layers with two inequalities: int32 (2, D, n) ranks and limits of the first and the second one, over all
    segments, the lower segment first; int32 (D, n) segments as in `Ranks`."""

    rank: Int32s
    limit: Int32s
    seg_v: Int32s
    seg_w: Int32s


class Halves(NamedTuple):
    """`halves` (H, 2): states with predecessors, each with a divide. The results of `divide_and_conquer.conquer` for an
    event are in row (event - first) * H + half: `pending`, `pending_ext`, and whether there is any (`waiting`).
    `branch`, `branch_ext`, `branch_stamp`: nodes of its Fenwick tree. `edges`: where blocks begin. For
    events from the task's first on: `words` (D, 4, events), columns `HAS_FIRST` to `ASKS_SECOND`, each sorted half by
    half; `place` and `spare` (events): work space."""

    halves: Int64s
    pending: AnyArray
    pending_ext: Float64s
    waiting: Bools
    branch: AnyArray
    branch_ext: Float64s
    branch_stamp: Int64s
    edges: Int64s
    words: Int64s
    place: Int64s
    spare: Int64s


class Fenwick(NamedTuple):
    """Of a segment: its first node and how many ranks it has."""

    base: Int64s
    size: Int64s


class Blocks(NamedTuple):
    """By segment, see `prefix_sums`: the first node of each level (.., levels), how many levels, their blocks' widths
    (.., levels)."""

    roots: Int64s
    height: Int64s
    width: Int64s


class Links(NamedTuple):
    """`following` (links, n): the index that an event may be followed at, -1 for none. `link_of` (S + 1): ranges of
    `link`, a state's leading links; `lists`: links of transitions, list after list."""

    following: Int64s
    link_of: Int64s
    link: Int64s
    lists: Int64s


class Predecessors(NamedTuple):
    """The data by which `general` finds the predecessors of a transition: stores, divides, conditions,
    links."""

    ranks: Ranks
    ranges: Ranges
    fenwick: Fenwick
    halves: Halves
    divides: Divides
    predicates: Predicates
    links: Links


STARTS, EACH, SPAN = -1, -2, -3
"""In place of a variable, in `Weights`: over events that begin a trend; over all of a trend's events; once a trend, the
last event's number less that of the first."""

LARGEST, ADDED, LATEST = range(3)
"""The aggregates of a trend whose largest over trends is an extremum: the largest number of its events; their sum; the
number of its first event less that of its last."""


class Weights(NamedTuple):
    """Aggregates of a pass: sum k adds `weights[k]` for each event of variable `variable[k]` (row 0: trends, unused),
    or as `EACH` and `SPAN` say; extremum m is the largest over trends of what `how[m]` makes of `extremes[m]`, over
    events of variable `extreme[m]`, or as `STARTS` and `EACH` say. (K), (K, n), (M), (M, n; -inf where NULL), (M)."""

    variable: Int64s
    weights: Float64s
    extreme: Int64s
    extremes: Float64s
    how: Int64s

    @property
    def spans(self) -> bool:
        """Whether an aggregate reads a trend's first and last event."""
        return bool((self.variable == SPAN).any() or (self.how == LATEST).any())

    def without_extremes(self) -> Weights:
        none = np.zeros(0, np.int64)
        return Weights(self.variable, self.weights, none, np.zeros((0, self.weights.shape[1])), none)


class Work(NamedTuple):
    """`values`, `ext`: what ends with an event in a state, (events * S + 1, K in a tier) and (.., M). `node`,
    `node_ext`, `stamp`: the stores' nodes. `active` (S, events), `active_n` (S): events with a row. `head` (events),
    `link` (rows, slots): lists of rows by the event that may follow, of numbers row * slots + slot; the first link of a
    row is -2 where there is no trend."""

    values: AnyArray
    ext: Float64s
    node: AnyArray
    node_ext: Float64s
    stamp: Int64s
    active: Int64s
    active_n: Int64s
    head: Int64s
    link: Int64s


class Results(NamedTuple):
    """By task: `sums` (T, K in a tier), `extremes` (T, M), `hit`: whether there is a trend, `large`: given up, as a
    count is too large for the tier. `emit` (n, or empty): extreme 0 of what ends at each event. `reach` (n, S; or
    none): extreme 0 of what leads to each event in each state; counts may then be infinite, and no task is given up.
    """

    sums: AnyArray
    extremes: Float64s
    hit: Bools
    large: Bools
    emit: Float64s
    reach: Float64s
