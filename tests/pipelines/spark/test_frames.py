"""Arrow tables as Spark's: the same rows, whether they go by Java's memory or by a file."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from trendlake.pipelines.spark import frames
from trendlake.pipelines.spark.frames import frame_of

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "text": pa.array(["NA", None, ""]),
        "tiny": pa.array([-128, None, 1], pa.int8()),
        "small": pa.array([1, None, 2], pa.int16()),
        "whole": pa.array([1, None, 2], pa.int32()),
        "big": pa.array([2**63 - 1, None, 2], pa.int64()),
        "float": pa.array([0.1, None, float("inf")], pa.float32()),
        "double": pa.array([0.1, None, float("-inf")]),
        "decimal": pa.array([Decimal("1.50"), None, Decimal(-7)], pa.decimal128(38, 10)),
        "truth": pa.array([True, None, False]),
        "day": pa.array([date(1500, 2, 28), None, date(9999, 12, 31)]),
        "at": pa.array([datetime(1, 1, 1, tzinfo=UTC), None, datetime(1582, 10, 10, 0, 0, 0, 1, UTC)]).cast(
            pa.timestamp("us", "UTC")
        ),
    }
)


def test_large_tables_go_by_a_file(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types, NULL, days before 1582 and the last microsecond."""
    plain = frame_of(spark, ROWS)
    monkeypatch.setattr(frames, "LARGE", 0)
    by_file = frame_of(spark, ROWS)
    assert by_file.inputFiles()
    assert [(field.name, field.dataType) for field in by_file.schema] == [
        (field.name, field.dataType) for field in plain.schema
    ]
    assert by_file.toArrow().to_pylist() == plain.toArrow().to_pylist() == ROWS.to_pylist()
