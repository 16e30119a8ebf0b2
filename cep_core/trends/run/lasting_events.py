"""Events with intervals: each is in every window that it overlaps, and lasts there as long as they share time.

    state   [06:50, 07:20)    ->    window 06:00, duration 10 minutes    state   [06:50, 07:20)
                                    window 07:00, duration 20 minutes    state   [06:50, 07:20)

An event becomes a row for each of its windows. The window is one more column of the partition key and of the groups,
so that events of different windows never meet; and one window holds all rows. So the kernels see points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.intervals import DURATION, beginnings, refuse_reversed
from trendlake.cep_core.events.windows import Windows, both
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.run.results import moments_of, shown
from trendlake.cep_core.trends.run.run import run_plan

WINDOW = "\0window"
"""A column that no table has: the window that a row is of."""
MOST_ROWS = 1 << 21
"""Rows that are computed at once, where they are of several windows."""


def run_lasting(plan: Plan, columns: Columns, windows: range | None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events with intervals, of all keys, in any order; of `windows`
    only, if given. Raises BadEventsError: an event in one of them begins after it ends."""
    columns.check(plan.schema, plan.columns, ("event_time", "event_type"))
    lasting = _Lasting.of(plan, columns)
    if windows is None and len(lasting.rows):
        windows = range(int(lasting.first.min()), int(lasting.last.max()) + 1)
    tables = _tables(plan, columns, lasting, windows or range(0))
    return pa.concat_tables([plan.result_schema.empty_table(), *tables])


@dataclass(frozen=True)
class _Lasting:
    """Events: the rows that they are in the table, from when to when they last, the first and the last window of
    each."""

    rows: Int64s
    begins: Int64s
    ends: Int64s
    first: Int64s
    last: Int64s

    @classmethod
    def of(cls, plan: Plan, columns: Columns) -> _Lasting:
        rows = np.arange(columns.length)
        if plan.event_types is not None:
            codes, names = columns.types(plan.schema.event_type)
            asked = np.array([*(name in plan.event_types for name in names), False])
            rows = np.flatnonzero(asked[codes])
        ends = numbers(columns.column(plan.schema.event_time))
        begins = beginnings(columns.column(str(plan.interval_start)), ends)
        begins, ends = begins[rows], ends[rows]
        return cls(rows, begins, ends, *plan.windows.overlapping(np.minimum(begins, ends), ends))

    def chosen(self, some: Bools) -> _Lasting:
        return _Lasting(self.rows[some], self.begins[some], self.ends[some], self.first[some], self.last[some])


def _tables(plan: Plan, columns: Columns, lasting: _Lasting, windows: range) -> list[pa.Table]:
    """The results of consecutive windows, by halves where the events have too many rows in them."""
    if not windows:
        return []
    first, last = np.maximum(lasting.first, windows[0]), np.minimum(lasting.last, windows[-1])
    lasting = lasting.chosen(first <= last)
    if not len(lasting.rows):
        return []
    refuse_reversed(str(plan.interval_start), lasting.begins, lasting.ends)
    first, last = np.maximum(lasting.first, windows[0]), np.minimum(lasting.last, windows[-1])
    times = last - first + 1
    if times.sum() > MOST_ROWS and len(windows) > 1:
        own = both(windows, range(int(first.min()), int(last.max()) + 1))
        half = len(own) // 2
        if half:
            return [*_tables(plan, columns, lasting, own[:half]), *_tables(plan, columns, lasting, own[half:])]
    at = np.repeat(np.arange(len(times)), times)
    window = np.arange(len(at)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(first, times)
    starts, ends = plan.windows.starts(window), plan.windows.ends(window)
    there = starts < plan.windows.starts(window + 1)  # of windows that begin at one moment the last exists
    at, window, starts, ends = at[there], window[there], starts[there], ends[there]
    duration = np.minimum(lasting.ends[at], ends) - np.maximum(lasting.begins[at], starts)
    return [_computed(plan, columns.chosen(lasting.rows[at]), window, duration)] if len(at) else []


def _computed(plan: Plan, columns: Columns, window: Int64s, duration: Int64s) -> pa.Table:
    """The results of rows, each of one window."""
    time = numbers(columns.column(plan.schema.event_time))
    low, high = int(time.min()), int(time.max()) + 1
    whole_stream = {"select": "partition_contiguous", "implied": plan.shared} if plan.select == "contiguous" else {}
    one = replace(
        plan,
        windows=Windows(high - low, high - low, low),
        interval_start=None,
        shared=(WINDOW, *plan.shared),
        group_by=(WINDOW, *plan.group_by),
        schema=plan.schema.wider({WINDOW: "bigint", DURATION: "duration"}),
        having=(),
        **whole_stream,  # type: ignore[arg-type]
    )
    table = run_plan(one, columns.extended(WINDOW, arrow(window)).extended(DURATION, arrow(duration)))
    moments = moments_of(plan, numbers(table.column(WINDOW).combine_chunks()))
    rest = table.drop_columns([WINDOW, "window_start", "window_end"])
    groups, schema = len(plan.group_by), plan.result_schema
    arrays = [*rest.columns[:groups], *moments, *rest.columns[groups:]]
    return pa.table([shown(a, field.type) for a, field in zip(arrays, schema, strict=True)], schema=schema)
