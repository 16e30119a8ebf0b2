"""Loops of `lookup`: the code of each event's key, and the row of a key that holds at a time."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int64s


@compiled.inlined
def _slot(value: np.int64, mask: np.uint64) -> np.uint64:
    """Where a number is looked for first: close numbers have slots far from each other."""
    word = np.uint64(value)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0x9E3779B97F4A7C15)
    return (word >> np.uint64(29)) & mask


@compiled.entry
def hashed(known: Int64s, slots: Int64s) -> None:
    """Write each value and its number into its slot, or the next free one. `slots`: -1, (n, 2) with n a power of two,
    more than there are values, which are all different."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(known.shape[0]):
        at = _slot(known[i], mask)
        while slots[at, 1] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at, 0], slots[at, 1] = known[i], i


@compiled.entry
def index_of(values: Int64s, there: Bools, slots: Int64s, places: Int64s) -> None:
    """The number of each value in `slots`, -1 where it has none or is NULL."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(values.shape[0]):
        places[i] = -1
        if there[i]:
            at = _slot(values[i], mask)
            while slots[at, 1] >= 0:
                if slots[at, 0] == values[i]:
                    places[i] = slots[at, 1]
                    break
                at = (at + np.uint64(1)) & mask


@compiled.entry
def search(codes: Int64s, times: Int64s, starts: Int64s, since: Int64s, until: Int64s, places: Int64s) -> None:
    """For each event the last row of its code that has begun by its time, -1 where there is none or it has ended.
    The rows of code c, by since, are [starts[c], starts[c + 1])."""
    for i in range(codes.shape[0]):
        places[i] = -1
        if codes[i] >= 0:
            low, high = starts[codes[i]], starts[codes[i] + 1]
            first = low
            while low < high:
                middle = (low + high) >> 1
                if since[middle] <= times[i]:
                    low = middle + 1
                else:
                    high = middle
            if low > first and times[i] < until[low - 1]:
                places[i] = low - 1
