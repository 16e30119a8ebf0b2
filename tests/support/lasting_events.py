"""Events with intervals, as the worked cases write them: `start` and `time` in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tests.support.cases import Case
from tests.support.engines import TIME, to_table

SECOND = 1_000_000


def micros(seconds: Any) -> int:
    return int(Fraction(seconds) * SECOND)


def table_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Rows as by `to_table`, whose `start` is a time."""
    starts = [None if row["start"] is None else micros(row["start"]) for row in rows]
    table = to_table([{name: cell for name, cell in row.items() if name != "start"} for row in rows], types)
    return table.append_column("start", pa.array(starts, TIME))


def as_expected(case: Case, rows: list[dict[str, Any]]) -> list[str]:
    """The columns of a case of rows by `from_table`, in its order and units, as sorted texts."""
    columns = case.expect[0] if case.expect else ()
    return sorted(str({name: _cell(name, row[name]) for name in columns}) for row in rows)


def _cell(name: str, cell: Any) -> Any:
    if name == "window_start":
        return cell // SECOND
    return int(cell) if name in ("n", "long") else cell
