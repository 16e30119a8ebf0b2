"""How far time is known to have come in a version of a source: what plans ask that wait for it (`AnyPlan.waits`).

It is a function of the version and the contract, so a retry, another cut of the events or a recomputation at that
version give the same rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pipelines.quarantine import column

BEGINNING = -62_135_596_800_000_000
"""The first moment of year 1, microseconds since the epoch: no TIMESTAMP is earlier."""


def watermark(good: DataFrame, event_time: str, span: tuple[int, int], lateness: int) -> int:
    """The time of the newest of the `good` rows less `lateness`, microseconds; no later than the end of `span`, a
    half-open range: nothing after it is asked about."""
    start, end = span
    time = column(event_time)
    past = good.where(time >= sf.timestamp_micros(sf.lit(end + lateness)))
    if not past.isEmpty():
        return end
    inside = good.where(time >= sf.timestamp_micros(sf.lit(max(start, BEGINNING))))
    newest = inside.agg(sf.max(sf.unix_micros(time))).collect()[0][0]
    return start if newest is None else min(end, int(newest) - lateness)
