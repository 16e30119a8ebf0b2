"""Documents of tests of kind xml_join as a table, and results as rows to compare."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from trendlake.cep_core import evaluate
from trendlake.cep_core.errors import DocumentWarning
from trendlake.cep_core.events.schema import TIME_TYPE

MICROS = 1_000_000


def documents_table(documents: Sequence[Mapping[str, Any]]) -> pa.Table:
    """`id`, `time` (microseconds) and `xml` as the columns that `evaluate` reads."""
    return pa.table(
        {
            "event_id": pa.array([one["id"] for one in documents], pa.string()),
            "event_time": pa.array([one["time"] for one in documents], pa.int64()).cast(TIME_TYPE),
            "document": pa.array([one["xml"] for one in documents], pa.string()),
        }
    )


def rows_of(table: pa.Table) -> set[tuple[tuple[str, Any], ...]]:
    """Rows without `answer_id`, as the reference writes them; times in microseconds."""
    columns = {
        name: (table[name].cast(pa.int64()) if name in ("start", "end") else table[name]).to_pylist()
        for name in table.column_names
    }
    ids = columns.pop("answer_id")
    assert len(set(ids)) == len(ids)
    assert all(len(one) == 32 for one in ids)
    rows = [tuple(sorted(zip(columns, cells, strict=True))) for cells in zip(*columns.values(), strict=True)]
    assert len(set(rows)) == len(rows)
    return set(rows)


def engine(query: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> set[tuple[tuple[str, Any], ...]]:
    """The engine's rows; documents that break a rule are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DocumentWarning)
        return rows_of(evaluate(query, documents_table(documents)))


def in_micros(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Documents whose times are seconds, as worked cases have them."""
    return [{**one, "time": round(one["time"] * MICROS)} for one in documents]
