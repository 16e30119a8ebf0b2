"""Relations of DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def schema(frame: Any) -> pa.Schema:
    """Names and types of the columns."""
    table: pa.Table = frame.limit(0).to_arrow_table()
    return table.schema


def to_arrow(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns. A name is an expression's, never text in SQL. Arrow's protocol would take twice the memory."""
    from duckdb import ColumnExpression

    table: pa.Table = frame.select(*(ColumnExpression(name) for name in columns)).to_arrow_table()
    return table


def from_arrow(rows: pa.Table, like: Any) -> pa.Table:
    """A table, which DuckDB reads by the name of its variable: no relation can be made on another's connection."""
    return rows
