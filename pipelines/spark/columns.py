"""Columns of a source: by name, whatever characters the name has; and the time at which its events begin."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from trendlake.cep_core.plan import Reading
from trendlake.pipelines.spark.identifiers import quoted


def column(name: str) -> Column:
    return sf.col(quoted(name))


def beginning(reading: Reading) -> Column:
    """The time at which an event of a source begins: its event time, or where it has an interval the start of that."""
    time = column(reading.schema.event_time)
    return time if reading.interval_start is None else sf.least(column(reading.interval_start), time)
