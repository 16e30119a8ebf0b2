"""Functions of Arrow arrays as functions of Spark's columns. They are sent to the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.pandas import functions
from pyspark.sql.types import DataType


def of_column(function: Callable[[pa.Array], pa.Array], kind: DataType, value: Column) -> Column:
    """`function`, from an array to one as long of values of type `kind`, of a column."""

    def ask(values: pa.Array) -> pa.Array:  # Spark reads the types: an array for an array
        return function(values)

    arrow_udf: Any = functions.arrow_udf
    asked: Column = arrow_udf(ask, kind)(value)
    return asked


def of_rows(function: Callable[[pa.RecordBatch], pa.Array], kind: DataType, columns: Mapping[str, Column]) -> Column:
    """`function`, from a batch of rows with `columns` to as many values of type `kind`."""
    named = [value.alias(name) for name, value in columns.items()] or [sf.lit(True).alias("row_there")]
    return of_column(lambda rows: function(pa.RecordBatch.from_struct_array(rows)), kind, sf.struct(*named))
