"""Aggregates of groups of rows: group g is the rows [bounds[g], bounds[g + 1])."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s


@compiled.entry
def counted(null: Bools, bounds: Int64s) -> Int64s:
    """Rows of each group that are not NULL."""
    counts = np.zeros(bounds.shape[0] - 1, np.int64)
    for g in range(counts.shape[0]):
        for i in range(bounds[g], bounds[g + 1]):
            counts[g] += not null[i]
    return counts


@compiled.entry
def extreme(keys: Int64s, null: Bools, bounds: Int64s, greatest: bool) -> Int64s:
    """The row of the least or greatest key of each group; any row, where all are NULL."""
    best = np.zeros(bounds.shape[0] - 1, np.int64)
    for g in range(best.shape[0]):
        at = -1
        for i in range(bounds[g], bounds[g + 1]):
            if not null[i] and (at < 0 or (keys[i] > keys[at] if greatest else keys[i] < keys[at])):
                at = i
        best[g] = max(at, bounds[g])
    return best


@compiled.entry
def extreme_by(by: Int64s, by_null: Bools, keys: Int64s, null: Bools, bounds: Int64s, greatest: bool) -> Int64s:
    """Of each group, of the rows whose `by` is greatest (least), that of the least key that is not NULL; -1: none."""
    best = np.zeros(bounds.shape[0] - 1, np.int64)
    for g in range(best.shape[0]):
        top, at, met = np.int64(0), -1, False
        for i in range(bounds[g], bounds[g + 1]):
            if by_null[i]:
                continue
            if not met or (by[i] > top if greatest else by[i] < top):
                top, at, met = by[i], -1, True
            if by[i] == top and not null[i] and (at < 0 or keys[i] < keys[at]):
                at = i
        best[g] = at
    return best


@compiled.entry
def whole_sums(values: Int64s, null: Bools, bounds: Int64s) -> tuple[Int64s, Int64s]:
    """Exact sums of whole numbers as (high, low): high * 2^32 + low. No group has 2^31 rows."""
    high, low = np.zeros(bounds.shape[0] - 1, np.int64), np.zeros(bounds.shape[0] - 1, np.int64)
    for g in range(high.shape[0]):
        for i in range(bounds[g], bounds[g + 1]):
            if not null[i]:
                high[g] += values[i] >> 32
                low[g] += values[i] & 0xFFFFFFFF
    return high, low


@compiled.entry
def short_sums(values: Float64s, null: Bools, bounds: Int64s) -> Float64s:
    """Sums of doubles, right for groups of one and two."""
    sums = np.zeros(bounds.shape[0] - 1, np.float64)
    for g in range(sums.shape[0]):
        for i in range(bounds[g], bounds[g + 1]):
            if not null[i]:
                sums[g] += values[i]
    return sums
