"""NULLs, least and greatest values of columns, held against a loop over the rows: of files written by several programs,
with row groups that say nothing."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.column_statistics import ColumnStatistics, statistics_of
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.lake.warehouse import Warehouse

TEXTS = st.one_of(st.text(max_size=5), st.sampled_from(["x" * 5000, "y" * 63, "ö" * 20]))
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), TEXTS),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "number": (pa.float64(), st.floats()),
    "money": (pa.decimal128(12, 2), st.decimals(-(10**9), 10**9, places=2)),
    "yes": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "at": (pa.timestamp("us", "UTC"), st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()}), max_size=6)


def here(path: Path) -> TableHere:
    def no_spark() -> Any:
        raise AssertionError("Spark is started")

    return table_here(Lake(Warehouse(str(path.parent)), no_spark, plain_paths=True), str(path))


def slow(rows: list[dict[str, Any]], name: str) -> ColumnStatistics:
    nulls, low, high = 0, None, None
    for row in rows:
        value = row.get(name)
        if value is None:
            nulls += 1
        elif value == value:
            low = value if low is None or _before(value, low) else low
            high = value if high is None or _before(high, value) else high
    return ColumnStatistics(nulls, True, _plain(low), _plain(high))


def _short(statistics: ColumnStatistics) -> ColumnStatistics:
    """Files cut texts off after 64 bytes."""
    low, high = (end.encode()[:63] if isinstance(end, str) else end for end in (statistics.low, statistics.high))
    return replace(statistics, low=low, high=high)


def _before(one: Any, other: Any) -> bool:
    """Texts in the order of their bytes."""
    return bool(one.encode() < other.encode() if isinstance(one, str) else one < other)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return value


@given(st.lists(ROWS, min_size=1, max_size=3), st.booleans())
@settings(max_examples=25, deadline=None)
def test_they_are_those_of_a_loop_over_the_rows(parts: list[list[dict[str, Any]]], small_groups: bool) -> None:
    """Each part is a file, some with a row group for each two rows; NaN is left out, and -0.0 is 0.0."""
    with tempfile.TemporaryDirectory() as folder:
        path, rows = Path(folder) / "table", list[dict[str, Any]]()
        for part in parts:
            asked = WriterProperties(max_row_group_size=2) if small_groups else None
            write_deltalake(path, pa.Table.from_pylist(part, SCHEMA), mode="append", writer_properties=asked)
            rows += part
        statistics = statistics_of(here(path), SCHEMA.names)
    for name in SCHEMA.names:
        assert _short(statistics[name]) == _short(slow(rows, name)), name
        assert (
            not isinstance(statistics[name].low, float)
            or math.copysign(1, statistics[name].low) == 1
            or statistics[name].low
        )


def test_a_column_that_files_lack_is_null_there(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(path, pa.table({"id": pa.array([1, 2])}))
    write_deltalake(path, pa.table({"id": pa.array([3]), "more": pa.array([7])}), mode="append", schema_mode="merge")
    assert statistics_of(here(path), ["more"]) == {"more": ColumnStatistics(2, True, 7, 7)}


def test_files_that_say_nothing_are_read_where_they_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lists only NULLs are known. Where the rows are many, nothing is."""
    path = tmp_path / "table"
    rows = pa.table({"id": pa.array([2, None, 1]), "list": pa.array([["a"], None, []])})
    write_deltalake(path, rows)
    (file,) = path.glob("*.parquet")
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(file), file, write_statistics=False)
    table = replaced(path)
    assert statistics_of(table, ["id", "list"]) == {
        "id": ColumnStatistics(1, True, 1, 2),
        "list": ColumnStatistics(1, False),
    }
    monkeypatch.setattr(limits, "READ", 2)
    assert statistics_of(table, ["id", "list"]) == {"id": ColumnStatistics(), "list": ColumnStatistics()}


def replaced(path: Path) -> TableHere:
    """Whose file has been written again: by its own numbers, not the log's."""
    assert DeltaTable(path).version() == 0
    return here(path)


def test_more_statistics_than_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    write_deltalake(path, pa.table({"id": pa.array([Decimal("1.5")])}))
    monkeypatch.setattr(limits, "STATISTICS", 0)
    with pytest.raises(NotHereError):
        statistics_of(here(path), ["id"])
