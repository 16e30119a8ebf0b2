"""Windows in event time: window j is [origin + j*slide, origin + j*slide + within), microseconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trendlake.cep_core.events.array_types import Int64s

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
    def longest(self) -> int:
        """No window lasts longer, microseconds."""
        return self.within

    @property
    def step(self) -> int:
        """The time from one window to the next, microseconds."""
        return self.slide

    @property
    def overlap(self) -> int:
        """The most windows that hold a moment."""
        return -(-self.within // self.slide)

    @property
    def endless(self) -> bool:
        """Whether a window holds everything before its end: cutting time makes no part smaller then."""
        return self.longest >= AGES

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
        return range(self.after(time), self.at(time) + 1)

    def held(self, times: Int64s) -> tuple[Int64s, Int64s]:
        """The first and the last of the windows that hold each of `times`; the last is before the first where none
        does."""
        inside = times - self.origin
        return (inside - self.within) // self.slide + 1, inside // self.slide

    def after(self, time: int) -> int:
        """The first window that ends after `time`."""
        return (time - self.origin - self.within) // self.slide + 1

    def ending_in(self, start: int, end: int) -> range:
        """The windows whose end is in (start, end]: those a run of the interval [start, end) computes."""
        return range(self.after(start), self.after(end))

    def span(self, windows: range) -> tuple[int, int]:
        """The half-open time range that `windows` (not empty) cover."""
        return self.start(windows[0]), self.end(windows[-1])


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
