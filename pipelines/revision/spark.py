"""A revision on Spark: of any size, and for every reason to revise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.plan import times_read
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
from trendlake.pipelines.results.reference_tables import reference_tables, refuse_repeated
from trendlake.pipelines.results.source_events import needed
from trendlake.pipelines.results.staged_checks import judged, refuse_failed
from trendlake.pipelines.results.staging import read_staged, stage_nothing
from trendlake.pipelines.results.union_events import own_columns, union_frame
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.affected import Affected, touched_by
from trendlake.pipelines.revision.change_feed import Changes, NoFeed, changes, lost
from trendlake.pipelines.revision.changed_lookups import ChangedLookups, LookupCounts
from trendlake.pipelines.revision.difference import Difference, counted, difference
from trendlake.pipelines.revision.judged_again import judged_again_by_spark, shown_on_spark
from trendlake.pipelines.revision.matching import columns_of, matching
from trendlake.pipelines.revision.revision import Refused, changes_check, quarantine_key
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import NET, SourceChanges
from trendlake.pipelines.runs.consistency import least_watermark, of_table
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
        self.rows, self.lookups, self.broken = dict[str, int](), LookupCounts(), dict[str, Broken]()
        self._bad: list[tuple[Run, DataFrame]] = []
        """The rows that are to be quarantined."""
        self._references: list[tuple[Run, Changes]] = []
        """The reference tables that have changed."""
        self._followed = False
        """Whether it follows change feeds, and so knows what has changed in reference tables."""
        self._staged: DataFrame | None = None
        self._persisted: list[DataFrame] = []

    def find_affected(self, record: Record) -> None:
        task, reason = self.task, self.task.reason
        if reason is None and task.after == task.sources and not task.earlier:
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
        """Finds the units and windows that changed events affect; the reason if a change feed cannot say."""
        run, task = self.run, self.task
        of_parts: list[tuple[Run, Changes]] = []
        for part in run.parts:
            if not task.changed(part.key):
                continue  # nothing has changed in this one of several tables
            changed = self.changes.once(("changes", *_key(part, task)), partial(self._changes, part, task))
            if isinstance(changed, NoFeed):
                return NoFeed(f"'{part.key}': {changed.reason}") if run.sources.united else changed
            of_parts.append((part, changed))
        otherwise = self._looked_up_otherwise(record) if run.references else None
        if isinstance(otherwise, NoFeed):
            return otherwise
        self.rows = {part.key: changed.rows for part, changed in of_parts}
        record.rows_in = rows = sum(self.rows.values())
        waiting = (*task.due, *_waiting(run, task))
        both = self._came_or_went(of_parts)
        if otherwise is not None:
            both = otherwise if both is None else both.select(*map(column, otherwise.columns)).unionByName(otherwise)
        self.affected = touched_by(run.plan, both, task.published, waiting)
        self.unique = task.unique if not of_parts else all(changed.unique for _, changed in of_parts)
        if len(of_parts) < len(run.parts):
            self.unique = self.unique and task.unique
        if self.affected.pairs is not None:
            self._persisted.append(self.affected.pairs)
        for part, changed in (*of_parts, *self._references):
            if changed.rows:
                bad, self.broken[part.key] = self.changes.once(
                    ("bad", *_key(part, task)), partial(_counted, changed.bad)
                )
                self.changes.hold((bad,))
                self._bad.append((part, bad))
        record.rows_quarantined = sum(broken.rows for broken in self.broken.values())
        record.windows = self.affected.count
        record.checks.append(changes_check(task, rows, self.affected))
        record.checks += [of_table(part, self.broken.get(part.key, Broken()).check()) for part in run.every_part]
        self._followed = True
        return None

    def _looked_up_otherwise(self, record: Record) -> DataFrame | NoFeed | None:
        """The events of the published windows that get other columns by changed reference tables; None where none of
        these has changed."""
        run, task = self.run, self.task
        for part in run.references:
            if task.after.at(part.key) == task.sources.at(part.key):
                continue
            if not task.settled:
                return NoFeed(f"windows show several versions, and '{part.key}' has changed")
            reading = partial(self._changes, part, task.of_references())
            changed = self.changes.once(("reference", *_key(part, task)), reading)
            if isinstance(changed, NoFeed):
                return NoFeed(f"'{part.key}': {changed.reason}")
            self._references.append((part, changed))
        rows = either(self._reference_rows, lambda: None)
        if rows is None:
            return NoFeed(f"more than {limits.MATCHED:,} rows of a reference table have changed")
        lookups = ChangedLookups.of(run, task, rows)
        self.lookups = lookups.counts
        if not lookups.counts.rows:
            record.checks.append(self.lookups.check())
            return None
        events = lookups.events_on_spark(run.plan, self._published_events()).persist(StorageLevel.MEMORY_AND_DISK)
        self._persisted.append(events)
        chosen = events if run.sources.united else events.select(*map(column, columns_of(run)))
        alone = touched_by(run.plan, chosen, task.published, ())
        self.lookups = replace(self.lookups, events=events.count(), windows=alone.count)
        record.checks.append(self.lookups.check())
        if alone.pairs is not None:
            alone.pairs.unpersist()
        return chosen

    def _published_events(self) -> DataFrame:
        """The events of the published windows: what lookups are computed of, and all that a change touches windows by.
        Those that repeat a key may be among them: then more is computed again."""
        run, task = self.run, self.task
        spans = [times_read(run.plan, range(first, last + 1)) for first, last in task.published]
        good: list[tuple[Run, DataFrame]] = []
        for part in run.parts:
            near = reduce(lambda a, b: a | b, (q.in_range(part.contract, *span) for span in spans))
            good.append((part, q.keeping(self._source(part).where(near), part.contract.rules)))
        if run.sources.united:
            return union_frame(run, good, run.plan)
        ((part, rows),) = good
        rows = rows.select(*map(column, columns_of(run)))
        kind, constant = run.plan.schema.event_type, part.contract.constant_type
        return rows if constant is None else rows.withColumn(kind, sf.lit(constant))

    def _reference_rows(self) -> dict[str, pa.Table]:
        """The good rows of each reference table that came or went. Raises NotHereError."""
        return {part.key: _collected(changed, part.contract) for part, changed in self._references}

    def _changes(self, part: Run, task: Task) -> Changes | NoFeed:
        """Those of one table."""
        after, upto = task.after.at(part.key).version, task.sources.at(part.key).version
        path = part.warehouse.source(part.contract.name)
        if part.key in task.earlier:
            try:
                answer: Changes | NoFeed = judged_again_by_spark(part, task)
            except (PySparkException, Py4JJavaError) as error:
                if (missing := lost(error)) is None:
                    raise
                return NoFeed(f"a version that windows show can no longer be read ({missing})")
        else:
            answer = changes(part.lake, path, part.contract, after, upto, settled=task.settled, unique=task.unique)
        if isinstance(answer, Changes):
            self.changes.hold(answer.persisted)
        return answer

    def _came_or_went(self, of_parts: Sequence[tuple[Run, Changes]]) -> DataFrame | None:
        """The good rows that did and that the plan may match, its columns; None where there is none."""
        of_parts = [(part, changed) for part, changed in of_parts if changed.rows]
        if not of_parts:
            return None
        if not self.run.sources.united:
            ((part, changed),) = of_parts
            return self._good(changed, _key(part, self.task))
        rows = [(part, changed.good(own_columns(part, self.run.plan))) for part, changed in of_parts]
        return union_frame(self.run, rows, self.run.plan)

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

    def quarantine(self) -> None:
        for part, bad in self._bad:
            if (broken := self.broken[part.key]).rows:
                key = "quarantined", self.run.run_id, *_key(part, self.task)
                self.changes.once(key, partial(_quarantine, part, bad, broken, self.task))

    def refuse(self) -> None:
        if not self._followed:
            return
        refused, alone = Refused(self.task.earlier), self.unique and not self.task.due
        # A late row that is bad may be alone in its window: what a change lost counts against the whole table.
        parts = self.run.parts if alone or self.affected.touched or self.task.earlier else ()
        for part in (*parts, *self.run.references):
            source = self._source(part)
            if part.key in self.task.earlier:
                source = source.where(shown_on_spark(part, self.task))
            refused.ask(part, self.broken.get(part.key, Broken()), source.count)
        refused.raise_all()

    def compute(self, record: Record) -> None:
        windows, affected = self.run.plan.windows, self.affected.windows
        hull = replace(self.run, start_us=windows.end(affected[0]) - 1, end_us=windows.end(affected[-1]))
        record.interval_from, record.interval_to = self.affected.interval
        self._judge_references(record)
        if self.unique and not self.task.due:
            self._stage_unique(hull, record)
        else:
            self._stage_any(hull, record)
        self._check_staged(record)

    def _judge_references(self, record: Record) -> None:
        """Where change feeds are not followed, all of each reference table is judged. Raises ToleranceError."""
        refused = Refused()
        for part in () if self._followed else self.run.references:
            source = self._source(part)
            annotated = q.annotate(source, part.contract.rules).where(sf.size(BROKEN) > 0)
            broken = self._judged(part, annotated)
            record.checks.append(of_table(part, broken.check()))
            refused.ask(part, broken, source.count)
        refused.raise_all()

    def _judged(self, part: Run, bad: DataFrame) -> Broken:
        """The bad rows of one table, which are quarantined."""
        bad, broken = _counted(bad)
        try:
            if broken.rows:
                _quarantine(part, bad, broken, self.task)
            return broken
        finally:
            bad.unpersist()

    def _stage_unique(self, hull: Run, record: Record) -> None:
        """No key is repeated: each row is judged alone."""
        rows = [
            (part, q.keeping(self._source(part).where(self._inside(part)), part.contract.rules))
            for part in self.run.parts
        ]
        events = self._events(rows).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            record.staged_version, record.rows_out = self._stage(hull, events, events.count())
        finally:
            events.unpersist()

    def _stage_any(self, hull: Run, record: Record) -> None:
        """Rows that repeat a key are looked for."""
        affected, refused = self.affected, Refused()
        everything = affected.stretches == self.task.windows
        good: list[tuple[Run, DataFrame]] = []
        held: list[DataFrame] = []
        counted, quarantined, repeated = 0, 0, False
        try:
            for part in self.run.parts:
                rules, source, inside = part.contract.rules, self._source(part), self._inside(part)
                if not affected.touched and everything:  # as a run does: a row without a time may be of any
                    inside |= column(part.contract.event_time).isNull()
                annotated = q.annotate(source.where(inside), rules, rest=source.where(~inside))
                held.append(annotated.persist(StorageLevel.MEMORY_AND_DISK))
                rows, bad, repeats = held[-1].agg(sf.count(sf.lit(1)), *broken_rows(part.contract)).collect()[0]
                if not affected.touched:
                    broken = self._judged(part, held[-1].where(sf.size(BROKEN) > 0)) if bad else Broken()
                    quarantined += broken.rows
                    record.checks.append(of_table(part, broken.check()))
                    refused.ask(part, broken, held[-1].count)
                counted, repeated = counted + rows, repeated or bool(repeats)
                good.append((part, q.good_rows(held[-1])))
            if not affected.touched:
                record.rows_in, record.rows_quarantined = counted, quarantined
            refused.raise_all()
            record.staged_version, record.rows_out = self._stage(hull, self._events(good), counted)
        finally:
            for frame in held:
                frame.unpersist()
        self.unique = not repeated and (self.unique or everything)

    def _source(self, part: Run) -> DataFrame:
        """The newest version of one table."""
        path = part.warehouse.source(part.contract.name)
        return read_at(part.lake, path, self.task.sources.at(part.key).version)

    def _inside(self, part: Run) -> Column:
        """Whether rows of one table are in the affected windows."""
        return self.affected.events(part.contract.event_time, part.begins)

    def _events(self, good: Sequence[tuple[Run, DataFrame]]) -> DataFrame:
        """The events of the affected units, of good rows of each table."""
        plan = self.run.plan
        if self.run.sources.united:
            return self.affected.of_units(union_frame(self.run, good, plan))
        ((part, rows),) = good
        return needed(part.contract, plan, self.affected.of_units(rows))

    def _stage(self, hull: Run, events: DataFrame, rows: int) -> tuple[int, int]:
        """As `write_staged`, of the affected windows' events, `rows` at most."""
        if not rows:
            return stage_nothing(hull, self.task.sources)
        time = min(hull.end_us, least_watermark(self.run, self.task.sources)) if self.run.plan.waits else None
        reference = reference_tables([self.run], self.task.sources)
        for lookup in self.run.plan.schema.lookups:  # of all keys: all windows may be computed, by another table
            refuse_repeated(self.run, lookup, reference)
        return cut_and_stage(hull, events, rows, self.task.sources, time, self.affected.rows, reference)

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
        reached = min(least_watermark(run, some) for some in (task.after, task.sources))
    except StepOrderError:  # the older one's log entry is gone
        return task.published
    except (PySparkException, Py4JJavaError) as error:
        if lost(error) is None:
            raise
        return task.published
    first = run.plan.windows.after(reached)
    return tuple((max(start, first), last) for start, last in task.published if last >= first)


def _counted(bad: DataFrame) -> tuple[DataFrame, Broken]:
    """Bad rows, held in memory, and how many they are."""
    bad = bad.persist(StorageLevel.MEMORY_AND_DISK)
    return bad, broken_of(bad)


def _quarantine(run: Run, bad: DataFrame, broken: Broken, task: Task) -> None:
    """Writes the bad rows, once for this run and version."""
    version = task.sources.at(run.key).version
    with_retries(
        lambda: q.write_quarantine(
            run.lake,
            q.bad_rows(bad, run.run_id, version),
            run.warehouse.quarantine(run.contract.name),
            run_id=run.run_id,
            source_version=version,
            key=quarantine_key(run, task),
            rows=broken.rows,
        ),
        "writing the quarantine",
    )


def _key(part: Run, task: Task) -> tuple[object, ...]:
    """The key of the changes of one table."""
    path = part.warehouse.source(part.contract.name)
    after, upto = task.after.at(part.key), task.sources.at(part.key)
    judged = (task.judged_by(part.key), task.published, part.plan.windows) if part.key in task.earlier else ()
    return path, part.contract.fingerprint, after.version, upto.version, task.settled, task.unique, judged
