"""Columns by name, whatever characters the name has."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from trendlake.pipelines.spark.identifiers import quoted


def column(name: str) -> Column:
    return sf.col(quoted(name))
