"""The queries, of many, that each row is for: lists of queries, and their constants as ranges of whole numbers.

List l is numbers[bounds[l]:bounds[l + 1]], ascending. `low`, `high` (queries, columns): the range, inclusive, that must
contain each column's key; keys are (rows, columns).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed


class Lists(NamedTuple):
    """Lists of queries, int64."""

    bounds: Int64s
    numbers: Int64s


class Ranges(NamedTuple):
    """Of each query, by column."""

    low: Int64s
    high: Int64s


@compiled.expanded
def _inside(keys: Int64s, row: int, ranges: Ranges, query: int) -> bool:
    for x in range(keys.shape[1]):
        if keys[row, x] < ranges.low[query, x] or keys[row, x] > ranges.high[query, x]:
            return False
    return True


@compiled.expanded
def _search(keys: Int64s, column: int, first: int, last: int, key: int, beyond: bool) -> int:
    """The first place of [first, last), sorted by a column, whose key is at least `key` (`beyond`: more)."""
    while first < last:
        middle = (first + last) >> 1
        if keys[middle, column] < key or (beyond and keys[middle, column] == key):
            first = middle + 1
        else:
            last = middle
    return first


@compiled.entry
def slices(keys: Int64s, ranges: Ranges) -> tuple[Int64s, Int64s]:
    """[first, last) of each query: where its rows are among `keys`, sorted by the first column, then the second ...; a
    column behind one that is no equality is not looked at."""
    keys, ranges = borrowed(keys), borrowed(ranges)
    first = np.zeros(ranges.low.shape[0], np.int64)
    last = np.full(ranges.low.shape[0], keys.shape[0], np.int64)
    for q in range(first.shape[0]):
        for x in range(keys.shape[1]):
            low, high = ranges.low[q, x], ranges.high[q, x]
            first[q] = _search(keys, x, first[q], last[q], low, False)
            last[q] = max(first[q], _search(keys, x, first[q], last[q], high, True))
            if low != high:
                break
    return first, last


@compiled.entry
def lists_of_rows(keys: Int64s, ranges: Ranges, first: Int64s, last: Int64s) -> Lists:
    """A list for each row of `keys`: the queries in whose slice and ranges it is."""
    keys, ranges, first, last = borrowed(keys), borrowed(ranges), borrowed(first), borrowed(last)
    bounds = np.zeros(keys.shape[0] + 1, np.int64)
    for q in range(first.shape[0]):
        for row in range(first[q], last[q]):
            bounds[row + 1] += _inside(keys, row, ranges, q)
    for row in range(keys.shape[0]):
        bounds[row + 1] += bounds[row]
    at, numbers = bounds[:-1].copy(), np.empty(bounds[-1], np.int64)
    for q in range(first.shape[0]):
        for row in range(first[q], last[q]):
            if _inside(keys, row, ranges, q):
                numbers[at[row]] = q
                at[row] += 1
    return Lists(bounds, numbers)


@compiled.entry
def remaining(keys: Int64s, lists_at: Int64s, lists: Lists, ranges: Ranges, bounds: Int64s) -> Int64s:
    """The queries of each row's list in whose ranges it is; fills `bounds` (rows + 1, zeros) of these new lists."""
    keys, lists_at, lists, ranges = borrowed(keys), borrowed(lists_at), borrowed(lists), borrowed(ranges)
    numbers, used = np.empty(1024, np.int64), 0
    for row in range(keys.shape[0]):
        low, high = lists.bounds[lists_at[row]], lists.bounds[lists_at[row] + 1]
        if used + high - low > numbers.shape[0]:
            more = np.empty(2 * (used + high - low), np.int64)
            more[:used] = numbers[:used]
            numbers = more
        for i in range(low, high):
            q = lists.numbers[i]
            if _inside(keys, row, ranges, q):
                numbers[used] = q
                used += 1
        bounds[row + 1] = used
    return numbers[:used]


@compiled.entry
def parted_lists(lists: Lists, codes: Int64s, size: int) -> tuple[Lists, Int64s, Int64s]:
    """Each list cut by the code (0 to size - 1) of its queries: the new lists, the code of each, and where those of an
    old list begin."""
    lists, codes = borrowed(lists), borrowed(codes)
    count = lists.bounds.shape[0] - 1
    stamp, place = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    begins = np.zeros(count + 1, np.int64)
    for li in range(count):
        begins[li + 1] = begins[li]
        for i in range(lists.bounds[li], lists.bounds[li + 1]):
            c = codes[lists.numbers[i]]
            if stamp[c] != li:
                stamp[c] = li
                begins[li + 1] += 1
    bounds = np.zeros(begins[-1] + 1, np.int64)
    of = np.zeros(begins[-1], np.int64)
    numbers = np.empty(lists.numbers.shape[0], np.int64)
    stamp[:] = -1
    for li in range(count):
        used = begins[li]
        for i in range(lists.bounds[li], lists.bounds[li + 1]):
            c = codes[lists.numbers[i]]
            if stamp[c] != li:
                stamp[c], place[c], of[used] = li, used, c
                used += 1
            bounds[place[c] + 1] += 1
        total = lists.bounds[li]
        for new in range(begins[li], begins[li + 1]):
            size_of, bounds[new + 1] = bounds[new + 1], total
            total += size_of
        for i in range(lists.bounds[li], lists.bounds[li + 1]):
            new = place[codes[lists.numbers[i]]]
            numbers[bounds[new + 1]] = lists.numbers[i]
            bounds[new + 1] += 1
    return Lists(bounds, numbers), of, begins


@compiled.entry
def rows_by_query(lists_at: Int64s, lists: Lists, count: int) -> tuple[Int64s, Int64s]:
    """The rows of each of `count` queries, ascending, and where those of each begin."""
    lists_at, lists = borrowed(lists_at), borrowed(lists)
    bounds = np.zeros(count + 1, np.int64)
    for row in range(lists_at.shape[0]):
        for i in range(lists.bounds[lists_at[row]], lists.bounds[lists_at[row] + 1]):
            bounds[lists.numbers[i] + 1] += 1
    for q in range(count):
        bounds[q + 1] += bounds[q]
    at, rows = bounds[:-1].copy(), np.empty(bounds[-1], np.int64)
    for row in range(lists_at.shape[0]):
        for i in range(lists.bounds[lists_at[row]], lists.bounds[lists_at[row] + 1]):
            q = lists.numbers[i]
            rows[at[q]] = row
            at[q] += 1
    return rows, bounds


@compiled.entry
def pairs_of(lists_at: Int64s, lists: Lists) -> int:
    """How many pairs of a row and a query there are."""
    lists_at, lists = borrowed(lists_at), borrowed(lists)
    total = 0
    for row in range(lists_at.shape[0]):
        total += lists.bounds[lists_at[row] + 1] - lists.bounds[lists_at[row]]
    return total
