"""`trendlake_runs`: a row for each time that a stage of a run ends. Steps find each other's facts here."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.error_text import in_words, plural
from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.create import create_table
from trendlake.pipelines.lake.here.maintain import compact
from trendlake.pipelines.lake.here.write import append_any
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.road import either, tried
from trendlake.pipelines.lake.table import Table, Values
from trendlake.pipelines.lake.warehouse import CONFLICTS
from trendlake.pipelines.progress import doing
from trendlake.pipelines.runs.lineage import Telling
from trendlake.pipelines.runs.stage import Record, Stage
from trendlake.pipelines.runs.stored_record import basis_in, checks_in, name_of, note_in, sources_in
from trendlake.pipelines.spark.frames import frame_of
from trendlake.pipelines.spark.session import uncompiled
from trendlake.pipelines.storage_errors import in_users_terms

NOTED = "note"
"""Column: what the stage says its results answer for, JSON as in the commit's own note; tables of old lack it."""
NUMBER, BASIS = "record_number", "basis"
"""Columns: the place of the record in its run, and what the stage's work is based on (`Basis.as_json`); tables written
before 0.2 lack them. Those before 0.3 lack the last three columns too: where a stage worked, why there, `SOURCES`."""
SOURCES = "sources"
"""Column: the tables of a pattern with `sources`, JSON; NULL of one `source`."""

COMMITS_A_FILE = 64
"""After so many commits of the table their files are put together: each commit adds a file of a few rows, and a query
for the records of a pattern reads all files that have some."""

NEEDED: Mapping[str, Sequence[str]] = {
    "check_source": ("source_version",),
    "compute": ("source_version", "staged_version"),
    "check_results": ("source_version", "staged_version"),
}
"""Columns that the record of a stage must have for the next stage to go on from it; that of a pattern with `sources`
has `SOURCES` in place of the version."""

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
            "source_version",
            "staged_version",
            "results_version",
            "rows_in",
            "rows_quarantined",
            "rows_out",
            "windows",
            "rows_inserted",
            "rows_updated",
            "rows_deleted",
        )
    ]
    + [StructField("seconds", DoubleType()), StructField("checks", StringType())]
    + [StructField("error", StringType()), StructField("started_at", _TIME), StructField("finished_at", _TIME)]
    + [StructField(NOTED, StringType()), StructField(NUMBER, LongType()), StructField(BASIS, StringType())]
    + [StructField("road", StringType()), StructField("road_reason", StringType())]
    + [StructField(SOURCES, StringType())]
)


def create_runs(lake: Lake) -> None:
    """Creates the table if it is missing; safe to call from several runs at once."""
    create_table(lake, lake.warehouse.runs, SCHEMA, {}, "creating trendlake_runs")


def append(lake: Lake, rows: Sequence[pa.Table]) -> None:
    """Writes rows in one commit; appends of several runs never conflict."""
    together = pa.concat_tables(rows)
    create_runs(lake)

    def by_spark() -> int:
        with uncompiled(lake.spark):
            writer = frame_of(lake.spark, together).coalesce(1).write.format("delta").mode("append")
            writer.option("mergeSchema", "true").save(lake.warehouse.runs)
        return 1

    if either(lambda: append_any(lake, lake.warehouse.runs, together), by_spark) % COMMITS_A_FILE == 0:
        with suppress(*CONFLICTS):
            tried(lambda: compact(lake, lake.warehouse.runs))


def _row(attempt: Attempt, started_at: datetime) -> pa.Table:
    record, error = attempt.record, attempt.error
    values: dict[str, Any] = {item.name: getattr(record, item.name) for item in fields(record)}
    values |= {
        "status": "succeeded" if error is None else "failed",
        "checks": json.dumps([check.as_json() for check in record.checks], ensure_ascii=False),
        NOTED: None if record.note is None else json.dumps(record.note),
        SOURCES: None if record.sources is None else json.dumps(record.sources),
        BASIS: None if record.basis is None else json.dumps(record.basis.as_json()),
        "error": None if error is None else in_words(error),
        "started_at": started_at,
        "finished_at": datetime.now(UTC),
    }
    for name in _INTERVAL:
        values[name] = None if values[name] is None else moment(values[name])
    return pa.Table.from_pylist([values], schema=to_arrow_schema(SCHEMA, timezone="UTC"))


@dataclass
class Attempt:
    """A stage of one run while it goes on: its record, which the stage fills in, and the error that ended it."""

    record: Record
    error: Exception | None = None
    seconds: float = 0.0

    @contextmanager
    def going_on(self) -> Iterator[Record]:
        """Some of its work. An error is kept."""
        clock = time.perf_counter()
        try:
            yield self.record
        except Exception as error:
            self.error = error
        finally:
            self.seconds += time.perf_counter() - clock

    def raise_if_ended(self, lake: Lake) -> None:
        """Raises the error if Spark has ended: then it is that of all."""
        if self.error is not None and lake.ended:
            raise self.error


@contextmanager
def recorded_together(lake: Lake, records: Sequence[Record]) -> Iterator[list[Attempt]]:
    """A stage of several runs: records how each has ended, all in one commit, and tells lineage; the body fills in the
    records. An error that is kept in an attempt is that run's, as is one that comes when it is recorded; one that is
    raised ends all, and is raised again. The time that goes by while none goes on is shared by all.

    A record's number is that of the stage's beginning: a process that was taken for dead and ends late does not come
    after those that have taken its place."""
    number_records(lake, records)
    attempts = [Attempt(record) for record in records]
    tellings = [Telling(lake, record) for record in records]
    started_at, clock = datetime.now(UTC), time.perf_counter()
    raised: Exception | None = None
    try:
        with doing(_in_words(records), asked=lambda: lake.tasks):
            yield attempts
    except Exception as error:
        raised = in_users_terms(error, records[0].stage, records[0].pattern)
    shared = time.perf_counter() - clock - sum(attempt.seconds for attempt in attempts)
    for attempt in attempts:
        if attempt.error is not None:
            attempt.error = in_users_terms(attempt.error, attempt.record.stage, attempt.record.pattern)
        attempt.error = attempt.error or raised
        attempt.record.seconds = attempt.seconds + shared / len(attempts)
    try:
        append(lake, [_row(attempt, started_at) for attempt in attempts])
    except Exception as error:
        for attempt in attempts:  # a stage's own error matters, not that it could not be recorded
            attempt.error = attempt.error or in_users_terms(error, attempt.record.stage, None)
    for attempt, telling in zip(attempts, tellings, strict=True):
        attempt.record.succeeded = attempt.error is None
        telling.end(attempt.error)
    if raised is not None:
        raise raised


def _in_words(records: Sequence[Record]) -> str:
    """The stage, for people who wait: `compute falling: 1,096 windows`."""
    (first, *others), stage = records, records[0].stage.replace("_", "-")
    of = first.pattern or first.source or ""
    if others:
        return f"{stage} of {plural(len(records), 'pattern')}"
    return f"{stage} {of}" + (f": {plural(first.windows, 'window')}" if first.windows else "")


@contextmanager
def recorded(lake: Lake, record: Record) -> Iterator[Record]:
    """As `recorded_together`, of one run."""
    with recorded_together(lake, [record]) as (attempt,):
        yield record
    if attempt.error is not None:  # it could not be recorded
        raise attempt.error


def find(lake: Lake, pattern: str, run_id: str, stage: Stage) -> Record | None:
    """The last succeeded record of a stage, by the numbers of the records; its `basis` is None where the table has none
    of it. None when there is no record. Raises RecordDamagedError."""
    names = ("run_id", *(item.name for item in fields(Record) if item.name not in ("run_id", "succeeded")), "status")
    rows = [
        row
        for row in _of_run(lake, run_id, names)
        if (row["pattern"], row["stage"], row["status"]) == (pattern, stage, "succeeded")
    ]
    if not rows:
        return None
    stored = max(rows, key=lambda row: row.get(NUMBER) or 0)
    several = stored.get(SOURCES) is not None
    needed = [SOURCES if several and name == "source_version" else name for name in NEEDED.get(stage, ())]
    absent = [name for name in needed if stored.get(name) is None]
    if absent:
        raise RecordDamagedError(
            f"{name_of(stored)}, is damaged: its column `{absent[0]}` is NULL",
            hint=f"run `trendlake {stage.replace('_', '-')} {pattern}` again for this run: it writes a new record",
        )
    del stored["status"]
    read = {
        "checks": checks_in(stored),
        NOTED: note_in(stored),
        BASIS: basis_in(stored),
        SOURCES: sources_in(stored),
        "succeeded": True,
    }
    return Record(**(stored | read))


def number_records(lake: Lake, records: Sequence[Record]) -> None:
    """Gives those records of stages that begin now their numbers which have none yet."""
    unnumbered = [record for record in records if record.record_number is None]
    for run_id in {record.run_id for record in unnumbered}:
        last: dict[str | None, int] = {}
        for row in _of_run(lake, run_id, ("run_id", "pattern", NUMBER)):
            last[row["pattern"]] = max(last.get(row["pattern"], 0), row.get(NUMBER) or 0)
        for record in unnumbered:
            if record.run_id == run_id:
                record.record_number = last.get(record.pattern, 0) + 1


def _of_run(lake: Lake, run_id: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """The records of a run, of all its patterns, in no order: the columns `names`, NULL where the table lacks one."""
    return _chosen(lake, {"run_id": [run_id]}, names)


def run_ends(lake: Lake, patterns: Sequence[str]) -> dict[str, dict[str, int]]:
    """When the last record of each run was written, microseconds since the epoch, by pattern and run; 0 where no record
    says it."""
    ends: dict[str, dict[str, int]] = {pattern: {} for pattern in patterns}
    if not exists(lake, lake.warehouse.runs):
        return ends
    names = ("pattern", "run_id", "finished_at")
    records = Table.at(lake, lake.warehouse.runs).having({"pattern": patterns}, names, limits.NARROW_RECORDS)
    records = records.set_column(2, "finished_at", records["finished_at"].cast(pa.int64()))
    runs = records.group_by(["pattern", "run_id"]).aggregate([("finished_at", "max")])
    rows = zip(*(runs[name].to_pylist() for name in ("pattern", "run_id", "finished_at_max")), strict=True)
    for pattern, run_id, end in rows:
        ends[pattern][run_id] = end or 0
    return ends


def pattern_records(
    lake: Lake, patterns: Sequence[str], names: Sequence[str], run_ids: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The records of patterns, of `run_ids` or all their runs, in no order: the columns `names`, NULL where the table
    lacks one, times as microseconds since the epoch."""
    asked = {"pattern": list(patterns)} if run_ids is None else {"run_id": list(run_ids), "pattern": list(patterns)}
    return _chosen(lake, asked, names)


def _chosen(lake: Lake, asked: Values, names: Sequence[str]) -> list[dict[str, Any]]:
    """The records that have, in each of the columns `asked`, one of its values; with these columns. None where there is
    no table."""
    if not exists(lake, lake.warehouse.runs):
        return []
    table = Table.at(lake, lake.warehouse.runs)
    _refuse_other_table(lake.warehouse.runs, table.names)
    there = [name for name in dict.fromkeys((*asked, *names)) if name in table.names]
    records = table.having(asked, there, limits.RECORDS)
    for name in _TIMES:
        if name in there:
            records = records.set_column(there.index(name), name, records[name].cast(pa.int64()))
    return [_whole(row, names) for row in records.to_pylist()]


def _whole(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {**dict.fromkeys(names), **row}


def newest_records(lake: Lake, pattern: str | None, limit: int) -> list[dict[str, Any]] | None:
    """The records of the stages that ended last, of all patterns where none is named: values by the table's columns.
    None where there is no table."""
    if not exists(lake, lake.warehouse.runs):
        return None
    table = Table.at(lake, lake.warehouse.runs)
    _refuse_other_table(lake.warehouse.runs, table.names)
    asked = None if pattern is None else {"pattern": [pattern]}
    rows = table.newest("finished_at", limit, limits.RECORDS, asked).to_pylist()
    return [_whole(row, SCHEMA.names) for row in rows]


def _refuse_other_table(path: str, columns: Sequence[str]) -> None:
    """Raises RecordDamagedError for a table that is no run record."""
    missing = [name for name in _TEXT if name not in columns]
    if missing:
        raise RecordDamagedError(
            f"the table of run records {path} lacks the columns {', '.join(missing)}",
            hint="RESTORE it to a version that has them, or move its folder away: results stay published",
        )
