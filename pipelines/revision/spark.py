"""A revision on Spark: of any size, and for every reason to revise."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.sharing.changes import binds_some
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.history_checks import checks as history_checks
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import either, refuse_more
from trendlake.pipelines.lake.warehouse import with_retries
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.quarantine_counts import Broken, broken_of, broken_rows
from trendlake.pipelines.quality.uniqueness import BROKEN
from trendlake.pipelines.results.computation import cut_and_stage
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.results.source_events import needed
from trendlake.pipelines.results.staged_checks import judged, refuse_failed
from trendlake.pipelines.results.staging import read_staged, stage_nothing
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.affected import Affected, touched_by
from trendlake.pipelines.revision.change_feed import Changes, NoFeed, changes, lost
from trendlake.pipelines.revision.difference import Difference, counted, difference
from trendlake.pipelines.revision.matching import columns_of, matching
from trendlake.pipelines.revision.revision import changes_check, quarantine_key, refuse_lost
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import NET, SourceChanges
from trendlake.pipelines.runs.consistency import watermark_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of


class SparkRevision:
    """A `Revision`; the rows that it computes are staged like those of a run."""

    local = False

    def __init__(self, run: Run, ledger: Ledger, task: Task, changes: SourceChanges) -> None:
        self.run, self.ledger, self.task, self.changes = run, ledger, task, changes
        self.affected, self.unique = Affected(run.plan), False
        self._broken = Broken()
        """Rows in quarantine since the published version."""
        self._staged: DataFrame | None = None
        self._persisted: list[DataFrame] = []

    def find_affected(self, record: Record) -> None:
        task, reason = self.task, self.task.reason
        if reason is None and task.after == task.sources:
            self.affected, self.unique = Affected(self.run.plan, task.due), task.unique
            count = self.affected.count
            observed = f"published now, held back before: {plural(count, 'window')}"
            record.checks.append(Check("revision", True, observed, "watermark", data={"windows": count}))
            return
        if reason is None:
            no_feed = self._follow_changes(record)
            if no_feed is None:
                return
            reason = no_feed.reason
        self.affected, self.unique = Affected(self.run.plan, task.windows), False
        record.windows = self.affected.count
        observed = f"all computed anew, {plural(record.windows, 'window')}: {reason}"
        data = {"windows": record.windows, "to_version": task.sources.version, "reason": reason}
        record.checks.append(Check("revision", True, observed, "change feed", data=data))

    def _follow_changes(self, record: Record) -> NoFeed | None:
        """Finds the units and windows that changed events affect; the reason if the change feed cannot say."""
        run, task = self.run, self.task
        contract, path = run.contract, run.warehouse.source(run.contract.name)
        after, upto = task.after.only.version, task.sources.only.version
        key = path, contract.fingerprint, task.after, task.sources, task.settled, task.unique

        def read() -> Changes | NoFeed:
            answer = changes(run.lake, path, contract, after, upto, settled=task.settled, unique=task.unique)
            if isinstance(answer, Changes):
                self.changes.hold(answer.persisted)
            return answer

        changed = self.changes.once(("changes", *key), read)
        if isinstance(changed, NoFeed):
            return changed
        record.rows_in = changed.rows
        waiting = (*task.due, *_waiting(run, task))
        good = self._good(changed, key) if changed.rows else None
        self.affected = touched_by(run.plan, good, task.published, waiting)
        self.unique = changed.unique
        if self.affected.pairs is not None:
            self._persisted.append(self.affected.pairs)
        if changed.rows:
            self._broken = self.changes.once(("bad", run.run_id, *key), lambda: _quarantine(run, changed.bad, task))
        record.rows_quarantined, record.windows = self._broken.rows, self.affected.count
        record.checks += [changes_check(task, changed.rows, self.affected), self._broken.check()]
        return None

    def _good(self, changed: Changes, key: object) -> DataFrame | None:
        """The good rows that came or went and that the plan may match, its columns; None where there is none. Of many
        rows all of its types."""
        columns = columns_of(self.run)
        if not changed.settled or changed.rows > limits.MATCHED or not binds_some(self.run.plan):
            return changed.good(columns)

        def here() -> DataFrame | None:
            rows = self.changes.once(("rows", key), lambda: _collected(changed, self.run.contract))
            seen = matching(self.run, rows, self.changes, key)
            return frame_of(self.run.lake.spark, seen.drop_columns([NET])) if seen.num_rows else None

        return either(here, lambda: changed.good(columns))

    def compute(self, record: Record) -> None:
        windows, affected = self.run.plan.windows, self.affected.windows
        hull = replace(self.run, start_us=windows.end(affected[0]) - 1, end_us=windows.end(affected[-1]))
        record.interval_from, record.interval_to = self.affected.interval
        source = read_at(
            self.run.lake, self.run.warehouse.source(self.run.contract.name), self.task.sources.only.version
        )
        if self.unique and not self.task.due:
            self._stage_unique(hull, source, record)
        else:
            self._stage_any(hull, source, record)
        self._check_staged(record)

    def _stage_unique(self, hull: Run, source: DataFrame, record: Record) -> None:
        """No key is repeated: each row is judged alone."""
        run = self.run
        _refuse_lost(run, self._broken, source)
        rows = q.keeping(source.where(self.affected.events()), run.contract.rules)
        events = needed(run.contract, run.plan, self.affected.of_units(rows)).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            record.staged_version, record.rows_out = self._stage(hull, events, events.count())
        finally:
            events.unpersist()

    def _stage_any(self, hull: Run, source: DataFrame, record: Record) -> None:
        """Rows that repeat a key are looked for."""
        run, affected = self.run, self.affected
        inside, everything = affected.events(), affected.stretches == self.task.windows
        if not affected.touched and everything:  # as a run does: a row without a time may be of any
            inside |= column(run.contract.event_time).isNull()
        annotated = q.annotate(source.where(inside), run.contract.rules, rest=source.where(~inside))
        annotated = annotated.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rows, bad, repeats = annotated.agg(sf.count(sf.lit(1)), *broken_rows(run.contract)).collect()[0]
            # A late row that is bad may be alone in its window: what a change lost counts against the whole table.
            if affected.touched:
                _refuse_lost(run, self._broken, source)
            else:
                broken = _quarantine(run, annotated.where(sf.size(BROKEN) > 0), self.task) if bad else Broken()
                record.rows_in, record.rows_quarantined = rows, broken.rows
                record.checks.append(broken.check())
                _refuse_lost(run, broken, annotated)
            events = needed(run.contract, run.plan, affected.of_units(q.good_rows(annotated)))
            record.staged_version, record.rows_out = self._stage(hull, events, rows)
        finally:
            annotated.unpersist()
        self.unique = not repeats and (self.unique or everything)

    def _stage(self, hull: Run, events: DataFrame, rows: int) -> tuple[int, int]:
        """As `write_staged`, of the affected windows' events, `rows` at most."""
        if not rows:
            return stage_nothing(hull, self.task.sources)
        time = min(hull.end_us, watermark_of(self.run, self.task.sources.only.version)) if self.run.plan.waits else None
        return cut_and_stage(hull, events, rows, self.task.sources, time, self.affected.rows)

    def _check_staged(self, record: Record) -> None:
        run, number = self.run, int(record.staged_version or 0)
        self._staged = read_staged(run, number)
        contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
        checks, _, _ = judged(self._staged, contract.rules, f"results_{run.name}", record.rows_out or 0, None)
        record.checks += checks
        refuse_failed(run, number, checks, contract.rules)
        checks = history_checks.of_revision(run, self.ledger, self.affected.stretches, self.affected.rows, self._staged)
        record.checks += checks
        history_checks.refuse_unexpected(run, number, checks)

    def difference(self, results_version: int) -> Difference:
        if self._staged is None:
            raise RuntimeError("compute() comes before difference()")
        published = read_at(self.run.lake, self.run.warehouse.results(self.run.name), results_version)
        return counted(self.run, difference(published, self._staged, self.affected), self.affected)

    def close(self) -> None:
        for frame in self._persisted:
            frame.unpersist()


def _collected(changed: Changes, contract: Contract) -> pa.Table:
    """The good rows that came or went, the contract's columns and `NET`. Raises NotHereError."""
    rows = changed.good([item.name for item in contract.columns]).limit(limits.MATCHED + 1).toArrow()
    refuse_more(rows.num_rows, limits.MATCHED, "rows")
    return rows


def _waiting(run: Run, task: Task) -> tuple[Stretch, ...]:
    """Windows whose rows may differ because time has come further, or less far: those that one of the two versions had
    not passed; all, where the older one can no longer be asked."""
    if not run.plan.waits:
        return ()
    try:
        reached = min(watermark_of(run, some.only.version) for some in (task.after, task.sources))
    except StepOrderError:  # the older one's log entry is gone
        return task.published
    except (PySparkException, Py4JJavaError) as error:
        if lost(error) is None:
            raise
        return task.published
    first = run.plan.windows.after(reached)
    return tuple((max(start, first), last) for start, last in task.published if last >= first)


def _quarantine(run: Run, bad: DataFrame, task: Task) -> Broken:
    """Writes the bad rows, once for this run and version; how many."""
    bad = bad.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        broken = broken_of(bad)
        if broken.rows:
            with_retries(
                lambda: q.write_quarantine(
                    run.lake,
                    q.bad_rows(bad, run.run_id, task.sources.only.version),
                    run.warehouse.quarantine(run.contract.name),
                    run_id=run.run_id,
                    source_version=task.sources.only.version,
                    key=quarantine_key(run, task),
                    rows=broken.rows,
                ),
                "writing the quarantine",
            )
        return broken
    finally:
        bad.unpersist()


def _refuse_lost(run: Run, broken: Broken, of: DataFrame) -> None:
    """As `refuse_lost`; the rows are counted where some are lost."""
    if broken.lost:
        refuse_lost(run, broken, of.count())
