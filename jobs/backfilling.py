"""`trendlake backfill`: chunk by chunk, a line each, with the time left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from cep_core.errors import TextError
from cep_core.parse import parse_duration
from jobs.running import Place, changed
from jobs.times import micros_of
from pipelines.errors import BadNumberError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.backfill import Chunk, Size
    from pipelines.steps.run import Run


def length_of(chunk: str | None) -> int | None:
    """`--chunk` in microseconds. Raises BadNumberError."""
    try:
        return None if chunk is None else parse_duration(chunk)
    except TextError as error:
        raise BadNumberError(f"--chunk {chunk!r}: {error.message}", hint="such as 30 days") from None


def run_backfill(
    place: Place, spark: SparkSession, pattern: str, since: str, until: str, length: int | None, newest_first: bool,
    dry_run: bool,
) -> bool:  # fmt: skip
    """All chunks of the interval; `dry_run`: only what they would read. Whether the results have changed."""
    from pipelines.backfill import backfill, chunks, size
    from pipelines.steps.run import prepare

    start, end = micros_of(since, "--from"), micros_of(until, "--to")
    whole = prepare(spark, place.project, place.profile, pattern, "backfill", start, end)
    todo = chunks(whole.plan.windows, start, end, length, newest_first=newest_first)
    if dry_run:
        typer.echo(told(whole.name, size(spark, whole, len(todo))))
        return False

    def prepared(chunk: Chunk) -> Run:
        return prepare(spark, place.project, place.profile, pattern, chunk.run_id, chunk.start_us, chunk.end_us)

    began, worked, skipped, new = time.monotonic(), 0, 0, False
    for number, (chunk, record) in enumerate(backfill(spark, prepared, todo), start=1):
        new = new or (record is not None and changed(record))
        worked, skipped = worked + (record is not None), skipped + (record is None)
        spent = time.monotonic() - began
        left = spent / worked * (len(todo) - number) if worked else None
        typer.echo(f"chunk {number:>3}/{len(todo)}  {_days(chunk)}  {_done(record)}{_left(left, number == len(todo))}")
    seconds = time.monotonic() - began
    typer.echo(f"{whole.name}: {worked} chunks computed, {skipped} done before, in {seconds:.0f} s")
    return new


def told(name: str, found: Size) -> str:
    """What a dry run says."""
    return (
        f"{name}: {found.windows:,} windows in {found.chunks} chunks, {found.events:,} events in their time range, "
        f"files of {found.bytes / 1e6:,.1f} MB"
    )


def _days(chunk: Chunk) -> str:
    from pipelines.runs import moment

    return f"{moment(chunk.start_us):%Y-%m-%d %H:%M} to {moment(chunk.end_us):%Y-%m-%d %H:%M}"


def _done(record: object) -> str:
    from pipelines.runs import Record

    if not isinstance(record, Record):
        return "done before"
    return f"{record.rows_inserted:,} inserted, {record.rows_updated:,} updated, {record.rows_deleted:,} deleted"


def _left(seconds: float | None, last: bool) -> str:
    if seconds is None or last:
        return ""
    return f"  (about {seconds / 60:.0f} min left)" if seconds >= 90 else f"  (about {seconds:.0f} s left)"
