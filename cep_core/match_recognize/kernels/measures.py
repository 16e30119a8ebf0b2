"""Measures of the rows of matches so far, compiled."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.match_recognize.kernels.exact import carried, rounded, words_of


@compiled.entry
def first_best(codes: Int64s, known: Bools, begin: Int64s, until: Int64s) -> Int64s:
    """From each begin to each end the first row that has the greatest code of those that are known; -1 for none. Points
    of one match are asked one after the other, as by `sums`."""
    result = np.empty(len(begin), np.int64)
    at, of, best = 0, -1, -1
    for point in range(len(begin)):
        if begin[point] != of or until[point] < at:
            at = of = begin[point]
            best = -1
        while at < until[point]:
            if known[at] and (best < 0 or codes[at] > codes[best]):
                best = at
            at += 1
        result[point] = best
    return result


@compiled.entry
def row_taken(mapped: Bools, begin: Int64s, until: Int64s, offset: int) -> Int64s:
    """From each begin to each end the row that is mapped and has `offset` of them before it, the last one where
    `offset` is below 0; -1 for none. Points of one match are asked one after the other, as by `sums`."""
    result = np.empty(len(begin), np.int64)
    at, of, count, taken = 0, -1, 0, -1
    for point in range(len(begin)):
        if begin[point] != of or until[point] < at:
            at = of = begin[point]
            count, taken = 0, -1
        while at < until[point]:
            if mapped[at]:
                if offset < 0 or count == offset:
                    taken = at
                count += 1
            at += 1
        result[point] = taken
    return result


@compiled.entry
def sums(
    values: Float64s, whole: Int64s, known: Bools, begin: Int64s, until: Int64s, unit: int, mean: bool
) -> tuple[Float64s, Bools]:
    """The sum (or the mean) of the known values from each begin to each end, and where there are none. The values are
    doubles in the unit 2^unit or, where `values` is empty, `whole` numbers. Points of one match are asked one after the
    other: each goes on where the one before ended."""
    result, none = np.zeros(len(begin), np.float64), np.zeros(len(begin), np.bool_)
    at, of, count, low, high = 0, -1, 0, 0, 0
    real = len(values) > 0
    for point in range(len(begin)):
        if begin[point] != of or until[point] < at:
            at = of = begin[point]
            count, low, high = 0, 0, 0
        while at < until[point]:
            if known[at]:
                count += 1
                if real:
                    one, upper = words_of(values[at], unit)
                else:
                    one, upper = whole[at], whole[at] >> 63
                low, high = carried(low, high, one, upper)
            at += 1
        if count:
            result[point] = rounded(low, high, count if mean else 1, unit)
        else:
            none[point] = True
    return result, none
