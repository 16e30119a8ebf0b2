"""A lake for functions that are given the path of a table."""

from __future__ import annotations

from pyspark.sql import SparkSession

from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse


def bare_lake(spark: SparkSession) -> Lake:
    """The lake of a session that has started, for tables by their paths: its warehouse is nowhere."""
    return Lake.of(spark, Warehouse("/nowhere"))
