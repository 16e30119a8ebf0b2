"""Tables of this process as Spark's."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of an Arrow table. PySpark 4.2 takes an empty chunk, as a filter may leave one, for the end of a table,
    and what comes after it is lost."""
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    return spark.createDataFrame(pa.Table.from_batches(batches) if batches else table.schema.empty_table())
