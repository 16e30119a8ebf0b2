"""`trendlake_runs`: a row for each time that a stage of a run ends. Steps find each other's facts here."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

from cep_core.events.windows import moment
from pipelines.check import checks_of
from pipelines.delta.local_reader import TableHere, append_here, local_errors, table_here
from pipelines.delta.table_versions import table_id
from pipelines.delta.tables import Warehouse, create, exists
from pipelines.error_text import in_words
from pipelines.errors import LocalUnsupportedError, StepOrderError
from pipelines.runs.basis import Basis
from pipelines.runs.lineage import events_sent
from pipelines.runs.stage import Record, Stage
from pipelines.spark.frames import frame_of
from pipelines.spark.session import uncompiled

NOTED = "note"
"""Column: what the stage says its results answer for, JSON as in the commit's own note; tables of old lack it."""
NUMBER, BASIS = "record_number", "basis"
"""Columns: the place of the record in its run, and what the stage's work is based on (`Basis.as_json`); tables written
before 0.2 lack them."""
RECORDS = 100_000
"""Records that are read in this process."""

_TEXT = ("run_id", "pattern", "stage", "status")
_TIME = TimestampType()
_INTERVAL = ("interval_from", "interval_to")
_TIMES = (*_INTERVAL, "started_at", "finished_at")
SCHEMA = StructType(
    [StructField(name, StringType()) for name in _TEXT]
    + [StructField(name, _TIME) for name in _INTERVAL]
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
    + [StructField(NOTED, StringType()), StructField(NUMBER, LongType()), StructField(BASIS, StringType())]
)  # fmt: skip


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
    except LocalUnsupportedError:
        with uncompiled(spark):
            create_runs(spark, warehouse)
            writer = frame_of(spark, row).coalesce(1).write.format("delta").mode("append")
            writer.option("mergeSchema", "true").save(warehouse.runs)


def _row(record: Record, *, status: str, started_at: datetime, error: str | None) -> pa.Table:
    values: dict[str, Any] = {item.name: getattr(record, item.name) for item in fields(record)}
    values |= {
        "status": status,
        "checks": json.dumps([check.as_json() for check in record.checks], ensure_ascii=False),
        NOTED: None if record.note is None else json.dumps(record.note),
        BASIS: None if record.basis is None else json.dumps(record.basis.as_json()),
        "error": error,
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
    }
    for name in _INTERVAL:
        values[name] = None if values[name] is None else moment(values[name])
    return pa.Table.from_pylist([values], schema=to_arrow_schema(SCHEMA, timezone="UTC"))


@contextmanager
def recorded(spark: SparkSession, warehouse: Warehouse, record: Record) -> Iterator[Record]:
    """Runs a stage, records how it ended and tells lineage; the body fills in `record`. An error is recorded and raised
    again. The record's number is that of the stage's beginning: a process that was taken for dead and ends late does
    not come after those that have taken its place."""
    if record.record_number is None:
        record.record_number = next_number(spark, warehouse, record.pattern, record.run_id)
    with events_sent(spark, warehouse, record):
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
    """The last succeeded record of a stage, by the numbers of the records. As of `Record`: its
    `basis` is None where the table has none of it. None when there is no record."""
    names = ("run_id", *(item.name for item in fields(Record) if item.name not in ("run_id", "succeeded")), "status")
    rows = [
        row
        for row in _of_run(spark, warehouse, pattern, run_id, names)
        if (row["stage"], row["status"]) == (stage, "succeeded")
    ]
    if not rows:
        return None
    stored = max(rows, key=lambda row: row.get(NUMBER) or 0)
    stored["checks"] = checks_of(stored["checks"])
    stored[NOTED] = json.loads(stored[NOTED]) if stored.get(NOTED) else None
    stored[BASIS] = Basis.from_json(json.loads(stored[BASIS])) if stored.get(BASIS) else None
    return stored


def next_number(spark: SparkSession, warehouse: Warehouse, pattern: str | None, run_id: str) -> int:
    """The number of the record of a stage that begins now."""
    rows = _of_run(spark, warehouse, pattern, run_id, ("run_id", "pattern", NUMBER))
    return max((row.get(NUMBER) or 0 for row in rows), default=0) + 1


def _of_run(
    spark: SparkSession, warehouse: Warehouse, pattern: str | None, run_id: str, names: Sequence[str]
) -> list[dict[str, Any]]:  # fmt: skip
    """The records of a run in no order: those of the columns `names` that the table has."""
    try:
        rows = _chosen(table_here(spark, warehouse.runs).near("run_id", run_id), "run_id", [run_id], names)
    except LocalUnsupportedError:
        rows = _by_spark(spark, warehouse, "run_id", [run_id], names)
    return [row for row in rows if row["pattern"] == pattern]


def pattern_records(
    spark: SparkSession, warehouse: Warehouse, pattern: str, names: Sequence[str], run_ids: Sequence[str] | None = None
) -> list[dict[str, Any]]:  # fmt: skip
    """The records of a pattern, of `run_ids` or all its runs, in no order: those of the columns `names` that the table
    has, times as microseconds since the epoch."""
    asked = ("pattern", [pattern]) if run_ids is None else ("run_id", list(run_ids))
    named = list(dict.fromkeys((*names, "pattern")))
    try:
        rows = _chosen(table_here(spark, warehouse.runs).near("pattern", pattern), *asked, named)
    except LocalUnsupportedError:
        rows = _by_spark(spark, warehouse, *asked, named)
    return [row for row in rows if row["pattern"] == pattern]


def _chosen(table: TableHere, column: str, values: list[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """The records with one of `values` in `column`. Raises LocalUnsupportedError."""
    there = [name for name in dict.fromkeys((column, *names)) if name in table.schema.names]
    records = table.rows_with(there, pa.array(values, pa.string()), RECORDS)
    for name in _TIMES:
        if name in there:
            records = records.set_column(there.index(name), name, records[name].cast(pa.int64()))
    return list(records.to_pylist())


def _by_spark(
    spark: SparkSession, warehouse: Warehouse, column: str, values: list[str], names: Sequence[str]
) -> list[dict[str, Any]]:  # fmt: skip
    if not exists(spark, warehouse.runs):
        return []
    frame = spark.read.format("delta").load(warehouse.runs)
    there = [name for name in dict.fromkeys((column, *names)) if name in frame.columns]
    micros = {name: sf.unix_micros(name) for name in _TIMES if name in there}
    chosen = frame.where(sf.col(column).isin(values)).select(*there).withColumns(micros)
    return [row.asDict() for row in chosen.collect()]


def need(spark: SparkSession, warehouse: Warehouse, pattern: str, run_id: str, stage: Stage) -> Mapping[str, Any]:
    """As `find`. Raises StepOrderError when the stage has not succeeded for this run."""
    stored = find(spark, warehouse, pattern, run_id, stage)
    if stored is None:
        step = stage.replace("_", "-")
        raise StepOrderError(
            f"{step} has not succeeded for {pattern}, run {run_id}",
            hint=f"run `trendlake {step} {pattern}` first",
        )
    return stored


def judged_version(spark: SparkSession, warehouse: Warehouse, source: str) -> int:
    """The newest version of a source, of the table that it is today, whose rows some step has judged by the contract;
    -1 where none has. Records that do not tell of which table they are count."""
    if not exists(spark, warehouse.runs):
        return -1
    mine = spark.read.format("delta").load(warehouse.runs).where(sf.col("source") == source)
    if BASIS in mine.columns:
        recorded_table = sf.get_json_object(BASIS, "$.source_table")
        mine = mine.where(
            recorded_table.isNull() | (recorded_table == sf.lit(table_id(spark, warehouse.source(source))))
        )
    judged = mine.where(sf.col("stage").isin("ingest", "check_source", "revise") & sf.col("source_version").isNotNull())
    # a run that the contract's tolerance stopped has set its rows apart before
    judged = judged.where((sf.col("status") == "succeeded") | sf.col("rows_quarantined").isNotNull())
    return int(judged.agg(sf.coalesce(sf.max("source_version"), sf.lit(-1))).collect()[0][0])


def newest_records(
    spark: SparkSession, warehouse: Warehouse, pattern: str | None, limit: int
) -> list[dict[str, Any]] | None:  # fmt: skip
    """The records of the stages that ended last, of all patterns where none is named: values by the table's columns.
    None where there is no table."""
    try:
        table = table_here(spark, warehouse.runs)
        rows = table.every(table.schema.names, RECORDS)
        with local_errors():
            mine = rows if pattern is None else rows.filter(pc.equal(rows["pattern"], pattern))
            newest: list[dict[str, Any]] = mine.sort_by([("finished_at", "descending")]).slice(0, limit).to_pylist()
            return newest
    except LocalUnsupportedError:
        if not exists(spark, warehouse.runs):
            return None
        frame = spark.read.format("delta").load(warehouse.runs)
        chosen = frame if pattern is None else frame.where(sf.col("pattern") == pattern)
        return [row.asDict() for row in chosen.orderBy(sf.desc("finished_at")).limit(limit).collect()]
