"""`trendlake_runs`: a row for each time that a stage of a run ends. Steps find each other's facts here."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

from pipelines.delta_here import NotHereError, append_here
from pipelines.errors import StepOrderError
from pipelines.frames import frame_of
from pipelines.lineage.telling import told
from pipelines.session import uncompiled
from pipelines.telling import in_words
from pipelines.warehouse import Warehouse, create, exists

Stage = Literal["ingest", "check_source", "compute", "check_results", "publish", "revise"]
STAGES: tuple[str, ...] = get_args(Stage)
NOTED = "note"
"""Column: what the stage says its results answer for, JSON as in the commit's own note; tables of old lack it."""

_TEXT = ("run_id", "pattern", "stage", "status")
_TIME = TimestampType()
SCHEMA = StructType(
    [StructField(name, StringType()) for name in _TEXT]
    + [StructField("interval_from", _TIME), StructField("interval_to", _TIME)]
    + [StructField("plan_hash", StringType()), StructField("source", StringType())]
    + [
        StructField(name, LongType())
        for name in (
            "source_version", "staged_version", "results_version", "rows_in", "rows_quarantined", "rows_out",
            "windows", "rows_inserted", "rows_updated", "rows_deleted",
        )
    ]
    + [StructField("seconds", DoubleType()), StructField("checks", StringType())]
    + [StructField("error", StringType()), StructField("started_at", _TIME), StructField("finished_at", _TIME)]
    + [StructField(NOTED, StringType())]
)  # fmt: skip


@dataclass
class Record:
    """The facts of one stage of one run; a number stays None where the stage does not know it.

    `interval_from`, `interval_to`: microseconds since the epoch. `checks`: `{check, column, success, observed,
    expected}` each. `source_version`: the version a stage read, of `ingest` the last it wrote. `staged_version`: the
    number of the attempt whose rows are staged.
    """

    run_id: str
    pattern: str | None
    stage: Stage
    interval_from: int | None = None
    interval_to: int | None = None
    plan_hash: str | None = None
    source: str | None = None
    source_version: int | None = None
    staged_version: int | None = None
    results_version: int | None = None
    rows_in: int | None = None
    rows_quarantined: int | None = None
    rows_out: int | None = None
    windows: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    seconds: float | None = None
    checks: list[dict[str, Any]] = field(default_factory=list)
    note: dict[str, Any] | None = None
    succeeded: bool = False
    """Written down as such: what the table says is what a later step may rely on."""


def create_runs(spark: SparkSession, warehouse: Warehouse) -> None:
    """The table, where it is not there yet; safe to call from several runs at once."""
    if exists(spark, warehouse.runs):
        return
    builder = DeltaTable.createIfNotExists(spark).location(warehouse.runs).addColumns(SCHEMA)
    create(spark, warehouse.runs, builder, "creating trendlake_runs")


def append(
    spark: SparkSession, warehouse: Warehouse, record: Record, *, status: str, started_at: datetime,
    error: str | None = None,
) -> None:  # fmt: skip
    """Write one row; appends of several runs never conflict."""
    row = _row(record, status=status, started_at=started_at, error=error)
    try:
        append_here(spark, warehouse.runs, row)
    except NotHereError:
        with uncompiled(spark):
            create_runs(spark, warehouse)
            writer = frame_of(spark, row).coalesce(1).write.format("delta").mode("append")
            writer.option("mergeSchema", "true").save(warehouse.runs)


def _row(record: Record, *, status: str, started_at: datetime, error: str | None) -> pa.Table:
    values: dict[str, Any] = {item.name: getattr(record, item.name) for item in fields(record)}
    values |= {
        "status": status,
        "checks": json.dumps(record.checks, ensure_ascii=False, default=str),
        NOTED: None if record.note is None else json.dumps(record.note),
        "error": error,
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
    }
    for name in ("interval_from", "interval_to"):
        values[name] = None if values[name] is None else moment(values[name])
    return pa.Table.from_pylist([values], schema=to_arrow_schema(SCHEMA, timezone="UTC"))


@contextmanager
def recorded(spark: SparkSession, warehouse: Warehouse, record: Record) -> Iterator[Record]:
    """Runs a stage, records how it ended and tells lineage; the body fills in `record`. An error is recorded and raised
    again."""
    with told(spark, warehouse, record):
        started_at, clock = datetime.now(UTC), time.perf_counter()
        try:
            yield record
        except Exception as error:
            record.seconds = time.perf_counter() - clock
            with suppress(Exception):  # the stage's own error matters, not that it could not be recorded
                append(spark, warehouse, record, status="failed", started_at=started_at, error=in_words(error))
            raise
        record.seconds = time.perf_counter() - clock
        append(spark, warehouse, record, status="succeeded", started_at=started_at)
        record.succeeded = True


def find(
    spark: SparkSession, warehouse: Warehouse, pattern: str, run_id: str, stage: Stage
) -> Mapping[str, Any] | None:
    """The last succeeded record of a stage, `checks` parsed and times in microseconds; None when there is none."""
    if not exists(spark, warehouse.runs):
        return None
    rows = (
        spark.read.format("delta")
        .load(warehouse.runs)
        .where(
            (sf.col("run_id") == run_id)
            & (sf.col("pattern") == pattern)
            & (sf.col("stage") == stage)
            & (sf.col("status") == "succeeded")
        )
        .withColumns({name: sf.unix_micros(name) for name in ("interval_from", "interval_to")})
        .orderBy(sf.desc("finished_at"))
        .limit(1)
        .collect()
    )
    if not rows:
        return None
    found = rows[0].asDict()
    found["checks"] = json.loads(found["checks"] or "[]")
    return found


def need(spark: SparkSession, warehouse: Warehouse, pattern: str, run_id: str, stage: Stage) -> Mapping[str, Any]:
    """As `find`. Raises StepOrderError when the stage has not succeeded for this run."""
    found = find(spark, warehouse, pattern, run_id, stage)
    if found is None:
        step = stage.replace("_", "-")
        raise StepOrderError(
            f"{step} has not succeeded for {pattern}, run {run_id}",
            hint=f"run `trendlake {step} {pattern}` first",
        )
    return found


def listed(spark: SparkSession, warehouse: Warehouse, pattern: str | None, limit: int) -> DataFrame | None:
    """The newest records first."""
    if not exists(spark, warehouse.runs):
        return None
    table = spark.read.format("delta").load(warehouse.runs)
    if pattern:
        table = table.where(sf.col("pattern") == pattern)
    return table.orderBy(sf.desc("finished_at")).limit(limit)


def moment(micros: int) -> datetime:
    """Microseconds since the epoch as an aware datetime."""
    return datetime.fromtimestamp(micros // 10**6, UTC).replace(microsecond=micros % 10**6)
