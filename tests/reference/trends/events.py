"""Rows to events in their total order, and the windows that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from tests.reference.trends.query import Query
from tests.reference.trends.values import OutsideLanguageError, Value, microseconds, value_of

NAMES = {"id": "event_id", "type": "event_type", "time": "event_time"}
"""The worked cases' short names of the three columns every event has."""


@dataclass(frozen=True)
class Event:
    """`place` counts events in the total order; `time` is in microseconds; `values` has every column. `sequence`: its
    number among those of one time, if it has one."""

    place: int
    time: int
    type: str
    values: Mapping[str, Value]
    sequence: Any = None


def events_of(rows: Iterable[Mapping[str, Any]], sequence: str | None) -> list[Event]:
    """The rows in total order: time, then `sequence` if the contract names one, else the id.

    A row has `id`, `type` and `time` (seconds or a datetime), and attributes; what a row lacks is NULL.
    """
    named = [{NAMES.get(name, name): value for name, value in row.items()} for row in rows]
    columns = dict.fromkeys(name for row in named for name in row)
    cells = [
        {name: _time(row[name]) if name == "event_time" else value_of(row.get(name)) for name in columns}
        for row in named
    ]

    def place(row: Mapping[str, Any]) -> tuple[Any, ...]:
        number = row[sequence] if sequence else None
        return row["event_time"], number is not None, number or 0, row["event_id"]

    ordered = sorted(cells, key=place)
    if len({row["event_id"] for row in cells}) < len(cells):
        raise OutsideLanguageError("two events of one id")
    numbers = [row[sequence] if sequence else None for row in ordered]
    return [
        Event(place, row["event_time"], row["event_type"], row, number)
        for place, (row, number) in enumerate(zip(ordered, numbers, strict=True))
    ]


def _time(raw: Any) -> int:
    if isinstance(raw, date):
        return microseconds(raw)
    exact = Fraction(raw) * 1_000_000
    if exact.denominator != 1:
        raise OutsideLanguageError(f"{raw} seconds is finer than a microsecond")
    return int(exact)


def windows(query: Query, events: Sequence[Event]) -> list[tuple[int, list[Event]]]:
    """(start of window j, the events in [start, start + within)), for every window with an event."""
    starts: set[int] = set()
    for event in events:
        newest = (event.time - query.origin) // query.slide
        oldest = (event.time - query.origin - query.within) // query.slide + 1
        starts.update(query.origin + j * query.slide for j in range(oldest, newest + 1))
    return [
        (start, [event for event in events if start <= event.time < start + query.within]) for start in sorted(starts)
    ]
