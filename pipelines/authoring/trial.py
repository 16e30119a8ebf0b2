"""A pattern tried on a slice of its tables, in this process: nothing is written, no window is cut.

A slice is whole windows: the newest that hold no more events than are asked for, or those of an interval. A window
with some of its events left out would give a number that no run gives; but groups of events that share no row with
others may be left out: of windows that hold too many events those groups are taken that fit, each whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core import AnyPlan, run_plan
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.windows import END, Windows, both
from trendlake.cep_core.expressions.advice import advice_on
from trendlake.cep_core.plan import in_calendar
from trendlake.pipelines.authoring.advice import certain
from trendlake.pipelines.check import Check
from trendlake.pipelines.errors import SampleTooLargeError
from trendlake.pipelines.execute.hashing import row_hashes
from trendlake.pipelines.steps.order import id_order


@dataclass(frozen=True)
class Extent:
    """The extent of a source: its rows that have a time, the beginning of the oldest and the time of the newest,
    microseconds."""

    rows: int
    oldest: int
    newest: int


@dataclass(frozen=True)
class TableSample:
    """The part of a sample that is of one table: of its `rows` (`there` in all), good and bad, how many broke the
    contract, by the first rule broken. `name`: in `sources` and `lookup`; `where`: a file, or a version."""

    name: str
    where: str
    rows: int
    there: int
    broken: Mapping[str, int]
    reference: bool = False


@dataclass(frozen=True)
class Taken:
    """Good events (the plan's columns, of several tables their union) and where they come from; `watermark`: how far
    time has come, for plans that wait for it."""

    events: pa.Table
    tables: tuple[TableSample, ...]
    watermark: int | None


@dataclass(frozen=True)
class Groups:
    """The groups of a sample, of windows that hold too many events: `taken` of `there`, each with all its events. Two
    groups differ on `columns`, and share no row. `events`: of all groups."""

    columns: tuple[str, ...]
    taken: int
    there: int
    events: int


class Sampled(Protocol):
    """Where a sample is taken from: tables of the warehouse, or files."""

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in memory already."""

    @property
    def reference(self) -> Mapping[str, pa.Table]:
        """The tables that lookups read, by name."""

    def extent(self) -> Extent | None:
        """None where no row has a time."""

    def newest(self, number: int) -> int | None:
        """The time of the `number`-th newest row, from 1; None where there are not so many."""

    def count(self, start_us: int, end_us: int) -> int:
        """Rows whose time, or interval, is in the half-open range."""

    def take(self, windows: range) -> Taken:
        """The events of `windows` (not empty)."""

    def missing(self, events: pa.Table) -> Sequence[Check]:
        """The check of each lookup over the events: how many of them have no row."""


@dataclass(frozen=True)
class Sample:
    """`rows`: the results of `windows`, of those (`every`) with events of the source. `there`: rows of all tables of
    events; `good`: events that were read. `open`: windows that reach past the newest event, and may still fill.
    `notes`: expressions of the pattern that are rarely meant for events like these. `lookups`: as of
    `Sampled.missing`. `groups`: None where all are taken."""

    rows: pa.Table
    windows: range
    every: range
    there: int
    good: int
    open: int
    newest: int | None
    notes: tuple[str, ...]
    outside: int = 0
    """Windows with events that no run computes (`in_calendar`)."""
    tables: tuple[TableSample, ...] = ()
    lookups: tuple[Check, ...] = ()
    groups: Groups | None = None

    @property
    def taken(self) -> int:
        """Rows of tables of events, good and bad."""
        return sum(table.rows for table in self.tables if not table.reference)


def sample(plan: AnyPlan, source: Sampled, most: int, interval: tuple[int, int] | None = None) -> Sample:
    """The results of the newest whole windows that hold at most `most` events; with `interval`, of the windows that end
    in it, as a run's. Where these, or the newest window alone, hold more: of some groups. Raises SampleTooLargeError
    where no group can be taken."""
    extent, notes = source.extent(), tuple(certain(plan.advice))
    if extent is None:
        return Sample(plan.result_schema.empty_table(), range(0), range(0), 0, 0, 0, None, notes)
    held, most_windows = _every(plan.windows, extent), in_calendar(plan)
    every = both(held, most_windows)
    outside = len(held) - len(every)
    too_large: SampleTooLargeError | None = None
    if interval is None:
        chosen, too_large = _newest(plan.windows, every, source, most)
    else:
        chosen = both(plan.windows.ending_in(*interval), most_windows)
        if chosen and (event_count := source.count(*plan.windows.span(chosen))) > most:
            too_large = SampleTooLargeError(
                f"the windows of the interval hold {event_count:,} events, more than {most:,}",
                hint=f"a shorter interval, or --max-events {event_count}",
            )
    if not chosen:
        empty = plan.result_schema.empty_table()
        return Sample(empty, chosen, every, extent.rows, 0, 0, extent.newest, notes, outside)
    if too_large is not None and not source.in_memory:
        raise too_large
    taken, groups = source.take(chosen), None
    if too_large is not None and taken.events.num_rows > most:
        taken, groups = _in_groups(plan, taken, most, too_large)
    rows = _rows(plan, taken, chosen, extent.newest, source.reference).cast(plan.result_schema)
    still_open = max(0, chosen.stop - max(chosen.start, plan.windows.after(extent.newest)))
    notes = *advice_on(taken.events, plan.advice), *_order(plan, taken.events, source.reference)
    lookups = tuple(source.missing(taken.events))
    good, newest = taken.events.num_rows, extent.newest
    about = still_open, newest, notes, outside, taken.tables, lookups, groups
    return Sample(rows, chosen, every, extent.rows, good, *about)


def _in_groups(plan: AnyPlan, taken: Taken, most: int, too_large: SampleTooLargeError) -> tuple[Taken, Groups]:
    """The events of as many groups, in the order of their hashes, as hold at most `most` events together; one that
    alone holds more is left out. Raises `too_large` where the plan has no groups, or all hold more."""
    columns, events = plan.unit_key, taken.events
    if not columns or not {*columns} <= {*events.column_names}:
        raise too_large
    hashes = row_hashes([events.column(name).combine_chunks() for name in columns], events.num_rows)
    groups, counts = np.unique(hashes, return_counts=True)
    fitting = counts <= most
    chosen = groups[fitting][np.cumsum(counts[fitting]) <= most]
    if not len(chosen):
        raise too_large
    some = replace(taken, events=events.filter(arrow(np.isin(hashes, chosen))))
    return some, Groups(columns, len(chosen), len(groups), events.num_rows)


def _rows(plan: AnyPlan, taken: Taken, windows: range, newest: int, reference: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of `windows`. Those that later events may rule out are held back where the plan does that, which the
    engine does for all windows of its events only."""
    if plan.waits or not plan.held_back:
        return run_plan(plan, taken.events, windows, taken.watermark, reference)
    rows = run_plan(plan, taken.events, None, newest, reference)
    column, low, high = plan.owned(windows)
    times = rows.column(column).cast(pa.int64())
    return rows.filter(pc.and_(pc.greater_equal(times, low), pc.less(times, high)))


def _order(plan: AnyPlan, events: pa.Table, reference: Mapping[str, pa.Table]) -> Iterator[str]:
    """A note of events whose order only their ids say, where the pattern asks for it."""
    if (check := id_order(plan, events, reference=reference)) is not None:
        yield f"{check.observed}: give a column of the source the role sequence"


def _every(windows: Windows, extent: Extent) -> range:
    """The windows with events; of endless windows those whose last slide has some."""
    first, newest = windows.after(extent.oldest), windows.after(extent.newest)
    if windows.endless or windows.ahead:
        return range(first, newest + 1)
    return range(first, windows.at(extent.newest) + 1)


def _newest(windows: Windows, every: range, source: Sampled, most: int) -> tuple[range, SampleTooLargeError | None]:
    """The newest of `every` that together hold at most `most` events; where the newest holds more, it, and the
    error."""
    if not every:
        return every, None
    later = source.count(windows.end(every[-1]), END + 1)  # in windows that no run computes
    beyond = source.newest(later + most + 1)
    if beyond is None:
        return every, None
    first = windows.at(beyond) + 1  # the first window that begins after that event
    if first >= every.stop:
        held = source.count(windows.start(every[-1]), windows.end(every[-1]))
        message = f"the newest window alone holds {held:,} events, more than {most:,}"
        return every[-1:], SampleTooLargeError(message, hint=f"--max-events {held}")
    return range(max(first, every.start), every.stop), None
