"""Classes of Java that neither PySpark nor Delta shows to Python."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

DELTA_LOG = "org.apache.spark.sql.delta.DeltaLog"


def java_class(spark: SparkSession, name: str) -> Any:
    """The class of that full name, or a Scala object by its static methods. Asked for by its parts, as
    `jvm.org.apache...`, all jars are searched for a class `org`, for one `org.apache`, and so on."""
    return getattr(spark.sparkContext._jvm, name)
