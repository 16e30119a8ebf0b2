"""The worked cases of `sources` (tests/cases/sources.yaml): tables as Arrow has them, and the answer of the engine."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.cases import CASES
from tests.support.engines import TIME
from trendlake.cep_core import EventSchema, PatternErrors, TrendlakeError, compile_query, evaluate, run_plan
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.yaml.source import plain, read_yaml

NAMES = {"id": "event_id", "time": "event_time", "type": "event_type"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
KINDS: Mapping[str, pa.DataType] = {"null": pa.null(), "string": pa.string(), "date": pa.date32()}


@dataclass(frozen=True)
class Case:
    """One worked case; `error`: how it begins."""

    name: str
    query: dict[str, Any]
    rows: Mapping[str, list[dict[str, Any]]]
    roles: Mapping[str, Mapping[str, str]]
    types: Mapping[str, Mapping[str, str]]
    known: Mapping[str, list[str]]
    sequence: str | None
    expect: list[dict[str, Any]]
    error: str | None
    at: str | None

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables."""
        return {name: self._table(name, rows) for name, rows in self.rows.items()}

    def _table(self, name: str, rows: list[dict[str, Any]]) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        for key in dict.fromkeys(["id", "time", *(key for row in rows for key in row)]):
            cells = [row.get(key) for row in rows]
            column = self.roles.get(name, {}).get(key, NAMES.get(key, key))
            if key == "time":
                columns[column] = pa.array([None if cell is None else cell * 1_000_000 for cell in cells], TIME)
            else:
                kind = self.types.get(name, {}).get(column)
                columns[column] = _array(cells, kind if rows else "string")
        return pa.table(columns)

    def role(self, role: str) -> dict[str, str]:
        """The columns of a role by table."""
        return {name: self.roles.get(name, {}).get(role, NAMES[role]) for name in self.rows}

    def answer(self) -> pa.Table:
        """The engine's rows. Raises TrendlakeError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "sources" not in self.query:
                return evaluate(self.query, next(iter(self.tables.values())))
            if not self.known:
                roles: dict[str, Any] = {NAMES[role]: self.role(role) for role in NAMES}
                return evaluate(self.query, self.tables, sequence=self.sequence, **roles)
            return run_plan(compile_query(self.query, self.schemas()), self.tables)

    def schemas(self) -> dict[str, EventSchema]:
        """As contracts would state them, which know the types of their tables."""
        result = {}
        for name, table in self.tables.items():
            columns = dict(schema_of(table, event_time=self.role("time")[name], roles=("event_time",)).columns)
            kind = self.role("type")[name] if self.role("type")[name] in columns else ""
            sequence = self.sequence if self.sequence in columns else None
            types = tuple(self.known[name]) if name in self.known else None
            result[name] = EventSchema(columns, self.role("id")[name], self.role("time")[name], kind, sequence, types)
        return result

    def mistake(self) -> tuple[str, str]:
        """The first error of the answer as `error` has it, and its place."""
        try:
            rows = self.answer()
        except PatternErrors as failure:
            error = failure.errors[0]
        except TrendlakeError as failure:
            error = failure
        else:
            return f"rows: {rows.to_pylist()}", ""
        hint = f" | {error.hint}" if error.hint else ""
        return f"[{error.code}] {error.message}{hint}", str(error.place.file if error.place else "")


def _array(cells: list[Any], kind: str | None) -> pa.Array:
    if kind is not None and (digits := _DECIMAL.fullmatch(kind)):
        values = [None if cell is None else Decimal(cell) for cell in cells]
        return pa.array(values, pa.decimal128(int(digits[1]), int(digits[2])))
    if kind == "date":
        cells = [None if cell is None else date.fromisoformat(cell) for cell in cells]
    return pa.array(cells, None if kind is None else KINDS[kind])


def load() -> list[Case]:
    """The cases."""
    return [
        Case(
            one["name"],
            one["query"],
            one["tables"],
            one.get("roles", {}),
            one.get("types", {}),
            one.get("known", {}),
            one.get("sequence"),
            one.get("expect", []),
            one.get("error"),
            one.get("at"),
        )
        for one in plain(read_yaml(CASES / "sources.yaml").data)
    ]


def shown(case: Case, table: pa.Table) -> list[str]:
    """The rows, with the columns that the case is about, sorted."""
    names = list(case.expect[0]) if case.expect else table.column_names
    return sorted(str({name: _cell(row[name]) for name in names}) for row in table.to_pylist())


def expected(case: Case) -> list[str]:
    """The rows that the case gives, in the same form."""
    return sorted(str({name: _cell(cell) for name, cell in row.items()}) for row in case.expect)


def _cell(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    return value.isoformat() if isinstance(value, datetime) else value
