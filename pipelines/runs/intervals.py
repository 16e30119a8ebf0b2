"""Intervals of windows as a command takes them: `--from A --to B` means the windows that end in (A, B]."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from trendlake.cep_core import Pattern
from trendlake.cep_core.events.windows import BEGINNING, DAY, END, CalendarWindows, Windows, clock_text
from trendlake.cep_core.events.zones import Clock, stamped
from trendlake.pipelines.errors import BadTimeError


def interval_of(windows: Windows, first: int, last: int) -> tuple[int, int]:
    """The interval, microseconds, of the windows `first` to `last` (included)."""
    while first < last and not windows.exists(first):
        first += 1
    start, end = windows.since(first), windows.end(last)
    return min(max(start, BEGINNING), END - 1), min(max(end, BEGINNING + 1), END)


def refuse_empty(start_us: int, end_us: int) -> None:
    """Raises BadTimeError for an interval that holds no moment."""
    if start_us < end_us:
        return
    hint = None
    if start_us == end_us:  # Airflow's for a run that is started by hand when a scheduled time was just skipped
        hint = "--to is not included. In Airflow, trigger the DAG with the params from and to"
    raise BadTimeError("the interval is empty: --from must be before --to", hint=hint)


@dataclass(frozen=True)
class LocalTimes:
    """How people write times of a pattern: without an offset on the clock of `zone`, of UTC where the pattern names
    none. A date alone is the beginning of that day, `day_begins` microseconds after midnight."""

    zone: str | None = None
    day_begins: int = 0

    @classmethod
    def of(cls, pattern: Pattern) -> LocalTimes:
        return cls(pattern.time_zone, pattern.day_begins)

    @classmethod
    def of_windows(cls, zone: str | None, windows: Windows) -> LocalTimes:
        return cls(zone, windows.day_begins if isinstance(windows, CalendarWindows) else 0)

    def micros(self, text: str, option: str) -> int:
        """An ISO 8601 time as microseconds since the epoch: of one that the clock skips the moment of the change, of
        one shown twice the first. Raises BadTimeError, as for one outside the years 1 to 9999."""
        reading, local = self._read(text, option)
        micros = Clock.of(self.zone).first(reading) if local and self.zone is not None else reading
        if not BEGINNING <= micros <= END:
            raise BadTimeError(f"{option} {text!r} is, in UTC, outside the years 1 to 9999")
        return micros

    def remark(self, text: str, option: str) -> str | None:
        """Which moment is meant by a time that the clock skips or shows twice; None for all others."""
        reading, local = self._read(text, option)
        if not local or self.zone is None or (times := Clock.of(self.zone).shows(reading)) == 1:
            return None
        what = "is skipped by" if not times else "comes twice on"
        meant = stamped(self.micros(text, option), self.zone)
        return f"{option} {text} {what} the clocks of {self.zone}: {meant} is meant"

    def _read(self, text: str, option: str) -> tuple[int, bool]:
        """Microseconds from 1970 on the clock that the text means, and whether that is the local one."""
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            raise BadTimeError(
                f"{option} {text!r} is no ISO 8601 time", hint="such as 2013-01-01 or 2013-01-01T09:00:00Z"
            ) from None
        local = moment.tzinfo is None
        since = (moment.replace(tzinfo=UTC) if local else moment) - datetime(1970, 1, 1, tzinfo=UTC)
        micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return micros + (self.day_begins if len(text.strip()) <= len("2013-01-01") else 0), local

    def written(self, micros: int) -> str:
        """As short as `micros` reads it."""
        if self.zone is None:
            return written(micros)
        clock = Clock.of(self.zone)
        reading = clock.passed(micros)
        if clock.first(reading) != micros or reading - micros != clock.offset(micros):
            return f"{clock_text(micros)}Z"
        begun = reading - self.day_begins
        text = clock_text(reading if begun % DAY else begun)
        if begun % DAY:
            return text
        return text.removesuffix("T00:00:00")

    def options(self, start: int, end: int) -> str:
        """`--from 2026-01-05 --to 2026-01-07T12:00:00`."""
        return f"--from {self.written(start)} --to {self.written(end)}"


def options_of(windows: Windows, first: int, last: int, times: LocalTimes = LocalTimes()) -> str:
    """The interval of the windows `first` to `last` (included)."""
    return times.options(*interval_of(windows, first, last))


def written(micros: int) -> str:
    """A time, microseconds since the epoch, as short as it can be written: midnight as a date, UTC."""
    return clock_text(micros).removesuffix("T00:00:00")
