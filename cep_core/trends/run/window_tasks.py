"""What a pass is asked for and what it answers: windows of partitions, weights of events, sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cep_core.events.windows import Windows
from cep_core.trends.kernels.general import NEVER
from cep_core.trends.kernels.scaled import RADIX
from cep_core.trends.run.sorted_rows import Slice, partition_ends

Array = Any

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
def _first(time: Array, first: int, last: int, bound: int) -> int:
    """The first position in [first, last) whose time is not below `bound`, else `last`: by strides that double."""
    step = 1
    while first < last and time[min(first + step, last) - 1] < bound:
        first = min(first + step, last)
        step *= 2
    last = min(first + step, last)
    while first < last:
        middle = (first + last) // 2
        if time[middle] < bound:
            first = middle + 1
        else:
            last = middle
    return first


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
            lo = _first(time, lo, end, start)
            if lo == end:
                break
            if time[lo] >= start + within:
                j = (time[lo] - origin - within) // slide + 1
                continue
            hi = _first(time, max(hi, lo), end, start + within)
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
    """Results of a pass by task: `sums` (T, K) in its tier, `extremes` (T, M), `hit` (T): whether there is a trend.
    `scaled` (T, K, 2): the sums in tier E, where a pass in tier F has gone on in it; None where it had no need to."""

    sums: Array
    extremes: Array
    hit: Array
    scaled: Array | None = None


def pairs(sums: Array) -> Array:
    """Sums of tier E (..., 2) or D (..., 3) in tier E."""
    return sums if sums.shape[-1] == 2 else sums[..., [0, 2]]


def doubles(sums: Array) -> Array:
    """Sums of tier E or D as float64, infinite beyond; whole ones below 2^53 exactly."""
    with np.errstate(over="ignore"):
        found: Array = np.ldexp(sums[..., 0], (np.minimum(sums[..., -1], 4) * RADIX).astype(np.int64))
    return found


WIDTH = {"F": 1, "U": 2, "E": 2, "D": 3}
"""64-bit words of a number, by tier."""


def number_rows(tier: str, count: int, numbers: int) -> Array:
    """Zeros for `count` rows of a tier (see `kernels.numbers`)."""
    if tier == "F":
        return np.zeros((count, numbers))
    return np.zeros((count, numbers, WIDTH[tier]), dtype=np.uint64 if tier == "U" else np.float64)
