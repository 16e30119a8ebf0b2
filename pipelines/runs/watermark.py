"""The event-time watermark of a source version, for plans that need one (`AnyPlan.waits`).

It is a function of the version and the contract, so a retry, another cut of the events or a recomputation at that
version give the same rows. Events that lie further in the future than the contract allows (`maxFuture`), counted from
the commit of the version, do not move it: a producer's wrong clock would declare every window finished.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipelines.delta.table_versions import commit_time
from pipelines.errors import StepOrderError
from pipelines.spark.columns import column

BEGINNING = -62_135_596_800_000_000
"""The first moment of year 1, microseconds since the epoch: no TIMESTAMP is earlier."""


def future_limit(spark: SparkSession, path: str, version: int, max_future: int) -> int:
    """The latest event time, microseconds, that moves the watermark of a version of the table at `path`: `max_future`
    microseconds after its commit. Raises StepOrderError where the table's log no longer tells when that was."""
    committed = commit_time(spark, path, version)
    if committed is None:
        raise StepOrderError(
            f"the log of {path} no longer tells when version {version} was committed",
            hint="run `trendlake check-source` again: it reads the newest version",
        )
    return committed + max_future


def watermark(good: DataFrame, event_time: str, span: tuple[int, int], lateness: int, limit: int) -> int:
    """The time of the newest of the `good` rows up to `limit`, less `lateness`, microseconds; no later than the end of
    `span`, a half-open range: nothing after it is asked about."""
    start, end = span
    time = column(event_time)
    good = good.where(time <= sf.timestamp_micros(sf.lit(limit)))
    past = good.where(time >= sf.timestamp_micros(sf.lit(end + lateness)))
    if not past.isEmpty():
        return end
    inside = good.where(time >= sf.timestamp_micros(sf.lit(max(start, BEGINNING))))
    newest = inside.agg(sf.max(sf.unix_micros(time))).collect()[0][0]
    return start if newest is None else min(end, int(newest) - lateness)
