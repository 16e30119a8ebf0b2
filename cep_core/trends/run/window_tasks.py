"""The input and output of a pass: windows of partitions, weights of events, sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendlake.cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s
from trendlake.cep_core.events.windows import Windows, both
from trendlake.cep_core.trends.kernels.arguments import Tasks
from trendlake.cep_core.trends.kernels.general import NEVER
from trendlake.cep_core.trends.kernels.scaled import RADIX
from trendlake.cep_core.trends.kernels.window_tasks import calendar_rows, window_rows
from trendlake.cep_core.trends.run.sorted_rows import Slice, partition_ends

ALWAYS = 2**63 - 1


def window_tasks(slice_: Slice, windows: Windows, wanted: range | None) -> Tasks:
    """Every (partition, window) of the slice that has an event, in order; only `wanted` windows if given."""
    ends = partition_ends(slice_.partition)
    table = _dated(slice_.time, ends, windows, wanted) if windows.dated else _even(slice_.time, ends, windows, wanted)
    window = table[:, 2].copy()
    return Tasks(table[:, 0].copy(), table[:, 1].copy(), window, windows.starts(window), windows.ends(window))


def _even(time: Int64s, ends: Int64s, windows: Windows, wanted: range | None) -> Int64s:
    low, high = (wanted.start, wanted.stop - 1) if wanted is not None else (NEVER, ALWAYS)
    arguments = (time, ends, windows.within, windows.slide, windows.origin, low, high)
    table = np.zeros((window_rows(*arguments, np.zeros((0, 3), np.int64)), 3), np.int64)
    window_rows(*arguments, table)
    return table


def _dated(time: Int64s, ends: Int64s, windows: Windows, wanted: range | None) -> Int64s:
    held = range(0)
    if len(time):
        held = range(windows.after(int(time.min())), windows.at(int(time.max())) + 1)
        held = held if wanted is None else both(held, wanted)
    numbers = np.arange(held.start, held.stop + 1)
    arguments = (time, ends, windows.starts(numbers), windows.ends(numbers[:-1]), held.start)
    table = np.zeros((calendar_rows(*arguments, np.zeros((0, 3), np.int64)), 3), np.int64)
    calendar_rows(*arguments, table)
    return table


@dataclass(frozen=True)
class Sums:
    """Results of a pass by task: `sums` (T, K) in its tier, `extremes` (T, M), `hit` (T): whether there is a trend.
    `scaled` (T, K, 2): the sums in tier E, where a pass in tier F has gone on in it; None where it had no need to.
    `fine` (T, K, 3): the sums in tier D, where it has gone on in that for every task that has a trend."""

    sums: AnyArray
    extremes: Float64s
    hit: Bools
    scaled: Float64s | None = None
    fine: Float64s | None = None


def pairs(sums: Float64s) -> Float64s:
    """Sums of tier E (..., 2) or D (..., 3) in tier E."""
    return sums if sums.shape[-1] == 2 else sums[..., [0, 2]]


def doubles(sums: Float64s) -> Float64s:
    """Sums of tier E or D as float64, infinite beyond; whole ones below 2^53 exactly."""
    with np.errstate(over="ignore"):
        values: Float64s = np.ldexp(sums[..., 0], (np.minimum(sums[..., -1], 4) * RADIX).astype(np.int64))
    return values


WIDTH = {"F": 1, "U": 2, "E": 2, "D": 3}
"""64-bit words of a number, by tier."""


def number_rows(tier: str, count: int, numbers: int) -> AnyArray:
    """Zeros for `count` rows of a tier (see `cep_core.trends.kernels.numbers`)."""
    if tier == "F":
        return np.zeros((count, numbers))
    return np.zeros((count, numbers, WIDTH[tier]), dtype=np.uint64 if tier == "U" else np.float64)
