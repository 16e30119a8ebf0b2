"""FOLD that takes each next event of a group as long as it compares with the last one: where an instance ends depends
on its last event only, so it is computed once for each event and not for each instance.

Positions are of the right stream by group and end; no two events of a group have one end, and all are points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.algebra.kernels.arguments import NEXT_ROW, USED
from trendlake.cep_core.algebra.kernels.pairs import DONE, MORE_ROWS, after
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed


class Keys(NamedTuple):
    """The values of a stream's events that comparisons read, as whole numbers: (rows, comparisons); and whether any is
    NULL."""

    words: Int64s
    missing: Bools


class Order(NamedTuple):
    """Of each comparison, whether the next key must be the greater one (else the lesser), and whether it may not be
    equal."""

    rising: Bools
    strict: Bools


class Stream(NamedTuple):
    """The right stream by position: ends (microseconds), groups, where each group begins, and the last event of an
    instance that has this one."""

    ends: Int64s
    groups: Int64s
    bounds: Int64s
    last: Int64s


class Left(NamedTuple):
    """The left stream by row: its group (-1: looks nowhere), start and end."""

    groups: Int64s
    start: Int64s
    end: Int64s


@compiled.expanded
def _follows(words: Int64s, missing: Bools, p: int, need: Int64s, lacking: Bools, row: int, order: Order) -> bool:
    """Whether each key at p compares with that of `row` as it must."""
    if missing[p] or lacking[row]:
        return False
    for k in range(order.strict.shape[0]):
        a, b = need[row, k], words[p, k]
        if a == b:
            if order.strict[k]:
                return False
        elif (b > a) != order.rising[k]:
            return False
    return True


@compiled.entry
def last_of_runs(keys: Keys, now: Keys, order: Order, groups: Int64s) -> Int64s:
    """By position the last event of an instance that goes on from there. `now`: the keys of an event as the last one,
    `keys` as the next one."""
    keys, now, order, groups = borrowed(keys), borrowed(now), borrowed(order), borrowed(groups)
    last = np.empty(groups.shape[0], np.int64)
    for p in range(groups.shape[0] - 1, -1, -1):
        last[p] = p
        goes_on = p + 1 < groups.shape[0] and groups[p + 1] == groups[p]
        if goes_on and _follows(keys.words, keys.missing, p + 1, now.words, now.missing, p, order):
            last[p] = last[p + 1]
    return last


@compiled.entry
def follow_runs(
    left: Left,
    first: Keys,
    stream: Stream,
    keys: Keys,
    order: Order,
    longest: int,
    near: Int64s,
    out_left: Int64s,
    out_right: Int64s,
    state: Int64s,
) -> int:
    """Fills `out_left`, rows of R, and `out_right`, positions in S, an instance each. `longest`: the duration that one
    may have. `near` (a number a group): a place near which to look first; begins as the groups do."""
    left, first, stream = borrowed(left), borrowed(first), borrowed(stream)
    keys, order = borrowed(keys), borrowed(order)
    near, out_left, out_right, state = borrowed(near), borrowed(out_left), borrowed(out_right), borrowed(state)
    used = state[USED]
    for r in range(state[NEXT_ROW], left.groups.shape[0]):
        group = left.groups[r]
        if group < 0:
            continue
        low, high, end = stream.bounds[group], stream.bounds[group + 1], left.end[r]
        p = near[group]
        back = 1
        while p > low and stream.ends[p - 1] > end:
            p = max(low, p - back)
            back <<= 1
        if p < high and stream.ends[p] <= end:
            p = after(stream.ends, p, high, end)
        near[group] = p
        if p >= high or not _follows(keys.words, keys.missing, p, first.words, first.missing, r, order):
            continue
        latest, stop = left.start[r] + longest, stream.last[p]
        if used + stop - p >= out_left.shape[0]:
            state[NEXT_ROW], state[USED] = r, used
            return MORE_ROWS
        while p <= stop and stream.ends[p] <= latest:
            out_left[used], out_right[used] = r, p
            used += 1
            p += 1
    state[USED] = used
    return DONE
