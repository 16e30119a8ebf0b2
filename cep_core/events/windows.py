"""Windows in event time: window j is [origin + j*slide, origin + j*slide + within), microseconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

AGES = 4_000 * 366 * 86_400_000_000
"""Longer than any table's time, microseconds: the length of windows that reach over all that came before."""


@dataclass(frozen=True)
class Windows:
    """`within`, `slide` (microseconds, > 0) and `origin` (microseconds since the epoch)."""

    within: int
    slide: int
    origin: int = 0

    @property
    def endless(self) -> bool:
        """Whether a window holds everything before its end: cutting time makes no part smaller then."""
        return self.within >= AGES

    def start(self, j: int) -> int:
        return self.origin + j * self.slide

    def end(self, j: int) -> int:
        """Exclusive."""
        return self.start(j) + self.within

    def holding(self, time: int) -> range:
        """The windows that hold an event at `time`."""
        return range((time - self.origin - self.within) // self.slide + 1, (time - self.origin) // self.slide + 1)

    def ending_in(self, start: int, end: int) -> range:
        """The windows whose end lies in (start, end]: those a run of the interval [start, end) computes."""
        first = (start - self.origin - self.within) // self.slide + 1
        last = (end - self.origin - self.within) // self.slide
        return range(first, last + 1)

    def span(self, windows: range) -> tuple[int, int]:
        """The half-open time range that `windows` (not empty) cover."""
        return self.start(windows[0]), self.end(windows[-1])


def moment(micros: int) -> datetime:
    """Microseconds since the epoch as an aware datetime."""
    return datetime.fromtimestamp(micros // 10**6, UTC).replace(microsecond=micros % 10**6)
