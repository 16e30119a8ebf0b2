"""Values of rules, checked against their columns' types."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.events.schema import family
from trendlake.pipelines.contracts.rules import Rule

_KINDS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "int": pa.int64(),
    "double": pa.float64(),
}
"""A type of each family of columns."""
_WORDS = {
    "string": "a text",
    "boolean": "true or false",
    "date": "a day, such as 2026-01-31",
    "timestamp": "a time, such as 2026-01-31T09:00:00Z",
    "int": "a number",
    "double": "a number",
}


def value_of(value: Any, kind: pa.DataType) -> Any:
    """A value of a contract as one that a column of a type can have; None where it cannot. Days and times may be texts;
    a time without an offset is UTC."""
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else None
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        moment = _moment(value)
        if moment is None or pa.types.is_timestamp(kind):
            return moment
        return moment.date() if moment == datetime(moment.year, moment.month, moment.day, tzinfo=UTC) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not number or not plain or (not pa.types.is_floating(kind) and not math.isfinite(value)):
        return None
    return value


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return datetime(value.year, value.month, value.day, tzinfo=UTC) if isinstance(value, date) else None


def rule_faults(rule: Rule, types: Mapping[str, str]) -> Iterator[TrendlakeError]:
    """The faults of a rule that its column's type does not take: it would be true of no row, or of all. `types`:
    Spark's, of columns."""
    if rule.kind not in ("in_set", "not_missing", "pattern", "length") or not types.get(rule.columns[0]):
        return
    name, kind = rule.columns[0], family(types[rule.columns[0]])
    if rule.kind in ("pattern", "length"):
        if kind != "string":
            yield BadValueError(f"'{name}' has no texts: a {rule.kind} is for a column of texts", place=rule.place)
        return
    if kind not in _KINDS:
        yield BadValueError(f"a column of type {types[name]} has no list of values", place=rule.place)
        return
    for value in rule.values:
        absent = value is None or (value == "" and rule.kind == "not_missing")  # "" is a default, of texts
        if not absent and value_of(value, _KINDS[kind]) is None:
            yield BadValueError(f"a value of '{name}' is {_WORDS[kind]}, not {value!r}", place=rule.place)
