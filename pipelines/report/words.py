"""How the page says things: groups, windows, intervals, durations, plurals. A time that is not UTC has its offset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from trendlake.pipelines.report.facts import GroupKey, Window

NO_VALUE = "(no value)"


def group_label(key: GroupKey, columns: Sequence[str]) -> str:
    """`UA`, `UA · JFK`; `all events` for a pattern without groups; `NO_VALUE` for a NULL."""
    if not columns:
        return "all events"
    return " · ".join(NO_VALUE if value is None else value if value.strip() else repr(value) for value in key)


def upper_first(words: str) -> str:
    """`words` with a capital, the rest as it is."""
    return words[:1].upper() + words[1:]


def day(moment: datetime) -> str:
    """`Tue 1 Jan 2013`."""
    return f"{moment:%a} {moment.day} {moment:%b %Y}"


def clock(moment: datetime) -> str:
    """`10:00`, with seconds and microseconds only where there are any."""
    if moment.microsecond:
        return f"{moment:%H:%M:%S.%f}".rstrip("0")
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def clock_range(start: datetime, end: datetime) -> str:
    """`23:50 – 24:00`, not to be broken."""
    return f"{clock(start)}\u00a0–\u00a0{'24:00' if _midnight(end) else clock(end)}"


def stamp(moment: datetime) -> str:
    """`1 Jan 2013, 10:00`; `1 Jan 2013, 10:00 -05:00`."""
    return f"{moment.day} {moment:%b %Y}, {clock(moment)}{_offset(moment)}"


def _offset(moment: datetime) -> str:
    """Nothing of a moment in UTC."""
    offset = moment.utcoffset()
    if not offset:
        return ""
    minutes = abs(round(offset.total_seconds() / 60))
    return f" {'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"


def interval_label(start: datetime, end: datetime) -> str:
    """`[start, end)` in the fewest words: whole days as days, 24 hours by their start, one day's hours as hours."""
    whole_days = _midnight(start) and _midnight(end)
    if whole_days and end - start == timedelta(days=1):
        return day(start)
    if end - start == timedelta(days=1):
        return f"{day(start)}, from\u00a0{clock(start)}"
    if whole_days and end > start:
        last = end - timedelta(days=1)
        return day(start) if last.date() == start.date() else f"{day(start)} – {day(last)}"
    if start.date() == end.date() or (_midnight(end) and end - start <= timedelta(days=1)):
        return f"{start.day} {start:%b %Y}, {clock_range(start, end)}"
    return f"{stamp(start)} – {stamp(end)}"


def extent_label(first: datetime, last: datetime) -> str:
    """From the first to the last of some moments, both of them included: `Wed 24 Mar 2010 – Mon 11 Oct 2010`, within a
    day `5 Jan 2026, 10:00 – 10:30`."""
    if first == last:
        return stamp(first)
    if first.date() == last.date():
        return f"{stamp(first)}\u00a0–\u00a0{clock(last)}"
    return f"{day(first)} – {day(last)}"


def moments_label(window: Window) -> str:
    """From a first event to a last one, both with their time: neither is the edge of anything."""
    start, end = window.start, window.end
    if start.date() == end.date():
        return f"{stamp(start)}\u00a0–\u00a0{clock(end)}"
    return f"{stamp(start)} – {stamp(end)}"


def window_label(window: Window) -> str:
    """A window, as its interval."""
    return interval_label(window.start, window.end)


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`; `–` when unknown."""
    if seconds is None:
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"


def _midnight(moment: datetime) -> bool:
    return (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
