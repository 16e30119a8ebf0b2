"""Stretches of time by which results are counted and drawn: a run's page and its pattern's have the same ones.

All begin at multiples of their length from a Monday. So minutes, hours and days are those of the clock (UTC), a week
begins on Monday, and a longer stretch is a number of such weeks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from trendlake.cep_core.events.windows import moment

MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
SECOND = 10**6
MONDAY_MICROS = 4 * 86_400 * SECOND
"""`MONDAY` in microseconds since the epoch."""
WEEK = 604_800
UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": WEEK}
"""Seconds. Rows are counted by the shortest unit that divides a span into few enough parts."""
MOST_UNITS = 60
LENGTHS = (
    60,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    43_200,
    86_400,
    172_800,
    *(WEEK << n for n in range(16)),
)
"""Round lengths of time, seconds, by which windows share a point. Few of the longest hold all years."""


class Unit(NamedTuple):
    """A unit into which time is cut: its name and its length in seconds."""

    name: str
    seconds: int

    def ends(self, number: int) -> tuple[datetime, datetime]:
        """Where the stretch of a number (`number_of`) begins and ends."""
        start = number * self.seconds * SECOND + MONDAY_MICROS
        return moment(start), moment(start + self.seconds * SECOND)


def unit_of(first: datetime, last: datetime) -> Unit:
    """The unit by which rows from `first` to `last` are counted: of minutes, hours, days and weeks the shortest that
    makes few stretches, else 2 weeks, 4, and so on."""
    span = (last - first).total_seconds()
    for name, seconds in UNITS.items():
        if span <= seconds * MOST_UNITS:
            return Unit(name, seconds)
    seconds = next(length for length in LENGTHS if length > WEEK and span <= length * MOST_UNITS)
    return Unit(f"{seconds // WEEK}-week stretch", seconds)


def shared_point(windows: int, span: timedelta, most: int) -> int | None:
    """Seconds of time that share a point of a picture, None where each window has its own: `windows` that start within
    `span` get at most `most` points."""
    if windows <= most:
        return None
    return next(length for length in LENGTHS if span.total_seconds() / length <= most - 1)


def number_of(at: datetime, seconds: int) -> int:
    """Which stretch of `seconds` a moment is in; 0 begins on Monday 5 January 1970."""
    return (at - MONDAY) // timedelta(seconds=seconds)


def number_of_micros(micros: int, seconds: int) -> int:
    """As `number_of`, of microseconds since the epoch."""
    return (micros - MONDAY_MICROS) // (seconds * SECOND)


def apart(before: datetime, after: datetime, bucket: int | None, step: float) -> bool:
    """Whether a window is missing between two neighbours that start at these moments; of windows that share points by
    stretches of `bucket` seconds, whether a stretch is. `step`: seconds from a window to the next."""
    if bucket:
        return number_of(after, bucket) - number_of(before, bucket) > 1
    return (after - before).total_seconds() > 1.5 * step
