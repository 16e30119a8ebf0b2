"""The worked cases of kind match_recognize: their times are seconds from the epoch, in events and in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa

from tests.support.cases import CASES
from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.cep_core.yaml.source import plain, read_yaml

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROLES = {"id": "event_id", "time": "event_time", "type": "event_type"}


@dataclass(frozen=True)
class Case:
    """One worked case: its rows, or the sense of its error."""

    name: str
    query: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    expect: Sequence[Mapping[str, Any]] | None
    error: str | None
    code: str | None


@cache
def load() -> list[Case]:
    """The cases of tests/cases/match_recognize.yaml."""
    return [
        Case(one["name"], one["query"], one["events"], one.get("expect"), one.get("error"), one.get("code"))
        for one in plain(read_yaml(CASES / "match_recognize.yaml").data)
    ]


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def table_of(events: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Events as an Arrow table."""
    names = dict.fromkeys(ROLES.get(name, name) for row in events for name in row)
    rows = [
        {ROLES.get(name, name): at(cell) if name == "time" else cell for name, cell in row.items()} for row in events
    ]
    fixed = {"event_id": pa.string(), "event_time": TIME_TYPE, "event_type": pa.string(), **(types or {})}
    return pa.table({name: pa.array([row.get(name) for row in rows], fixed.get(name)) for name in names})


def seconds(cell: Any) -> Any:
    """A cell, a time as seconds from the epoch."""
    if isinstance(cell, datetime):
        return (cell - EPOCH) / timedelta(seconds=1)
    return cell


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a result, times as seconds."""
    return [{name: seconds(cell) for name, cell in row.items()} for row in table.to_pylist()]


def only(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Some columns of rows, in an order that does not depend on theirs."""
    return sorted(({name: row[name] for name in names} for row in rows), key=str)
