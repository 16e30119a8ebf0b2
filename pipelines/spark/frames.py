"""Tables of this process as Spark's, and the other way round."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StringType

from trendlake.pipelines.spark.columns import column

LARGE = 64 << 20
"""Bytes from which on a table goes to a Spark on this machine as a file: else Java would hold all of it in memory."""


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of an Arrow table. PySpark 4.2 takes an empty chunk, as a filter may leave one, for the end of a table,
    and what comes after it is lost."""
    if table.nbytes > LARGE and str(spark.sparkContext.master).startswith("local"):
        return _by_file(spark, table)
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    return spark.createDataFrame(pa.Table.from_batches(batches) if batches else table.schema.empty_table())


def batches_of(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of `frame` as batches of Arrow, the first one empty. They come a partition after another: all
    rows do not have to fit in memory. Bytes that are no text are replaced, as where Spark hands over rows."""
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    yield pa.RecordBatch.from_pylist([], schema)
    whole = frame.select(
        *(_valid(column(field.name), field.dataType).alias(field.name) for field in frame.schema.fields)
    )

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    for row in whole.mapInArrow(packed, "batch binary").toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(row[0]) as stream:
            for batch in stream:
                yield pa.RecordBatch.from_arrays(
                    [values.cast(field.type) for values, field in zip(batch.columns, schema, strict=True)],
                    schema=schema,
                )


def _valid(value: Column, kind: DataType) -> Column:
    if isinstance(kind, StringType):
        return sf.make_valid_utf8(value)
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        return sf.transform(value, sf.make_valid_utf8)
    return value


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
