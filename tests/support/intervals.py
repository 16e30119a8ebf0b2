"""Events with intervals: the worked cases of kind algebra, whose `start` and `end` are seconds in the file and
microseconds here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa

from tests.reference.automaton.expression import EPOCH
from tests.support.cases import CASES
from tests.support.engines import TIME, to_table
from trendlake.cep_core.yaml.source import read_yaml

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Case:
    """One worked case. `upstream`: patterns that are evaluated before, one after the other."""

    name: str
    query: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    expect: Sequence[Mapping[str, Any]]
    upstream: Sequence[Mapping[str, Any]]


@cache
def load() -> list[Case]:
    """The cases of tests/cases/algebra.yaml."""
    raw = read_yaml(CASES / "algebra.yaml").data
    return [
        Case(one["name"], one["query"], one["events"], [_timed(row) for row in one["expect"]], one.get("upstream", ()))
        for one in raw
    ]


def _timed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(cell * 1_000_000) if name in ("start", "end") else cell for name, cell in row.items()}


def table_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Rows as an Arrow table; `start` is seconds, or None."""
    timed = [
        {
            name: EPOCH + timedelta(seconds=cell) if name == "start" and cell is not None else cell
            for name, cell in row.items()
        }
        for row in rows
    ]
    starts = {"start": TIME} if any("start" in row for row in rows) else {}
    return to_table(timed, {**starts, **(types or {})})


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """A result's rows, times in microseconds."""
    return [
        {name: (cell - EPOCH) // MICROSECOND if isinstance(cell, datetime) else cell for name, cell in row.items()}
        for row in table.to_pylist()
    ]
