"""The verdicts on many staged rows, by file or by Spark's workers: those on few, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.results.staged_checks import judged, judged_by_file
from trendlake.pipelines.rules.great_expectations import judge

SCHEMA = pa.schema({"g": pa.string(), "x": pa.float64(), "tags": pa.list_(pa.string()), "end": TIME_TYPE})
RULES = [
    Rule("g_there", "not_null", ("g",)),
    Rule("key", "unique", ("g", "x")),
    Rule("alone", "unique", ("x",), warning=True),
]
ROWS = [{"g": f"g{n}", "x": float(n), "tags": ["t"], "end": 10 + n} for n in range(40)]
OTHER: dict[str, dict[str, Any]] = {
    "all different": {},
    "one key": {"g": "g3", "x": 3.0},
    "a key of a broken row": {"g": None, "x": 3.0},
    "a key outside of the windows": {"g": "g3", "x": 3.0, "end": 99},
}


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("delimited", [False, True])
def test_rows_that_share_a_key(
    spark: SparkSession, name: str, delimited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_with(name)
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA))
    owned = ("end", 0, 60) if delimited else None
    few = judged(frame, RULES, "results", len(rows), owned)
    monkeypatch.setattr(limits, "VALIDATED", 0)
    assert judged(frame, RULES, "results", len(rows), owned) == few
    assert few[0][1].success == (name == "all different")


def rows_with(name: str) -> list[dict[str, Any]]:
    other = {"g": "other", "x": 77.0, "tags": [], "end": 20} | OTHER[name]
    return [*ROWS, other, other | {"g": None}] if "broken" in name else [*ROWS, other]


def files_of(rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    """The rows in three files, of which one has none."""
    files = [folder / f"{number}.parquet" for number in range(3)]
    for file, part in zip(files, (rows[:10], rows[10:], []), strict=True):
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), file)
    return files


BROKEN: dict[str, list[dict[str, Any]]] = {
    "all different": rows_with("all different"),
    "broken rows": [*ROWS, *({"g": None, "x": 100.0 + n, "tags": [], "end": 5} for n in range(3))],
    "rows outside": [*ROWS, {"g": "late", "x": 100.0, "tags": [], "end": 60}, {"g": "h", "x": 101.0, "end": -1}],
    "a row without a key": [*ROWS, {"g": "h", "x": None, "end": 5}, {"g": "i", "x": None, "end": 5}],
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_are_judged_as_their_rows(name: str, tmp_path: Path) -> None:
    """Of the same rows in one table Great Expectations says the same."""
    rows = BROKEN[name]
    owned = ("end", 0, 60)
    few = judge(pa.Table.from_pylist(rows, SCHEMA), RULES, "results")
    outside = sum(not 0 <= row["end"] < 60 for row in rows)
    assert judged_by_file(files_of(rows, tmp_path), SCHEMA, RULES, "results", owned) == (few, len(rows), outside)


def test_files_that_only_spark_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that share a key, keys with lists, and more rows than hashes are held of."""
    owned = ("end", 0, 60)
    with pytest.raises(NotHereError, match="share a key"):
        judged_by_file(files_of(rows_with("one key"), tmp_path), SCHEMA, RULES, "results", owned)
    listed = [Rule("key", "unique", ("g", "tags"))]
    with pytest.raises(NotHereError, match="lists"):
        judged_by_file(files_of(ROWS, tmp_path), SCHEMA, listed, "results", owned)
    monkeypatch.setattr(limits, "KEYS_COMPARED", 39)
    with pytest.raises(NotHereError, match="40 staged rows"):
        judged_by_file(files_of(ROWS, tmp_path), SCHEMA, RULES, "results", owned)


@pytest.mark.spark
def test_keys_with_lists(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [Rule("key", "unique", ("g", "tags"))]
    frame = spark.createDataFrame(pa.Table.from_pylist([*ROWS, ROWS[0]], SCHEMA))
    monkeypatch.setattr(limits, "VALIDATED", 0)
    (check,), rows, outside = judged(frame, rules, "results", 41, None)
    assert (check.success, check.data["broken"], rows, outside) == (False, 2, 41, 0)
