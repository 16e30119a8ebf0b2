"""The engines that answer a query of kind trends, all asked and answering in the same shape.

Rows in: as in the worked cases (`id`, `type`, `time` in seconds, attributes). Rows out: as by `reference`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from tests.reference.trends import reference
from tests.reference.trends.events import NAMES
from trendlake.cep_core import evaluate

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Engine: TypeAlias = Callable[[Mapping[str, Any], Rows], list[dict[str, Any]]]

TIME = pa.timestamp("us", tz="UTC")


def to_table(rows: Rows, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Rows as an Arrow table with `event_id`, `event_type`, `event_time` and the attributes.

    `types` gives columns their types, also columns no row has; else Arrow finds them (all NULL: string).
    """
    columns: dict[str, pa.Array] = {}
    for short, name in NAMES.items():
        cells = [row[short] for row in rows]
        if short == "time":
            cells = [int(Fraction(cell) * 1_000_000) for cell in cells]
        columns[name] = pa.array(cells, TIME if short == "time" else None if rows else pa.string())
    known = dict(types or {})
    for name in dict.fromkeys([*known, *(name for row in rows for name in row if name not in NAMES)]):
        values = pa.array([row.get(name) for row in rows], known.get(name))
        columns[name] = values.cast(pa.string()) if pa.types.is_null(values.type) else values
    return pa.table(columns)


def from_table(table: pa.Table) -> list[dict[str, Any]]:
    """A result table's rows: counts as ints, window bounds in microseconds."""
    columns = {
        field.name: [_count(field.name, cell) for cell in table[field.name].to_pylist()]
        if pa.types.is_decimal(field.type)
        else table[field.name].cast(pa.int64()).to_pylist()
        if pa.types.is_timestamp(field.type) and field.name in ("window_start", "window_end")
        else table[field.name].to_pylist()
        for field in table.schema
    }
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _count(name: str, cell: Any) -> int | None:
    if cell is not None and cell != int(cell):
        raise ValueError(f"{name}: {cell} is no count")
    return None if cell is None else int(cell)


def kernels(
    query: Mapping[str, Any], rows: Rows, types: Mapping[str, pa.DataType] | None = None
) -> list[dict[str, Any]]:
    """`cep_core.trends.run.run`: the compiled plan on numpy kernels."""
    return from_table(evaluate(query, to_table(rows, types)))


ENGINES: Mapping[str, Engine] = {"reference": reference, "kernels": kernels}


def differences(
    expected: list[dict[str, Any]], actual: list[dict[str, Any]], group_by: Sequence[str] = ()
) -> list[str]:
    """How two answers differ: counts, bounds and groups exactly, doubles to 1e-9; rows in any order."""
    key_names = (*group_by, "window_start")
    wanted, got = (_by_key(rows, key_names) for rows in (expected, actual))
    lines = [f"{key}: row missing" for key in wanted.keys() - got.keys()]
    lines += [f"{key}: row not expected" for key in got.keys() - wanted.keys()]
    if len(got) < len(actual):
        lines.append("several rows of one group and window")
    for key in wanted.keys() & got.keys():
        if wanted[key].keys() != got[key].keys():
            lines.append(f"columns {sorted(wanted[key])} expected, found {sorted(got[key])}")
            continue
        lines += [
            f"{key}: {name} {cell!r} expected, found {got[key][name]!r}"
            for name, cell in wanted[key].items()
            if not _same(cell, got[key][name])
        ]
    return sorted(lines)


def _by_key(rows: list[dict[str, Any]], names: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in names): row for row in rows}


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        return math.isclose(expected, actual, rel_tol=1e-9, abs_tol=0.0)
    return type(expected) is type(actual) and bool(expected == actual)
