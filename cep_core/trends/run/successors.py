"""Where the event that follows each event may stand, for selections that do not skip at will."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.trends.compile.predecessors import Layer, Method
from trendlake.cep_core.trends.kernels.arguments import Ranks
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates
from trendlake.cep_core.trends.kernels.successors import first_true, nearest_later
from trendlake.cep_core.trends.run.kernel_tables import Layout
from trendlake.cep_core.trends.run.ranks import make_layers
from trendlake.cep_core.trends.run.sorted_rows import Slice, partition_ends


def make_links(slice_: Slice, layout: Layout, predicates: Predicates) -> Int64s:
    """(layout.links, n): where the event that follows each event may stand, -1 nowhere.

    skip_till_next_match: the first position of the time of the next event that could follow, by what may follow at the
    event's position in the pattern. Contiguous selections: the position of the event just after.
    """
    plan = slice_.events.plan
    n = slice_.length
    if plan.select != "skip_till_next_match":
        position = np.full(slice_.events.length, -1, dtype=np.int64)
        position[slice_.rows] = np.arange(n)
        after = slice_.events.successors()[slice_.rows]
        next_row = np.where(after >= 0, position[after], -1)
        return np.where((next_row >= 0) & (slice_.partition[next_row] == slice_.partition), next_row, -1).reshape(1, n)
    following = np.full((len(layout.links), n), -1, dtype=np.int64)
    ends = partition_ends(slice_.partition)
    comparisons = programs = 0
    pairs: list[tuple[int, ...]] = []
    conditions: list[tuple[int, ...]] = []
    for v, w in layout.tried:
        pair = plan.pair(v, w)
        ranges = (comparisons, comparisons + len(pair.splits), programs, programs + len(pair.mixed))
        comparisons, programs = ranges[1], ranges[3]
        owners = [number for number, (earlier, names) in enumerate(layout.links) if earlier == v and w in names]
        if pair.method in (Method.SCAN, Method.RANGE, Method.DIVIDE):
            pairs += [(plan.variables.index(v), plan.variables.index(w), number) for number in owners]
            conditions += [ranges] * len(owners)
            continue
        layers = make_layers(slice_, (Layer(v, w),), (np.zeros((0, n), np.int64),) * 3)
        ranks = Ranks(*(table[0] for table in layers.ranks))
        held = np.bincount(ranks.seg_w[ranks.seg_w >= 0], minlength=layers.segments[0])
        base = np.append(0, np.cumsum(held))
        nearest = np.full(n, -1, dtype=np.int64)
        nearest_later(slice_.time, ends, ranks, base, plan.windows.longest, nearest)
        for number in owners:
            sooner = (nearest >= 0) & ((following[number] < 0) | (nearest < following[number]))
            following[number, sooner] = nearest[sooner]
    if pairs:
        tables = np.array(pairs, np.int64), np.array(conditions, np.int64)
        first_true(slice_.in_kernels, ends, *tables, predicates, plan.windows.longest, following)
    return following
