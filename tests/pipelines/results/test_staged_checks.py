"""The verdicts on many staged rows, by Spark's workers: those on few, in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from trendlake.cep_core.events.schema import TIME_TYPE
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.lake import limits
from trendlake.pipelines.results.staged_checks import judged

pytestmark = pytest.mark.spark

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
@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("delimited", [False, True])
def test_rows_that_share_a_key(
    spark: SparkSession, name: str, delimited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"g": "other", "x": 77.0, "tags": [], "end": 20} | OTHER[name]
    rows = [*ROWS, other, other | {"g": None}] if "broken" in name else [*ROWS, other]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA))
    owned = ("end", 0, 60) if delimited else None
    few = judged(frame, RULES, "results", len(rows), owned)
    monkeypatch.setattr(limits, "VALIDATED", 0)
    assert judged(frame, RULES, "results", len(rows), owned) == few
    assert few[0][1].success == (name == "all different")


def test_keys_with_lists(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [Rule("key", "unique", ("g", "tags"))]
    frame = spark.createDataFrame(pa.Table.from_pylist([*ROWS, ROWS[0]], SCHEMA))
    monkeypatch.setattr(limits, "VALIDATED", 0)
    (check,), rows, outside = judged(frame, rules, "results", 41, None)
    assert (check.success, check.data["broken"], rows, outside) == (False, 2, 41, 0)
