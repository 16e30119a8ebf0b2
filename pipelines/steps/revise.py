"""Revising: what a pattern has published, brought to the newest version of its source, and no further.

The change feed since the version that the results speak of says which (unit, window) pairs may differ; those are
computed anew at the pinned version, and what differs is published in one commit. Where nothing differs there is none.
The results are then what a full recomputation at that version would give, in all windows that runs have published.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pipelines.check import Check
from pipelines.contracts.results import contract_name, results_contract
from pipelines.delta.local_reader import NotHereError
from pipelines.delta.tables import CONFLICTS, read_at, with_retries
from pipelines.error_text import plural
from pipelines.errors import BusyTableError, StepOrderError, ToleranceError
from pipelines.history_checks import checks as verdicts
from pipelines.quality import quarantine as q
from pipelines.quality.quarantine_counts import Broken, broken_of
from pipelines.quality.uniqueness import BROKEN
from pipelines.results.coverage import Segment, slice_of
from pipelines.results.ledger import Ledger, read_ledger
from pipelines.results.reuse import noted
from pipelines.results.staging import read_staged, write_staged
from pipelines.results.types import refuse_other_types
from pipelines.results.windows import Stretch
from pipelines.revision.affected import Affected, note_of_revision, touched_by
from pipelines.revision.change_feed import Changes, changes, lost
from pipelines.revision.difference import (
    DELETE,
    INSERT,
    UPDATE,
    Difference,
    counted,
    difference,
)
from pipelines.revision.local import small_revision
from pipelines.revision.local_rewrite import Rewrite
from pipelines.revision.scope import Task, older_versions, stale_windows, task_of
from pipelines.runs.consistency import future_events, time_of
from pipelines.runs.record import recorded
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.spark.columns import column
from pipelines.steps.check_results import judged, refuse_failed, refuse_unexpected
from pipelines.steps.check_source import broken_rows
from pipelines.steps.compute import cut_and_stage, needed, no_rows

ATTEMPTS = 5


def revise(run: Run) -> Record:
    """Bring the published windows of the pattern to the source's newest version; the run's interval plays no part.

    Raises StepOrderError (nothing is published), SourceMissingError, SourceSchemaError, ResultsTypeError,
    ToleranceError, ChecksFailedError, ShardTooLargeError, BusyTableError (others publish the same windows all the
    time).
    """
    record = run.record("revise")
    with recorded(run.spark, run.warehouse, record):
        record.interval_from = record.interval_to = record.windows = None
        for _ in range(ATTEMPTS):
            if _revised(run, record):
                return record
        raise BusyTableError(
            f"revising {run.name}: other runs published the same windows at each of {ATTEMPTS} attempts"
        )
    return record


def _revised(run: Run, record: Record) -> bool:
    """One attempt; False where other publications came in between."""
    ledger = read_ledger(run.spark, run.warehouse, run.name, run.plan, run.contract.name)
    task = task_of(run, ledger)
    record.checks, record.windows, record.basis = ledger.checks(), 0, task.basis(run)
    refuse_other_types(run)
    stale = stale_windows(run, ledger)
    if stale:
        record.checks.append(Check("stale_rows", False, stale, "all windows in the pattern's present form"))
    old = older_versions(run, ledger)
    if old is not None:
        data = {"windows": [list(interval) for interval in old.windows], "reason": old.reason}
        expected = "versions known to be right"
        record.checks.append(Check("stale_versions", False, old.sentence(run.name), expected, data=data))
    record.rows_inserted = record.rows_updated = record.rows_deleted = record.rows_quarantined = 0
    record.source_version, record.results_version = task.version, ledger.version
    if run.pattern.consistency == "weak":
        record.checks.append(Check("revision", True, "nothing: a weak pattern corrects nothing", "change feed"))
        return True
    if task.reason is None and task.after == task.version and not task.due:
        observed = f"nothing new since version {task.version}"
        record.checks.append(Check("revision", True, observed, "change feed", data={"to_version": task.version}))
        return True
    if run.needs_watermark:
        record.checks.append(future_events(run, task.version))
    with suppress(NotHereError):
        return _revised_here(run, ledger, task, record)
    kept: list[DataFrame] = []
    try:
        found, unique, broken = _affected(run, task, record, kept)
        record.basis = task.basis(run, found.windows)
        if not found.stretches:
            return _quiet(ledger, record, _claims(run, ledger, task, unique, found, local=False))
        staged, unique = _computed(run, found, unique, task, record, broken)
        expectations = verdicts.of_revision(run, ledger, found, staged)
        record.checks += expectations
        refuse_unexpected(run, record, expectations)

        def against(version: int) -> Difference:
            there = read_at(run.spark, run.warehouse.results(run.name), version)
            return counted(run, difference(there, staged, found), found)

        return _published(run, ledger, against, task, record, _claims(run, ledger, task, unique, found, local=False))
    finally:
        for frame in kept:
            frame.unpersist()


def _revised_here(run: Run, ledger: Ledger, task: Task, record: Record) -> bool:
    """A small revision, of which only the commit is Delta's work. Raises NotHereError, with `record` as it was."""
    checks, small = record.checks, small_revision(run, task, int(ledger.version or 0))
    record.basis = task.basis(run, small.found.windows)
    record.rows_in, record.rows_out, record.windows = small.changed, small.rows.num_rows, small.found.count
    record.checks = [*checks, _changes_check(task, small.changed, small.found), *small.checks]
    claims = _claims(run, ledger, task, True, small.found, local=True)
    if not small.found.stretches:
        return _quiet(ledger, record, claims)
    record.interval_from, record.interval_to = small.interval
    try:
        return _published(run, ledger, small.difference, task, record, claims)
    except NotHereError:
        record.checks, record.rows_in, record.rows_out = checks, None, None
        record.interval_from = record.interval_to = None
        raise


def _affected(run: Run, task: Task, record: Record, kept: list[DataFrame]) -> tuple[Affected, bool, Broken]:
    """The windows and units to compute, whether no row of the published windows repeats a key, and the rows that break
    the contract only now, which go to quarantine. `kept` gets what is held in memory."""
    reason = task.reason
    if reason is None and task.after == task.version:
        found = Affected(run.plan, task.due)
        observed = f"published now, held back before: {plural(found.count, 'window')}"
        record.checks.append(Check("revision", True, observed, "watermark", data={"windows": found.count}))
        return found, task.unique, Broken()
    if reason is None:
        path = run.warehouse.source(run.contract.name)
        wanted = {*run.plan.columns, *(run.contract.key if run.contract.made_id else ())}  # an id is a key's values
        columns = [item.name for item in run.contract.columns if item.name in wanted]
        told = changes(
            run.spark, path, run.contract, columns, task.after, task.version, settled=task.settled, unique=task.unique
        )
        if isinstance(told, Changes):
            record.rows_in = told.rows
            waiting = (*task.due, *_waiting(run, task))
            found = touched_by(run.plan, told.good, task.published if told.rows else (), waiting)
            kept.extend((*told.kept, *((found.pairs,) if found.pairs is not None else ())))
            broken = _quarantine(run, told.bad, task) if told.rows else Broken()
            record.rows_quarantined = broken.rows
            record.windows = found.count
            record.checks += [_changes_check(task, told.rows, found), broken.check()]
            return found, told.unique, broken
        reason = told.reason
    found = Affected(run.plan, task.windows)
    record.windows = found.count
    observed = f"all computed anew, {plural(found.count, 'window')}: {reason}"
    data = {"windows": found.count, "to_version": task.version, "reason": reason}
    record.checks.append(Check("revision", True, observed, "change feed", data=data))
    return found, False, Broken()


def _changes_check(task: Task, rows: int, affected: Affected) -> Check:
    touched = f"{plural(affected.count, 'window')} touched"
    observed = f"{plural(rows, 'row')} changed from version {task.after} to {task.version}: {touched}"
    data = {"rows": rows, "windows": affected.count, "from_version": task.after, "to_version": task.version}
    return Check("revision", True, observed, "change feed", data=data)


def _waiting(run: Run, task: Task) -> tuple[Stretch, ...]:
    """Windows whose rows may differ because time has come further, or less far: those that one of the two versions had
    not passed; all, where the older one can no longer be asked."""
    if not run.plan.waits:
        return ()
    try:
        passed = min(time_of(run, task.after), time_of(run, task.version))
    except StepOrderError:  # the older one's log entry is gone
        return task.published
    except (PySparkException, Py4JJavaError) as error:
        if lost(error) is None:
            raise
        return task.published
    windows = run.plan.windows
    first = (passed - windows.origin - windows.within) // windows.slide + 1
    return tuple((max(start, first), last) for start, last in task.published if last >= first)


def _quarantine(run: Run, bad: DataFrame, task: Task) -> Broken:
    """Write the bad rows, once for this run and version; how many."""
    bad = bad.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        broken = broken_of(bad)
        if broken.rows:
            with_retries(
                lambda: q.write_quarantine(
                    q.bad_rows(bad, run.run_id, task.version), run.warehouse.quarantine(run.contract.name),
                    run_id=run.run_id, source_version=task.version,
                    key=f"revise {task.after} {run.name} {run.contract.fingerprint} {task.source_table}",
                ),
                "writing the quarantine",
            )  # fmt: skip
        return broken
    finally:
        bad.unpersist()


def _computed(
    run: Run, found: Affected, unique: bool, task: Task, record: Record, broken: Broken
) -> tuple[DataFrame, bool]:  # fmt: skip
    """The rows that the affected windows and units should have, staged, judged by the results contract; and whether in
    all windows no row repeats a key. `unique`: so it is in those that were published before; `broken`: the rows that
    went to quarantine."""
    windows = run.plan.windows
    hull = replace(run, start_us=windows.end(found.windows[0]) - 1, end_us=windows.end(found.windows[-1]))
    record.interval_from, record.interval_to = windows.start(found.windows[0]), hull.end_us
    source = read_at(run.spark, run.warehouse.source(run.contract.name), task.version)
    inside = found.events()
    alone = unique and not task.due
    if alone:
        _refuse_lost(run, broken, source)
        events = needed(run, found.of_units(q.keeping(source.where(inside), run.contract.rules)))
        events = events.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            record.staged_version, record.rows_out = _stage(run, hull, found, events, events.count(), task)
        finally:
            events.unpersist()
    else:
        if not found.touched and found.stretches == task.windows:  # as a run does: a row without a time may be of any
            inside |= column(run.contract.event_time).isNull()
        annotated = q.annotate(source.where(inside), run.contract.rules, rest=source.where(~inside))
        annotated = annotated.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rows, bad, again = annotated.agg(sf.count(sf.lit(1)), *broken_rows(run.contract)).collect()[0]
            # A late row that is bad may be alone in its window: what a change lost counts against the whole table.
            if found.touched:
                _refuse_lost(run, broken, source)
            else:
                broken = _quarantine(run, annotated.where(sf.size(BROKEN) > 0), task) if bad else Broken()
                record.rows_in, record.rows_quarantined = rows, broken.rows
                record.checks.append(broken.check())
                _refuse_lost(run, broken, annotated)
            events = needed(run, found.of_units(q.good_rows(annotated)))
            record.staged_version, record.rows_out = _stage(run, hull, found, events, rows, task)
        finally:
            annotated.unpersist()
        alone = not again and (unique or found.stretches == task.windows)
    staged = read_staged(run, record.staged_version)
    contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
    kept, _, _ = judged(staged, contract.rules, f"results_{run.name}", record.rows_out, sf.lit(True))
    record.checks += kept
    refuse_failed(run, record, kept, contract.rules)
    return staged, alone


def _stage(run: Run, hull: Run, found: Affected, events: DataFrame, rows: int, task: Task) -> tuple[int, int]:
    """As `write_staged`, of the affected windows' events, of which there are `rows` at most."""
    if not rows:
        return write_staged(hull, no_rows(hull), task.version)
    time = min(hull.end_us, time_of(run, task.version)) if run.plan.waits else None
    return cut_and_stage(hull, events, rows, task.version, time, found.rows)


def _refuse_lost(run: Run, broken: Broken, of: DataFrame) -> None:
    """Raises ToleranceError where the contract does not tolerate so many bad rows."""
    if not broken.lost:
        return
    rows = of.count()
    if broken.lost > run.contract.tolerance * rows:
        raise ToleranceError(
            f"{broken.lost} of {rows} rows of '{run.contract.name}' break its contract since the last revision; "
            f"it tolerates {run.contract.tolerance:.2%}: {broken}",
            hint=f"see them with `trendlake quarantine show {run.contract.name}`",
        )


def _published(
    run: Run, ledger: Ledger, against: Callable[[int], Difference | Rewrite], task: Task, record: Record,
    claims: dict[str, Any],
) -> bool:  # fmt: skip
    """Commit what differs, `against` a version of the results. Taken again where others published other windows
    meanwhile; False where the same."""
    for _ in range(ATTEMPTS):
        told = against(int(ledger.version or 0))
        try:
            record.results_version = ledger.version
            if told.empty:
                return _quiet(ledger, record, claims)
            note = {"run_id": run.run_id, "stage": "revise", "number": ledger.number, **claims}
            commit = told.commit(note)
        except CONFLICTS:
            commit = None
        finally:
            told.close()
        if commit is not None:
            record.results_version, record.note = commit.version, note
            record.rows_inserted, record.rows_updated = told.counts[INSERT], told.counts[UPDATE]
            record.rows_deleted = told.counts[DELETE]
            return True
        before, ledger = ledger, read_ledger(run.spark, run.warehouse, run.name, run.plan, run.contract.name)
        if _in(ledger, task) != _in(before, task):
            return False
    return False


def _in(ledger: Ledger, task: Task) -> list[Segment]:
    """What a ledger says of the windows of a task."""
    first, last = task.windows[0][0], task.windows[-1][1]
    return [segment for segment in ledger.segments if segment.first <= last and segment.last >= first]


def _claims(
    run: Run, ledger: Ledger, task: Task, unique: bool, found: Affected, *, local: bool
) -> dict[str, Any]:  # fmt: skip
    """All published windows show the task's version now, those that were not touched too; those of `found` are computed
    by the present versions of the code, `local`: in this process."""
    return {
        "source_version": task.version,
        "plan_hash": run.plan.hash,
        "owned": [list(slice_of(run.plan, *stretch)) for stretch in task.windows],
        "unique": unique,
        "results_table": ledger.table_id,
        **noted(run, task.basis(run), [range(first, last + 1) for first, last in task.windows]),
        **note_of_revision(run.plan, found, local=local),
    }


def _quiet(ledger: Ledger, record: Record, claims: dict[str, Any]) -> bool:
    """Nothing differs: no commit; the run record says up to where the results have been seen to be right."""
    record.note = {"quiet": True, **claims}
    record.results_version = ledger.version
    return True
