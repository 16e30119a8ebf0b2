"""The worked cases of `lookup`, tests/cases/lookups.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from tests.support.cases import CASES
from tests.support.engines import TIME, to_table
from trendlake.cep_core.events.lookup import VERSION
from trendlake.cep_core.yaml.source import plain, read_yaml

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TYPES = {"date": pa.date32(), "bigint": pa.int64(), "string": pa.string(), "timestamp": TIME}


@dataclass(frozen=True)
class Case:
    """One worked case: its events, reference tables, and rows or the text of its error."""

    name: str
    query: Mapping[str, Any]
    events: pa.Table
    reference: Mapping[str, pa.Table]
    expect: Sequence[Mapping[str, Any]]
    error: str | None
    place: str | None
    hint: str | None
    report: Mapping[str, Any] | None


@cache
def load() -> list[Case]:
    """All cases."""
    return [_case(one) for one in plain(read_yaml(CASES / "lookups.yaml").data)]


def _case(one: Mapping[str, Any]) -> Case:
    types = one.get("types", {})
    of_events = {name: _type(kind) for name, kind in types.get("events", {}).items()}
    rows = [{name: _cell(cell, of_events.get(name)) for name, cell in row.items()} for row in one["events"]]
    tables = {name: _table(rows, types.get(name, {})) for name, rows in one["reference"].items()}
    if "version" in one:
        stamp = {VERSION: str(one["version"]).encode()}
        tables = {name: table.replace_schema_metadata(stamp) for name, table in tables.items()}
    return Case(
        one["name"],
        one["query"],
        to_table(rows, of_events),
        tables,
        one.get("expect", []),
        one.get("error"),
        one.get("place"),
        one.get("hint"),
        one.get("report"),
    )


def _table(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> pa.Table:
    known = {name: _type(kind) for name, kind in types.items()}
    names = dict.fromkeys([*known, *(name for row in rows for name in row)])
    cells = {name: [_cell(row.get(name), known.get(name)) for row in rows] for name in names}
    return pa.table({name: pa.array(values, known.get(name) or _found(values)) for name, values in cells.items()})


def _found(values: Sequence[Any]) -> pa.DataType | None:
    return TIME if any(isinstance(value, datetime) for value in values) else None


def _type(name: str) -> pa.DataType:
    digits = _DECIMAL.fullmatch(name)
    return pa.decimal128(int(digits[1]), int(digits[2])) if digits else _TYPES[name]


def _cell(value: Any, kind: pa.DataType | None) -> Any:
    if not isinstance(value, str):
        return value
    if kind is not None and pa.types.is_date(kind):
        return date.fromisoformat(value)
    if kind is not None and pa.types.is_decimal(kind):
        return Decimal(value)
    return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(UTC) if _MOMENT.fullmatch(value) else value
