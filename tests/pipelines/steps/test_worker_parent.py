"""Spark's Python workers begin with what they need."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NEEDED = (
    "numba",
    "pyarrow",
    "trendlake.cep_core",
    "trendlake.pipelines.execute.worker",
    "trendlake.pipelines.results.staging",
)


def test_a_worker_has_loaded_the_engine(spark: SparkSession) -> None:
    """Before its first task asks for it, and as every worker of this process's Spark: they are copies of one."""

    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for _ in batches:
            names = [name for name in NEEDED if name in sys.modules]
            yield pa.RecordBatch.from_pydict({"names": [names], "parent": [os.getppid()]})

    rows = spark.range(4, numPartitions=4).mapInArrow(loaded, "names array<string>, parent bigint").collect()
    assert [row.names for row in rows] == [list(NEEDED)] * 4
    (parent,) = {row.parent for row in rows}
    with open(f"/proc/{parent}/cmdline", "rb") as command:
        assert b"trendlake.pipelines.steps.worker_parent" in command.read().split(b"\0")
