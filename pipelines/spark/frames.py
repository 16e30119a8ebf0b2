"""Tables of this process as Spark's."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

LARGE = 64 << 20
"""Bytes from which on a table goes to a Spark on this machine as a file: else Java would hold all of it in memory."""


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of an Arrow table. PySpark 4.2 takes an empty chunk, as a filter may leave one, for the end of a table,
    and what comes after it is lost."""
    if table.nbytes > LARGE and str(spark.sparkContext.master).startswith("local"):
        return _by_file(spark, table)
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    return spark.createDataFrame(pa.Table.from_batches(batches) if batches else table.schema.empty_table())


def _by_file(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows by way of a Parquet file, which is there until this process ends."""
    path = Path(tempfile.mkdtemp(dir=_folder())) / "rows.parquet"
    pyarrow.parquet.write_table(table, path)
    # days before 1582 are what they are: Arrow has one calendar only
    return spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(path.as_uri())


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="trendlake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
