"""The keys of a pattern file of kind trends."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trendlake.cep_core.errors import BadValueError, NotSupportedError, TrendlakeError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.windows import CalendarWindows, Windows
from trendlake.cep_core.patterns.lengths import Asked, MaybeWindowLength, WindowLength, WindowOrigin
from trendlake.cep_core.patterns.model import RESERVED_COLUMNS, FamilyPattern, Identifier, Selection

Output = Literal["all", "maximal"]


class TrendsPattern(FamilyPattern):
    """One pattern of kind trends, as an analyst wrote it."""

    kind: Literal["trends"] = "trends"
    pattern: str
    """Event types under operators: A+, SEQ(A+, NOT C, B), A OR B ..."""
    where: tuple[str, ...] = ()
    """Conditions that must all hold: on one event, on neighbours (S.price > NEXT(S).price), equal for all ([city])."""
    returns: dict[Identifier, str] = Field(alias="return", min_length=1)
    """Result columns: COUNT(*), COUNT(V), MIN|MAX|SUM|AVG of V.attribute, LENGTH(*) or DURATION(*), LONGEST(*) ..."""
    group_by: tuple[Identifier, ...] = ()
    """Columns by which results are grouped."""
    within: WindowLength
    """The length of a window, such as 1 day; with time_zone of so many days, weeks, months, quarters or years of its
    calendar."""
    slide: MaybeWindowLength = None
    """The time from one window to the next; where none is said, windows follow one another."""
    origin: WindowOrigin | None = None
    """A moment at which a window begins; the epoch where none is said. With time_zone a local date or time."""
    interval_start: Identifier | None = None
    """The column with the time at which an event starts; without it, events are points in time."""
    select: Selection = "skip_till_any_match"
    """Which events may be skipped between two of a trend."""
    output: Output = "all"
    """The trends that count: all, or those whose events are no proper part of another's (maximal)."""
    empty_windows: bool = False
    """Rows for groups that have events but no trend."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.parameter_names, *self.group_by)

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.returns)

    @property
    def asked(self) -> Asked:
        return Asked(self.within, self.slide or self.within, self.origin, self.time_zone)

    @property
    def windows(self) -> Windows:
        return self.asked.windows

    @property
    def day_begins(self) -> int:
        windows = self.windows
        return windows.day_begins if isinstance(windows, CalendarWindows) else 0

    def mistakes(self) -> list[TrendlakeError]:
        """Columns that would share a name; lengths that do not go together; too many windows."""
        source, asked = self.document, self.asked
        errors = [*super().mistakes(), *asked.mistakes(source)]
        reserved = RESERVED_COLUMNS | ({"window_date"} if asked.in_calendar else set())
        columns = TakenNames(reserved, "a column of every results table")
        for index, name in enumerate(self.group_by):
            if taken := columns.take(name, "a group column already"):
                errors.append(BadValueError(f"'{name}' is {taken}", place=source.place(("group_by", index))))
        for name in self.returns:
            for column in (name, f"{name}_log10"):
                if taken := columns.take(column, "a measure already (or its _log10 companion)"):
                    place = source.place(("return", name), key=True)
                    errors.append(BadValueError(f"'{column}' is {taken}", place=place))
        if self.expect and not errors and isinstance(asked.windows, CalendarWindows) and asked.windows.skips:
            message = f"expect of windows that begin each day, where {self.time_zone} skipped one"
            hint = "windows of weeks or months, or of UTC, can be expected"
            errors.append(NotSupportedError(message, place=source.place(("expect",), key=True), hint=hint))
        slide = self.slide or self.within
        if self.within > 100_000 * slide:
            errors.append(
                BadValueError(
                    "more than 100,000 windows overlap at each moment",
                    place=source.place(("slide",)),
                    hint="make slide longer or within shorter",
                )
            )
        return errors
