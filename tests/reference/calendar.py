"""Calendar windows by a walk over days with `zoneinfo`: slow, and shares no code with the engine.

When a date begins is found by asking the clock minute by minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MONTHS = {"month": 1, "quarter": 3, "year": 12}


class Window(NamedTuple):
    """Half-open, moments of UTC; `date`: the date at which it begins, be it skipped."""

    start: datetime
    end: datetime
    date: date


@cache
def zone_of(name: str) -> ZoneInfo:
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def shown(moment: datetime, zone: str) -> datetime:
    """What the clock shows, without a zone."""
    return moment.astimezone(zone_of(zone)).replace(tzinfo=None, fold=0)


@cache
def begins(reading: datetime, zone: str) -> datetime:
    """The first moment at which the clock shows `reading` or later."""
    moment = reading.replace(tzinfo=UTC) - 27 * HOUR
    while shown(moment + HOUR, zone) < reading and not _set_back(moment, zone):
        moment += HOUR
    while shown(moment, zone) < reading:
        moment += MINUTE
    return moment


def _set_back(moment: datetime, zone: str) -> bool:
    """Within the hour after it: then each minute is looked at."""
    return shown(moment + HOUR, zone) - shown(moment, zone) < HOUR


def windows(within: str, slide: str | None, origin: str | None, zone: str, moment: datetime) -> Iterator[Window]:
    """The windows of days to years that exist and hold `moment`."""
    many, unit = _parts(within)
    step, step_unit = _parts(slide or within)
    first = datetime.fromisoformat(origin) if origin else datetime(1970, 1, 1)
    if origin is None and step_unit == "week":
        first = datetime(1969, 12, 29)
    here = shown(moment, zone)
    lengths = {"day": 1, "week": 7}
    if unit in lengths:
        days, every = many * lengths[unit], step * lengths[step_unit]
        day = first + timedelta(days=((here - first).days // every + 2) * every)
        while day > here - timedelta(days=days + every + 3):
            yield from _holding(day, day + timedelta(days=days), day + timedelta(days=every), zone, moment)
            day -= timedelta(days=every)
        return
    months, every = many * MONTHS[unit], step * MONTHS[step_unit]
    number = ((here.year - first.year) * 12 + here.month - first.month) // every * every + 2 * every
    for start in range(number, number - months - 4 * every - 2, -every):
        yield from _holding(*(_later(first, start + more) for more in (0, months, every)), zone, moment)


def _holding(day: datetime, end: datetime, after: datetime, zone: str, moment: datetime) -> Iterator[Window]:
    window = Window(begins(day, zone), begins(end, zone), day.date())
    if window.start <= moment < window.end and window.start < begins(after, zone):
        yield window


def _later(first: datetime, months: int) -> datetime:
    years, month = divmod(first.month - 1 + months, 12)
    return first.replace(year=first.year + years, month=month + 1)


def _parts(text: str) -> tuple[int, str]:
    count, unit = text.split()
    return int(count), unit.removesuffix("s")
