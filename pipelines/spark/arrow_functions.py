"""Functions of Arrow arrays as functions of Spark's columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.util import PythonEvalType


def text_function(function: Callable[[pa.Array], pa.Array]) -> Callable[[Column], Column]:
    """`function`, from an array to as many texts, as one of a column. It is sent to the workers."""
    kind: Any = PythonEvalType.SQL_SCALAR_ARROW_UDF
    udf: Any = arrow_udf(function, "string", kind)

    def of_column(value: Column) -> Column:
        result: Column = udf(value)
        return result

    return of_column
