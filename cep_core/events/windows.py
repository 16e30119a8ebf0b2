"""Windows in event time: window j is [origin + j*slide, origin + j*slide + within), microseconds since the epoch; or
from the beginning of one unit of a calendar to that of another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.zones import Clock

DAY = 86_400_000_000

BEGINNING, END = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last moment of the years 1 to 9999, microseconds since the epoch: no event is outside them."""
AGES = 4_000 * 366 * 86_400_000_000
"""Longer than any table's time, microseconds: the length of windows that reach over all that came before."""


@dataclass(frozen=True)
class Windows:
    """`within`, `slide` (microseconds, > 0) and `origin` (microseconds since the epoch). No other module computes with
    them: it asks for the start or end of a window, and for the windows of a moment."""

    within: int
    slide: int
    origin: int = 0

    @property
    def ahead(self) -> int:
        """The rows of a window depend on events up to so long after its end, microseconds."""
        return 0

    @property
    def longest(self) -> int:
        """No window holds events of a longer time, microseconds."""
        return self.within + self.ahead

    @property
    def step(self) -> int:
        """The time from one window to the next, microseconds."""
        return self.slide

    @property
    def overlap(self) -> int:
        """The most windows that hold a moment."""
        return -(-(self.within + self.ahead) // self.slide)

    @property
    def endless(self) -> bool:
        """Whether a window holds everything before its end: cutting time makes no part smaller then."""
        return self.longest >= AGES

    @property
    def dated(self) -> bool:
        """Whether each window begins at a date of a calendar."""
        return False

    def exists(self, j: int) -> bool:
        """Whether it begins before the next."""
        return True

    def start(self, j: int) -> int:
        return self.origin + j * self.slide

    def end(self, j: int) -> int:
        """Exclusive."""
        return self.start(j) + self.within

    def starts(self, windows: Int64s) -> Int64s:
        return self.origin + windows * self.slide

    def ends(self, windows: Int64s) -> Int64s:
        """Exclusive."""
        return self.starts(windows) + self.within

    def since(self, j: int) -> int:
        """The end of the windows that end before window `j`: (since(j), end(j)] holds its end and no earlier one."""
        return self.end(j - 1)

    def at(self, time: int) -> int:
        """The last window that starts at or before `time`."""
        return (time - self.origin) // self.slide

    def holding(self, time: int) -> range:
        """The windows that hold an event at `time`."""
        return range(self.after(time - self.ahead), self.at(time) + 1)

    def held(self, times: Int64s) -> tuple[Int64s, Int64s]:
        """The first and the last of the windows that hold each of `times`; the last is before the first where none
        does."""
        inside = times - self.origin
        return (inside - self.longest) // self.slide + 1, inside // self.slide

    def complete(self, time: int) -> int:
        """The last window all of whose events are before `time`."""
        return self.after(time - self.ahead) - 1

    def overlapping(self, begins: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
        """As `held`, of events that last from `begins` to `ends`, exclusive: the windows that share time with them. An
        event that begins when it ends is a point."""
        return self.held(begins)[0], self.held(np.maximum(begins, ends - 1))[1]

    def after(self, time: int) -> int:
        """The first window that ends after `time`."""
        return (time - self.origin - self.within) // self.slide + 1

    def ending_in(self, start: int, end: int) -> range:
        """The windows whose end is in (start, end]: those a run of the interval [start, end) computes."""
        return range(self.after(start), self.after(end))

    def span(self, windows: range) -> tuple[int, int]:
        """The half-open time range of the events that `windows` (not empty) hold."""
        end = self.end(windows[-1])
        return self.start(windows[0]), max(end, min(end + self.ahead, END + 1))


@dataclass(frozen=True)
class WindowsAhead(Windows):
    """Windows whose rows depend on events after their end: a run computes those that end in its interval, and reads on
    behind it."""

    ahead: int = 0


@dataclass(frozen=True)
class CalendarWindows(Windows):
    """Windows of whole days or months of a calendar: `within`, `slide` and `origin` are in these units, counted from
    1970-01-01, skipped days too. A unit begins at the first moment at which the clock of `zone` shows its reading, its
    midnight or the first of the month and `shift` microseconds more, or a later one.

    Two units begin at one moment where the clock skips the first. Of two windows that begin at one moment only the
    later `exists`.
    """

    zone: str = "UTC"
    months: bool = False
    shift: int = 0

    @property
    def longest(self) -> int:
        return self.within * (31 if self.months else 1) * DAY + self._clock.set_back

    @property
    def step(self) -> int:
        """About: days of 24 hours, months of 30 days."""
        return self.slide * (30 if self.months else 1) * DAY

    @property
    def dated(self) -> bool:
        return True

    def exists(self, j: int) -> bool:
        return self.start(j) < self.start(j + 1)

    def start(self, j: int) -> int:
        return self._clock.first(self._reading(self.origin + j * self.slide))

    def end(self, j: int) -> int:
        return self._clock.first(self._reading(self.origin + j * self.slide + self.within))

    def starts(self, windows: Int64s) -> Int64s:
        return self._clock.firsts(self._readings(self.origin + windows * self.slide))

    def ends(self, windows: Int64s) -> Int64s:
        return self._clock.firsts(self._readings(self.origin + windows * self.slide + self.within))

    def since(self, j: int) -> int:
        end, before = self.end(j), j - 1
        while (since := self.end(before)) == end:  # the last unit of one of the two was skipped
            before -= 1
        return since

    def at(self, time: int) -> int:
        return (self._unit(time) - self.origin) // self.slide

    def after(self, time: int) -> int:
        return (self._unit(time) - self.origin - self.within) // self.slide + 1

    def held(self, times: Int64s) -> tuple[Int64s, Int64s]:
        inside = self._units(times) - self.origin
        return (inside - self.within) // self.slide + 1, inside // self.slide

    @property
    def in_words(self) -> str:
        """`1 day of the calendar of Europe/Berlin, tumbling, from 1970-01-01T00:00:00`."""
        unit = "month" if self.months else "day"
        within, slide = (f"{count:,} {unit}{'s' * (count != 1)}" for count in (self.within, self.slide))
        sliding = "tumbling" if within == slide else f"sliding by {slide}"
        return f"{within} of the calendar of {self.zone}, {sliding}, from {clock_text(self.reading(0))}"

    @property
    def day_begins(self) -> int:
        """The time of day at which units begin, microseconds after midnight."""
        return self.shift % DAY

    def consecutive(self, days: int, months: int) -> CalendarWindows:
        """Windows of so many months or, if that is 0, days, one after another, that begin at the same time of day."""
        if months:
            return CalendarWindows(months, months, 0, self.zone, True, self.day_begins)
        return CalendarWindows(days, days, 0 if self.months else self.origin, self.zone, False, self.day_begins)

    def reading(self, j: int) -> int:
        """The reading of the clock at which a window begins, be it skipped, microseconds from 1970-01-01."""
        return self._reading(self.origin + j * self.slide)

    def dates(self, windows: Int64s) -> Int64s:
        """The dates at which the windows begin, also where the clock skips them; days from 1970-01-01."""
        return self._readings(self.origin + windows * self.slide) // DAY

    def ending_in(self, start: int, end: int) -> range:
        """From the first to the last of them that exists."""
        windows = super().ending_in(start, end)
        while windows and not self.exists(windows[0]):
            windows = windows[1:]
        while windows and not self.exists(windows[-1]):
            windows = windows[:-1]
        return windows

    @property
    def skips(self) -> bool:
        """Whether some of the windows do not exist: those of single days that the clock skips."""
        return self.slide == 1 and not self.months and self._clock.longest_gap >= DAY

    @property
    def _clock(self) -> Clock:
        return Clock.of(self.zone)

    def _reading(self, unit: int) -> int:
        """The reading of the clock at which a unit begins."""
        return int(self._readings(np.array([unit]))[0]) if self.months else unit * DAY + self.shift

    def _readings(self, units: Int64s) -> Int64s:
        days = units.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) if self.months else units
        return days * DAY + self.shift

    def _unit(self, time: int) -> int:
        """The last unit that begins at or before `time`."""
        day = (self._clock.passed(time) - self.shift) // DAY
        return int(_months(np.array([day]))[0]) if self.months else day

    def _units(self, times: Int64s) -> Int64s:
        days = (self._clock.all_passed(times) - self.shift) // DAY
        return _months(days) if self.months else days


def _months(days: Int64s) -> Int64s:
    """The months that days are in, both from 1970-01-01."""
    months: Int64s = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def both(windows: range, others: range) -> range:
    """The windows of both."""
    start = max(windows.start, others.start)
    return range(start, max(start, min(windows.stop, others.stop)))


def moment(micros: int) -> datetime:
    """Microseconds since the epoch as an aware datetime; the first or last one there is for a bound beyond it, as of a
    window that begins before the year 1."""
    micros = min(max(micros, BEGINNING), END)
    return datetime.fromtimestamp(micros // 10**6, UTC).replace(microsecond=micros % 10**6)


def shifted(at: datetime, by: timedelta) -> datetime:
    """`at + by`; as of `moment`, the end of the calendar where that is beyond it."""
    micro = timedelta(microseconds=1)
    return moment((at - moment(0)) // micro + by // micro)


def clock_text(micros: int, separator: str = "T") -> str:
    """`moment` as text in ISO 8601, which `--from` and `--to` read: `0001-01-31T09:00:00`, with a fraction of a second
    where there is one."""
    return moment(micros).isoformat(separator).removesuffix("+00:00")
