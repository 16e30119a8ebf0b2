"""The interface of a compiled plan of any kind: the pipelines know no more than this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.intervals import beginnings
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.windows import BEGINNING, END, Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.language import syntax as s

ANY = "ANY"
"""The type of a variable that binds events of every type. No type of a source that patterns read has this name."""


@dataclass(frozen=True)
class ResultShape:
    """The columns of a plan's result rows, for callers that do not know its kind."""

    contract: str
    """The template of the contract that they keep, such as `results_trends`."""
    columns: Mapping[str, tuple[str, ...]]
    """The plan's own columns by their sort (`appliesTo` of the template): group, measure, register ..."""
    rank: str | None = None
    """The column whose greatest values matter most; None: the latest rows do."""
    lifetime: int | None = None
    """Microseconds from a row's first event to its `lifetime_end`, where rows do not hold the time of that event."""
    durations: tuple[str, ...] = ()
    """Columns of whole numbers that are microseconds."""
    micros: tuple[str, ...] = ()
    """Others of whole numbers that are microseconds: a condition compares them with numbers, not with durations."""
    seconds: tuple[str, ...] = ()
    """Columns of doubles that are seconds."""
    listed_ids: tuple[str, ...] = ()
    """Columns of lists of event ids, as well as those of the sorts `events`, `optional_events` and `witness`."""
    known_at: str = "end"
    """The column with the moment from which a row can be known: its time, as an event of another pattern."""
    begins: tuple[str, int] | None = None
    """A row's interval, as an event, ends at `known_at` and begins at this column less so many microseconds; None: it
    is a point."""
    of_windows: bool = False
    """Whether each row is of one whole window, so that its time is the window's start; else it is some moment among
    those that the window owns."""
    hashed_by: tuple[str, Mapping[str, str]] | None = None
    """A column, and the hash by which the rows with each of its values are known (`plan_hash`); None: they are known by
    that of their window (`AnyPlan.stretches`)."""


@dataclass(frozen=True)
class Binding:
    """The test whether a plan may bind an event, as one variable or as one of a NOT: its type, and the conditions that
    read nothing else, in the order in which they are asked."""

    type_name: str
    conditions: tuple[s.Expr, ...]


class Reading(Protocol):
    """The part of a source that one or several plans read, and how the work may be cut."""

    @property
    def schema(self) -> EventSchema:
        """The source that the plans were compiled against."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Source columns to read."""

    @property
    def event_types(self) -> tuple[str, ...] | None:
        """Types that matter; None: every event does."""

    @property
    def unit_key(self) -> tuple[str, ...]:
        """Columns by which the work may be cut: events that differ on them share no result row."""

    @property
    def windows(self) -> Windows:
        """The units of work in time: the rows of window j depend on the events in [start(j), end(j)) only, and a run of
        an interval computes the windows that end in it."""

    @property
    def interval_start(self) -> str | None:
        """The column with the time at which an event begins, that ends at its time; None: events are points. An event
        that lasts is in each window that it overlaps, so one that ends later may be in a window, too."""


class AnyPlan(Reading, Protocol):
    """Frozen, picklable, comparable. Run it with `run_plan`, print it with `explain`."""

    @property
    def kind(self) -> str:
        """trends | matches | ..."""

    @property
    def hash(self) -> str:
        """16 hex digits: changes exactly when something changes that results depend on."""

    @property
    def engine_version(self) -> int:
        """The version of the engine of this kind: raised when the results of a plan that stays the same change."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Conditions without effect, as they are shown."""

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Notes on expressions that are legal and rarely meant. It is no part of the plan's identity."""

    @property
    def having(self) -> tuple[s.Expr, ...]:
        """Conditions on a result row: `run_plan` gives the rows for which all are true."""

    @property
    def shard_key(self) -> tuple[str, ...]:
        """Events that differ on these never meet; () when all may."""

    @property
    def key(self) -> tuple[str, ...]:
        """Result columns that tell rows apart."""

    @property
    def result_schema(self) -> pa.Schema:
        """Columns of the results."""

    @property
    def result_shape(self) -> ResultShape:
        """The columns of the result rows."""

    @property
    def within(self) -> int:
        """Microseconds: no row lasts longer, from its first time to its last."""

    @property
    def parts_of_order(self) -> tuple[str, ...] | None:
        """The columns of the partitions in which each event has a next one, so that ids order those of one time; None
        where the pattern asks for no such order."""

    @property
    def waits(self) -> bool:
        """Whether rows depend on how far time is known to have come: the `watermark` of `run_plan`."""

    @property
    def held_back(self) -> bool:
        """Whether they do where all windows are asked for."""

    def stretches(self, windows: range) -> tuple[tuple[range, str], ...]:
        """`windows` (not empty) in order, cut so that each part's results are known by one hash: they change only where
        it changes. `hash` for all of them, where a plan is the same at all times."""

    def owned(self, windows: range) -> tuple[str, int, int]:
        """(column, low, high): the rows of `windows` (not empty) are those with low <= column < high, microseconds."""


PANE = 86_400_000_000
"""The longest pane, one day in microseconds."""


class OneForm:
    """A plan that is the same at all times, and whose rows are known once their events are."""

    @property
    def interval_start(self) -> str | None:
        return None

    @property
    def waits(self) -> bool:
        return False

    @property
    def held_back(self: AnyPlan) -> bool:
        return self.waits

    @property
    def parts_of_order(self) -> tuple[str, ...] | None:
        return None

    def stretches(self: AnyPlan, windows: range) -> tuple[tuple[range, str], ...]:
        return ((windows, self.hash),)


class InPanes(OneForm):
    """A plan whose unit of work is a pane, [j * pane, (j + 1) * pane): window j owns the rows that end in pane j."""

    @property
    def pane(self: AnyPlan) -> int:
        """Length of a pane, microseconds: a day, shorter where `within` is."""
        return min(self.within, PANE)

    def owned(self: AnyPlan, windows: range) -> tuple[str, int, int]:
        pane = min(self.within, PANE)
        return "end", windows[0] * pane, (windows[-1] + 1) * pane


def times_read(reading: Reading, windows: range) -> tuple[int, int]:
    """The half-open range of the times of all events in `windows` (not empty), microseconds. Where events last, it has
    no end: an event that ends later may have begun in them."""
    start, end = reading.windows.span(windows)
    return start, end if reading.interval_start is None else max(end, END + 1)


def event_windows(reading: Reading, ends: Int64s, events: pa.Table) -> tuple[Int64s, Int64s]:
    """The first and the last window of each of `events`, whose times are `ends`, none of them NULL; the last is before
    the first where an event is in none."""
    if reading.interval_start is None:
        return reading.windows.held(ends)
    begins = beginnings(events.column(reading.interval_start), ends)
    return reading.windows.overlapping(np.minimum(begins, ends), ends)


def in_calendar(plan: AnyPlan) -> range:
    """The windows that a run can compute: they end by the year 9999, and the times of their rows are not before the
    year 1. A window of kind `trends` that begins earlier has no start that a row could show."""
    begun = owner(plan, BEGINNING - 1) + 1
    first = begun if plan.result_shape.of_windows else owner(plan, BEGINNING)  # a row may have its owner's last moment
    return range(first, plan.windows.after(END))


def owner(plan: AnyPlan, time: int) -> int:
    """The window that owns `time`, microseconds, of the results' time column: the windows own consecutive slices, which
    begin as long after their starts as that of window 0."""
    _, low, _ = plan.owned(range(1))
    return plan.windows.at(time - low + plan.windows.start(0))
