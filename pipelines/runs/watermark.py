"""The event-time watermark of a source version, for plans that need one (`AnyPlan.waits`).

It is a function of the version and the contract, so a retry, another cut of the events or a recomputation at that
version give the same rows. Events that are further in the future than the contract allows (`maxFuture`), counted from
the commit of the version, do not move it: a producer's wrong clock would declare every window finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trendlake.cep_core.events.windows import BEGINNING
from trendlake.pipelines.errors import StepOrderError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trendlake.pipelines.lake.lake import Lake


def future_limit(lake: Lake, path: str, version: int, max_future: int) -> int:
    """The latest event time, microseconds, that moves the watermark of a version of the table at `path`: `max_future`
    microseconds after its commit. Raises StepOrderError where the table's log no longer tells when that was."""
    from trendlake.pipelines.lake.versions import commit_time

    committed = commit_time(lake, path, version)
    if committed is None:
        raise StepOrderError(
            f"the log of {path} no longer tells when version {version} was committed",
            hint="run `trendlake check-source` again: it reads the newest version",
        )
    return committed + max_future


def watermark(good: DataFrame, event_time: str, lateness: int, limit: int, span: tuple[int, int] | None = None) -> int:
    """The newest event time up to `limit` among the `good` rows, less `lateness`; `BEGINNING` without such a row. All
    times in microseconds. With `span`, a half-open range, the result is clamped to it: fewer rows are read then."""
    from pyspark.sql import functions as sf

    from trendlake.pipelines.spark.columns import column

    time = column(event_time)
    rows = good.where(time <= sf.timestamp_micros(sf.lit(limit)))
    if span is not None:
        start, end = span
        if not rows.where(time >= sf.timestamp_micros(sf.lit(end + lateness))).isEmpty():
            return end
        rows = rows.where(time >= sf.timestamp_micros(sf.lit(max(start, BEGINNING))))
    newest = rows.agg(sf.max(sf.unix_micros(time))).collect()[0][0]
    return watermark_at(newest, lateness, span)


def watermark_at(newest: int | None, lateness: int, span: tuple[int, int] | None = None) -> int:
    """As `watermark`, where the latest time of rows up to the limit, and from the beginning of `span` on, is
    `newest`."""
    if newest is None:
        return BEGINNING if span is None else span[0]
    reached = newest - lateness
    return reached if span is None else min(span[1], reached)
