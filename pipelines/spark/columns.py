"""Columns of a source: by name, whatever characters the name has; and the time at which its events begin."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as sf

from trendlake.cep_core.plan import Reading
from trendlake.pipelines.spark.identifiers import quoted


def column(name: str) -> Column:
    return sf.col(quoted(name))


def beginning(reading: Reading) -> Column:
    """The time at which an event of a source begins: its event time, or where it has an interval the start of that."""
    start = reading.interval_start
    return earliest(reading.schema.event_time, () if start is None else (start,))


def earliest(time: str, begins: Iterable[str]) -> Column:
    """The earliest of a time and of those among the times `begins` that are not NULL."""
    return reduce(sf.least, map(column, begins), column(time))
