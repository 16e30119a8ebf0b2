"""`lookup` by loops over rows, as its page says: each event asks every row of the table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

Row = Mapping[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class RepeatedError(Exception):
    """Two rows of a key hold at one moment."""


@dataclass(frozen=True)
class LookedUp:
    """The events with the columns, NULL where there is no row; and the counts of the checks."""

    events: list[dict[str, Any]]
    missing: int
    by_key: Counter[tuple[Any, ...]]
    unused: int


def looked_up(
    events: Sequence[Row],
    table: Sequence[Row],
    lookup: Mapping[str, Any],
    zone: str | None = None,
    *,
    in_doubles: bool = False,
    event_time: str = "event_time",
    event_type: str = "event_type",
) -> LookedUp:
    """`lookup` as a pattern writes it. `in_doubles`: one of the sides of a key is a double."""
    given = lookup["key"]
    pairs = [(given, given)] if isinstance(given, str) else list(given.items())
    columns = [(one, one) if isinstance(one, str) else next(iter(one.items())) for one in lookup["columns"]]
    first, last, as_of = lookup.get("valid_from"), lookup.get("valid_to"), lookup.get("as_of", event_time)
    spans: list[tuple[tuple[Any, ...], Any, Any, Row]] = []
    unused = 0
    for row in table:
        key = tuple(value_of(row[column], in_doubles) for _, column in pairs)
        since = -math.inf if first is None or row[first] is None else moment(row[first], zone)
        until = math.inf if last is None or row[last] is None else moment(row[last], zone)
        if None in key or not since < until:
            unused += 1
            continue
        read = {column: row[column] for column in (*(x for _, x in columns), *(x for x in (first, last) if x))}
        if not any(key == k and since == s and until == u and same(read, r) for k, s, u, r in spans):
            spans.append((key, since, until, read))
    if first is not None and last is None:
        spans = [
            (k, s, min((s2 for k2, s2, _, _ in spans if k2 == k and s2 > s), default=u), r) for k, s, u, r in spans
        ]
    for i, (key, since, until, _) in enumerate(spans):
        for other, since_2, until_2, _ in spans[i + 1 :]:
            if key == other and since < until_2 and since_2 < until:
                raise RepeatedError(key)
    missing: Counter[tuple[Any, ...]] = Counter()
    result = []
    for event in events:
        row = {name: None for name, _ in columns}
        if "of" not in lookup or event[event_type] in lookup["of"]:
            key = tuple(value_of(event[name], in_doubles) for name, _ in pairs)
            time = event[as_of]
            at = None if time is None else moment(time, zone)
            holding = [r for k, s, u, r in spans if k == key and (first is None or (at is not None and s <= at < u))]
            if None in key or not holding:
                missing[key] += 1
            else:
                row = {name: holding[0][column] for name, column in columns}
        result.append({**event, **row})
    return LookedUp(result, missing.total(), missing, unused)


def value_of(value: Any, in_doubles: bool) -> Any:
    """A key as it is compared: NaN is none, -0.0 is 0.0; texts, dates and times as they are."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Fraction(float(value)) if in_doubles else Fraction(value)
    return (type(value), value)


def same(one: Row, other: Row) -> bool:
    """Whether rows are equal in all columns that are read, NULL with NULL, NaN with NaN."""
    return all(
        (a is None and b is None) or (a is not None and b is not None and (a == b or (a != a and b != b)))
        for a, b in ((one[name], other[name]) for name in one)
    )


def moment(value: Any, zone: str | None) -> Fraction:
    """Microseconds: a date is the first moment at which a clock of the zone shows its midnight, or has passed it."""
    if isinstance(value, datetime):
        return Fraction((value - EPOCH) // timedelta(microseconds=1))
    assert isinstance(value, date)
    midnight = datetime(value.year, value.month, value.day, tzinfo=UTC)
    at = midnight if zone in (None, "UTC") else midnight - timedelta(hours=16)
    while zone is not None and at.astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) < midnight:
        at += MINUTE
    return Fraction((at - EPOCH) // timedelta(microseconds=1))
