"""Windows of result rows: which window a row belongs to, and intervals of windows joined and compared."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.windows import CalendarWindows, Windows
from trendlake.pipelines.spark.arrow_functions import of_column
from trendlake.pipelines.spark.columns import beginning, column

MOST = 64
"""Stretches of time a condition names; more are joined to fewer, over the time between them."""


Stretch = tuple[int, int]


def shown_unit(plan: AnyPlan) -> tuple[str, ...]:
    """The columns of `unit_key` that result rows show: those of their key. A measure may have a unit column's name."""
    return tuple(name for name in plan.unit_key if name in plan.key)


def row_window(plan: AnyPlan) -> Column:
    """The window of a result row, from the column of time that says which windows own it."""
    name, low, _ = plan.owned(range(1))
    time, windows = sf.unix_micros(column(name)), plan.windows
    if isinstance(windows, CalendarWindows):  # the results' time is the windows' start
        return _asked(windows, time)["last"]
    return _floor_div(time - sf.lit(low), windows.slide)


def event_windows(plan: AnyPlan) -> tuple[Column, Column]:
    """As `cep_core.plan.event_windows`, of the rows of a source."""
    end = sf.unix_micros(column(plan.schema.event_time))
    if plan.interval_start is None:
        return held(plan.windows, end)
    begin = sf.unix_micros(beginning(plan))
    return held(plan.windows, begin)[0], held(plan.windows, sf.greatest(begin, end - sf.lit(1)))[1]


def held(windows: Windows, time: Column) -> tuple[Column, Column]:
    """`Windows.held` of a column of microseconds."""
    if isinstance(windows, CalendarWindows):
        asked = _asked(windows, time)
        return asked["first"], asked["last"]
    first = _floor_div(time - sf.lit(windows.origin + windows.within), windows.slide) + 1
    return first, _floor_div(time - sf.lit(windows.origin), windows.slide)


def _asked(windows: CalendarWindows, time: Column) -> Column:
    """`held` as a struct. Workers compute it with the zone database of the engine: Java's is another one."""

    def first_and_last(times: pa.Array) -> pa.Array:
        first, last = windows.held(numbers(times, 0))
        missing = ~valid(times)
        return pa.StructArray.from_arrays([arrow(first, missing), arrow(last, missing)], ["first", "last"])

    kind = StructType([StructField("first", LongType()), StructField("last", LongType())])
    return of_column(first_and_last, kind, time)


def _floor_div(value: Column, divisor: int) -> Column:
    """Integer division that rounds down."""
    by = sf.lit(divisor)
    return sf.call_function("div", value - sf.pmod(value, by), by)


def within(window: Column, stretches: Sequence[Stretch]) -> Column:
    """Whether a window is in one of the stretches."""
    return reduce(lambda a, b: a | b, [window.between(*stretch) for stretch in stretches], sf.lit(False))


def united(ranges: Iterable[Stretch], *, last: bool = False) -> list[Stretch]:
    """Half-open ranges in order, those that touch made one; with `last`, given by their first and last."""
    merged: list[Stretch] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return [(start, end - 1) for start, end in merged] if last else merged


@dataclass(frozen=True)
class Pieces:
    """Windows cut wherever one of some stretches begins or ends: what is known of one window of a piece is known of
    all. There may be more windows than memory holds, and there are few pieces. Piece i has the windows
    [edges[i], edges[i + 1])."""

    edges: tuple[int, ...]

    @classmethod
    def of(cls, windows: range, stretches: Iterable[Stretch]) -> Pieces:
        """`stretches`: first and last window of each, inside `windows` or not."""
        if not windows:
            return cls(())
        ends = {end for first, last in stretches for end in (first, last + 1) if windows[0] < end <= windows[-1]}
        return cls((windows[0], *sorted(ends), windows[-1] + 1))

    def __len__(self) -> int:
        return max(0, len(self.edges) - 1)

    def inside(self, first: int, last: int) -> slice:
        """The pieces in a stretch of those that the windows were cut at."""
        return slice(*(min(bisect_left(self.edges, end), len(self)) for end in (first, last + 1)))

    def windows(self, first: int, last: int) -> range:
        """The windows from piece `first` to piece `last` (included)."""
        return range(self.edges[first], self.edges[last + 1])


def fewer(ranges: Sequence[Stretch], most: int) -> list[Stretch]:
    """At most `most` ranges that hold the given ones (in order, disjoint): the smallest gaps are filled."""
    if len(ranges) <= most:
        return list(ranges)
    gaps = sorted(range(1, len(ranges)), key=lambda i: ranges[i][0] - ranges[i - 1][1], reverse=True)
    cuts = [0, *sorted(gaps[: most - 1]), len(ranges)]
    return [(ranges[a][0], ranges[b - 1][1]) for a, b in itertools.pairwise(cuts)]
