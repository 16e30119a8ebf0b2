"""Functions of Arrow arrays as functions of Spark's columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas import functions
from pyspark.sql.types import StringType


def text_function(function: Callable[[pa.Array], pa.Array]) -> Callable[[Column], Column]:
    """`function`, from an array to as many texts, as one of a column. It is sent to the workers."""

    def texts(values: pa.Array) -> pa.Array:  # Spark reads the types: an array for an array
        return function(values)

    arrow_udf: Any = functions.arrow_udf
    udf: Any = arrow_udf(texts, StringType())

    def of_column(value: Column) -> Column:
        result: Column = udf(value)
        return result

    return of_column
