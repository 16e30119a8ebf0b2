"""The order of many numbers by counting: a radix sort of 64-bit words that hold the number and its row.

A number becomes a whole number that rises with it (the bits of a float64, turned where it is negative), less the
smallest. As many of its leading bits as 64 bits have room for, with the row below them, are one word; the words are
sorted by digits, the last digit first, and each pass is stable: equal numbers stay in the order of their rows. Where
bits had to be left out, words that agree in the others are put in order by comparison.
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s, UInt64s

DIGIT = 11
"""Bits of a digit: 2,048 counters are in the first cache."""
FEW = 64
"""Words that agree in their leading bits and are put in order one by one; of more the caller sorts all by comparison,
or numbers that differ in their last bits only would take O(n^2)."""


@compiled.part
def _rising(bits: np.int64, real: bool) -> np.uint64:
    """A whole number that rises with an int64, or with the float64 of these bits."""
    word = np.uint64(bits)
    if real and bits < 0:
        return ~word
    return word ^ np.uint64(1 << 63)


@compiled.part
def _width(word: np.uint64) -> int:
    """How many bits a word has up to its highest one."""
    width = 0
    while width < 64 and word >> np.uint64(width):
        width += 1
    return width


@compiled.entry
def sort_rows(values: Int64s, real: bool, rows: UInt64s, spare: UInt64s) -> int:
    """Write the rows of `values` in their order into the last bits of `rows`; how many bits these are, or -1: too many
    numbers are too close. `real`: the values are bits of float64s without NaN. `spare`: as long as `rows`."""
    n = values.shape[0]
    low = high = _rising(values[0], real)
    for i in range(n):
        key = _rising(values[i], real)
        low, high = min(low, key), max(high, key)
    below, wide = _width(np.uint64(n - 1)), _width(high - low)
    left_out = max(0, wide + below - 64)
    wide -= left_out
    passes = (wide + DIGIT - 1) // DIGIT
    counts = np.zeros((passes, 1 << DIGIT), np.int64)
    mask = np.uint64((1 << DIGIT) - 1)
    for i in range(n):
        word = (_rising(values[i], real) - low) >> np.uint64(left_out)
        rows[i] = (word << np.uint64(below)) | np.uint64(i)
        for p in range(passes):
            counts[p, np.int64((word >> np.uint64(DIGIT * p)) & mask)] += 1
    source, target = rows, spare
    for p in range(passes):
        place = counts[p]
        total = np.int64(0)
        for digit in range(place.shape[0]):
            count = place[digit]
            place[digit] = total
            total += count
        shift = np.uint64(below + DIGIT * p)
        for i in range(n):
            word = source[i]
            at = np.int64((word >> shift) & mask)
            target[place[at]] = word
            place[at] += 1
        source, target = target, source
    if passes % 2:
        for i in range(n):  # an assignment of a slice would have numba compile the text of its error, for four seconds
            rows[i] = spare[i]
    if left_out and not _mend(values, real, rows, below):
        return -1
    return below


@compiled.part
def _mend(values: Int64s, real: bool, rows: UInt64s, below: int) -> bool:
    """Put words that agree in their leading bits in order; False where they are too many."""
    n, mask = values.shape[0], (np.uint64(1) << np.uint64(below)) - np.uint64(1)
    first = 0
    while first < n:
        last = first + 1
        while last < n and rows[last] >> np.uint64(below) == rows[first] >> np.uint64(below):
            last += 1
        for i in range(first + 1, last):
            word = rows[i]
            key = _rising(values[np.int64(word & mask)], real)
            at = i
            while at > first and _rising(values[np.int64(rows[at - 1] & mask)], real) > key:
                if last - first > FEW:
                    return False
                rows[at] = rows[at - 1]
                at -= 1
            rows[at] = word
        first = last
    return True
