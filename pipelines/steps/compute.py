"""Step 2: the windows of the run, computed by the kernels in Arrow workers, staged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pipelines.delta.commits import recent_commits
from pipelines.delta.local_reader import ROWS, table_here
from pipelines.delta.parquet_scan import Files, Span, paths_by_delta, plain_files
from pipelines.delta.tables import exists, read_at
from pipelines.errors import LocalUnsupportedError, OtherwiseWrittenError
from pipelines.quality import quarantine as q
from pipelines.results.computation import cut_and_stage, needed, no_rows
from pipelines.results.ledger import notes, read_ledger
from pipelines.results.reuse import changed, reuse_check
from pipelines.results.staging import write_staged
from pipelines.runs.consistency import limit_of
from pipelines.runs.record import recorded
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.runs.watermark import watermark
from pipelines.steps.check_source import REPEATED


def compute(run: Run) -> Record:
    """Reads the pinned version, stages the results, records where.

    Raises StepOrderError (check_source has not been done for this state of things), ShardTooLargeError.
    """
    record = run.record("compute")
    with recorded(run.spark, run.warehouse, record):
        checked = run.need("check_source")
        record.source_version = checked["source_version"]
        rows, version = int(checked["rows_out"] or 0), int(checked["source_version"])
        table = checked["basis"].source_table
        run = _changed(run, version, table, record)
        record.basis = run.basis(version, table)
        record.rows_in = rows
        if run.windows and rows:
            record.staged_version, record.rows_out = _read_and_stage(run, checked, rows, version)
        else:
            record.staged_version, record.rows_out = write_staged(run, no_rows(run), version)
    return record


def _changed(run: Run, version: int, table: str | None, record: Record) -> Run:
    """The run of those windows that the published results do not hold already, by another form of the pattern."""
    path = run.warehouse.results(run.name)
    if not exists(run.spark, path):
        return run
    commits = recent_commits(run.spark, path)
    if {commit.note.get("plan_hash", run.plan.hash) for commit in commits} == {run.plan.hash}:
        return run  # there was no other form
    ledger = read_ledger(run.spark, run.warehouse, run.name, run.plan, run.contract.name)
    windows = changed(run, ledger, notes(run.spark, run.warehouse, run.name, commits), version, table)
    check = reuse_check(run, windows)
    if check is None:
        return run
    record.checks, record.windows = [check], len(windows)
    return run.narrowed(windows)


def _read_and_stage(run: Run, checked: Mapping[str, Any], rows: int, version: int) -> tuple[int, int]:
    """As `cut_and_stage`, of the files where they can be read alone."""
    time = reached(run, checked)
    files = files_of(run, checked)
    if files is not None:
        try:
            return cut_and_stage(run, files, rows, version, time)
        except OtherwiseWrittenError:
            pass
    return cut_and_stage(run, read_events(run, checked), rows, version, time)


def read_events(run: Run, checked: Mapping[str, Any]) -> DataFrame:
    """The good rows the plan needs of the pinned version: its columns, its event types, the windows' time range.

    The split of check_source is made again, as far as it can differ from all rows: where it has set none apart, in the
    same version, range and contract, every row is good; where it has found no duplicates, they are not looked for.
    """
    source, rules = _source(run, checked), run.contract.rules
    inside = q.in_range(run.contract, *run.span)
    rows = source.where(inside)
    if checked.get("rows_quarantined") == 0:
        return needed(run, rows)
    if any(not check.success for check in checked["checks"] if check.name == REPEATED):
        return needed(run, q.good_rows(q.annotate(rows, rules, rest=source.where(~inside))))
    return needed(run, q.keeping(rows, rules))


def files_of(run: Run, checked: Mapping[str, Any]) -> Files | None:
    """The files of the pinned version with the rows that `read_events` reads, where every row is good and the workers
    can read them by themselves: all columns are there."""
    needs_made_id = run.contract.made_id and run.plan.schema.event_id in run.plan.columns
    if needs_made_id or checked.get("rows_quarantined") != 0:
        return None
    files = _paths(run, checked)
    span = Span(run.contract.event_time, *run.span)
    return None if files is None else plain_files(run.spark, *files, run.plan, span, run.contract.constant_type)


def _paths(run: Run, checked: Mapping[str, Any]) -> tuple[tuple[str, ...], StructType] | None:
    """The files that may hold rows of the run's windows, and the table's columns; None where they can't be read alone.
    Of a small table all files are read sooner than Delta says which."""
    path, version = run.warehouse.source(run.contract.name), int(checked["source_version"])
    try:
        table = table_here(run.spark, path, version)
        if table.row_count is None or table.row_count > ROWS:
            table = table.near_time(run.contract.event_time, [run.span])
        return tuple(f"{table.folder}/{file}" for file in table.files), table.schema
    except LocalUnsupportedError:
        pass
    frame = _source(run, checked).where(q.in_range(run.contract, *run.span))
    paths = paths_by_delta(frame, path, version)
    return None if paths is None else (paths, frame.schema)


def _source(run: Run, checked: Mapping[str, Any]) -> DataFrame:
    return read_at(run.spark, run.warehouse.source(run.contract.name), int(checked["source_version"]))


def reached(run: Run, checked: Mapping[str, Any]) -> int | None:
    """How far time has come in the pinned version, for a plan that waits for it."""
    if not run.plan.waits or not run.windows:
        return None
    good = q.keeping(_source(run, checked), run.contract.rules)
    limit = limit_of(run, int(checked["source_version"]))
    return watermark(good, run.contract.event_time, run.lateness, limit, run.span)
