"""Revising: what a pattern has published, brought to the newest version of its source, and no further.

The change feed since the version that the results speak of says which (unit, window) pairs may differ; those are
computed again at the pinned version, and the differences are published in one commit. Where nothing differs there is
none. The results are then what a full recomputation at that version would give, in all windows that runs have
published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache

from trendlake.cep_core.events.zones import database
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import BusyTableError
from trendlake.pipelines.lake.versions import TableVersion, newest
from trendlake.pipelines.lake.warehouse import CONFLICTS
from trendlake.pipelines.results.coverage import Segment, slice_of
from trendlake.pipelines.results.ledger import Ledger, Publications, read_ledger
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.publication import DELETE, INSERT, UPDATE
from trendlake.pipelines.results.reuse import noted
from trendlake.pipelines.results.types import refuse_other_types
from trendlake.pipelines.revision.affected import work_of_revision
from trendlake.pipelines.revision.earlier_contracts import remember_contracts
from trendlake.pipelines.revision.revision import Revision, refuse_too_much
from trendlake.pipelines.revision.scope import Task, older_versions, stale_windows, task_of
from trendlake.pipelines.revision.source_changes import SourceChanges
from trendlake.pipelines.runs.consistency import future_events, of_table, watermark_check, watermarks
from trendlake.pipelines.runs.record import Attempt, recorded_together
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record

ATTEMPTS = 5


class Shared:
    """Reads that revisions of patterns of one source share: the records of their publications, the source's newest
    version, and its changes."""

    def __init__(self, runs: Sequence[Run]) -> None:
        lake = runs[0].lake
        self.publications = Publications(lake, [one.name for one in runs])
        self.changes = SourceChanges()
        self._newest = cache(lambda name: newest(lake, lake.warehouse.source(name)))
        self._ledgers: dict[str, Ledger] = {}

    def ledger(self, run: Run) -> Ledger:
        """As of when it was asked first: a publication that others have recorded since is no unrecorded one."""
        if run.name not in self._ledgers:
            about = run.lake, run.name, run.plan, run.sources.name
            ledger = read_ledger(*about, self.publications)
            self._ledgers[run.name] = read_ledger(*about) if ledger.unrecorded else ledger
        return self._ledgers[run.name]

    def has_published(self, run: Run) -> bool:
        """Whether there is something of the pattern, in its present form, that could be revised."""
        return any(segment.plan_hash == run.plan.hash for segment in self.ledger(run).segments)

    def sources(self, run: Run, ledger: Ledger) -> dict[str, TableVersion | None]:
        """The newest version of each table, by its key, or newer ones, where others have published from those in the
        meantime."""
        names = {part.key: part.contract.name for part in run.every_part}
        versions = {key: self._newest(name) for key, name in names.items()}
        shown = [segment.sources for segment in ledger.segments if segment.sources is not None]
        if any(_beyond(one, versions) for one in shown):
            return {key: newest(run.lake, run.warehouse.source(name)) for key, name in names.items()}
        return versions


def _beyond(shown: Versions, versions: Mapping[str, TableVersion | None]) -> bool:
    """Whether some number is greater than the newest version of its table."""
    there = {key: table.version for key, table in versions.items() if table is not None}
    return any(table.version > there.get(table.name, table.version) for table in shown.tables)


def revise(run: Run, shared: Shared | None = None) -> Record:
    """Bring the published windows of the pattern to the source's newest version; the run's interval plays no part.
    `shared`: as of `revise_together`.

    Raises StepOrderError (nothing is published), SourceMissingError, SourceSchemaError, ResultsTypeError,
    ToleranceError, TooMuchError, LookupRepeatedError, ChecksFailedError, ShardTooLargeError, BusyTableError (others
    publish the same windows all the time).
    """
    (attempt,) = revise_together([run], shared)
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def revise_together(runs: Sequence[Run], shared: Shared | None = None) -> list[Attempt]:
    """As `revise` of patterns of one source, all to one version of it. An error of one stops no other. Raises whatever
    ends Spark. `shared`: what has been read of `runs`, and perhaps of others of this source."""
    lake, shared = runs[0].lake, shared or Shared(runs)
    with closing(shared.changes), recorded_together(lake, [run.record("revise") for run in runs]) as attempts:
        for run, attempt in zip(runs, attempts, strict=True):
            with attempt.going_on() as record:
                _revise(run, record, shared)
            attempt.raise_if_ended(lake)
    return attempts


def _revise(run: Run, record: Record, shared: Shared) -> None:
    record.interval_from = record.interval_to = record.windows = None
    if _revised(run, record, shared):
        return
    for _ in range(ATTEMPTS - 1):
        anew = Shared([run])
        with closing(anew.changes):
            if _revised(run, record, anew):
                return
    raise BusyTableError(f"revising {run.name}: other runs published the same windows at each of {ATTEMPTS} attempts")


def _revised(run: Run, record: Record, shared: Shared) -> bool:
    """One attempt; False where other publications came in between."""
    work = work_of(run, record, shared)
    if work.revision is None:
        return True
    with closing(work.revision):
        return _revised_by(work.revision, run, work.ledger, work.task, record)


@dataclass(frozen=True)
class Work:
    """The work of a revision. `revision`: has found the windows and written nothing; None where nothing is to be
    done. `ledger`: of what is published."""

    ledger: Ledger
    task: Task
    revision: Revision | None = None


def work_of(run: Run, record: Record, shared: Shared) -> Work:
    """Finds what a revision is to do, and says it in `record`; it writes nothing. Raises as `revise` does, without
    ToleranceError and what the rows of results raise."""
    ledger = shared.ledger(run)
    task = task_of(run, ledger, shared.sources(run, ledger))
    record.checks, record.windows, record.basis = ledger.checks(), 0, task.basis(run)
    record.interval_from = record.interval_to = record.rows_in = record.rows_out = None
    record.road = record.road_reason = None
    refuse_other_types(run)
    record.checks += _stale_checks(run, ledger)
    record.rows_inserted = record.rows_updated = record.rows_deleted = record.rows_quarantined = 0
    record.source_version, record.results_version = task.sources.version, ledger.version
    record.sources = run.recorded(task.sources) if run.sources.named else None
    if run.pattern.consistency == "weak":
        record.checks.append(Check("revision", True, "nothing: a weak pattern corrects nothing", "change feed"))
        return Work(ledger, task)
    if task.reason is None and task.after == task.sources and not task.due and not task.earlier:
        observed, data = f"nothing new since {task.sources.words}", {"to_version": task.sources.version}
        record.checks.append(Check("revision", True, observed, "change feed", data=data))
        return Work(ledger, task)
    if run.needs_watermark:
        for part in run.parts:
            record.checks.append(of_table(part, future_events(part, task.sources.at(part.key).version)))
        if run.sources.named:
            record.checks.append(watermark_check(run, watermarks(run, task.sources)))
    from trendlake.pipelines.revision.here import revision_here  # with the kernels: mostly nothing is to be done
    from trendlake.pipelines.revision.spark import SparkRevision

    revision: Revision
    revision, road = run.roads.take(
        "revise",
        lambda: revision_here(run, task, int(ledger.version or 0), shared.changes),
        lambda: SparkRevision(run, ledger, task, shared.changes),
    )
    record.took(road)
    try:
        revision.find_affected(record)
    except BaseException:
        revision.close()
        raise
    return Work(ledger, task, revision)


def _stale_checks(run: Run, ledger: Ledger) -> list[Check]:
    """Of published windows that a revision leaves alone: those of another form of the pattern, or of faulty code."""
    checks = []
    stale = stale_windows(run, ledger)
    if stale:
        checks.append(Check("stale_rows", False, stale, "all windows in the pattern's present form"))
    old = older_versions(run, ledger)
    if old is not None:
        data = {"windows": [list(interval) for interval in old.windows], "reason": old.reason}
        sentence = old.sentence(run.typed)
        checks.append(Check("stale_versions", False, sentence, "versions known to be right", data=data))
    if old is not None and old.clocks:
        data = {"windows": [list(interval) for interval in old.clocks], "reason": "zone", "database": database()}
        count = sum(last - first + 1 for first, last in old.clocks)
        sentence = f"{plural(count, 'window')} of other clocks; recomputed by `trendlake backfill {run.typed} --stale`"
        checks.append(Check("stale_zone", False, sentence, f"the clocks of the zone database {database()}", data=data))
    return checks


def _revised_by(revision: Revision, run: Run, ledger: Ledger, task: Task, record: Record) -> bool:
    refuse_too_much(run, revision.lookups.windows)
    revision.quarantine()
    record.basis = task.basis(run, revision.affected.windows)
    remember_contracts(run)
    if not revision.affected.stretches:
        if task.earlier:
            revision.refuse()
        return _unchanged(ledger, record, _claims(run, ledger, task, revision))
    revision.refuse()
    revision.compute(record)
    return _published(revision, run, ledger, task, record)


def _published(revision: Revision, run: Run, ledger: Ledger, task: Task, record: Record) -> bool:
    """Commits what differs. Takes the difference again if others published other windows meanwhile; False if the
    same."""
    claims = _claims(run, ledger, task, revision)
    for _ in range(ATTEMPTS):
        difference = revision.difference(int(ledger.version or 0))
        if difference is None:
            return False
        try:
            if difference.empty:
                return _unchanged(ledger, record, claims)
            note = claims.signed(run.run_id, "revise", ledger.number)
            commit = difference.commit(note)
        except CONFLICTS:
            commit = None
        finally:
            difference.close()
        if commit is not None:
            record.results_version, record.note = commit.version, note.as_json()
            counts = difference.counts
            record.rows_inserted, record.rows_updated, record.rows_deleted = (
                counts[INSERT],
                counts[UPDATE],
                counts[DELETE],
            )
            return True
        before, ledger = ledger, read_ledger(run.lake, run.name, run.plan, run.sources.name)
        if _in(ledger, task) != _in(before, task):
            return False
    return False


def _in(ledger: Ledger, task: Task) -> list[Segment]:
    """The segments of a ledger in the windows of a task."""
    first, last = task.windows[0][0], task.windows[-1][1]
    return [segment for segment in ledger.segments if segment.first <= last and segment.last >= first]


def _claims(run: Run, ledger: Ledger, task: Task, revision: Revision) -> Note:
    """All published windows show the task's versions now, those that were not touched too; the affected ones are
    computed by the present versions of the code."""
    shown = [range(first, last + 1) for first, last in task.windows]
    work = work_of_revision(run.plan, revision.affected, local=revision.local)
    owned = tuple(slice_of(run.plan, *stretch) for stretch in task.windows)
    note = noted(run, task.basis(run), shown, ledger.table_id, work)
    return replace(note, sources=task.sources, owned=owned, unique=revision.unique)


def _unchanged(ledger: Ledger, record: Record, claims: Note) -> bool:
    """Nothing differs: no commit; the run record says up to where the results have been seen to be right."""
    record.note = replace(claims, quiet=True).as_json()
    record.results_version = ledger.version
    return True
