"""Step 2: the windows of the run, computed by the kernels in Arrow workers, staged. Runs of one source read its events
once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from trendlake.pipelines.errors import OtherwiseWrittenError
from trendlake.pipelines.execute.channel import Member, channels_of, joint, together
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.lake.road import NotHere, Road
from trendlake.pipelines.results.computation import Outcomes, answers_here, stage_together
from trendlake.pipelines.results.ledger import notes, read_ledger
from trendlake.pipelines.results.member_reuse import NONE, Settled, settled_members
from trendlake.pipelines.results.missing_rows import missing_checks, refuse_missing
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.reference_tables import reference_tables
from trendlake.pipelines.results.reuse import changed, reopened, reuse_check
from trendlake.pipelines.results.source_events import SourceEvents
from trendlake.pipelines.results.staging import stage_answers, stage_nothing
from trendlake.pipelines.results.union_events import UnionEvents
from trendlake.pipelines.runs.consistency import least_watermark
from trendlake.pipelines.runs.record import Attempt, recorded_together
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.order import id_order

Rows: TypeAlias = pa.Table | dict[str, pa.Table]
"""Events in this process: of several tables by name."""


@dataclass(frozen=True)
class _Task:
    """A run, of the windows and members that are to be computed; the record of its check_source; what is recorded of
    it; and what is staged as it is published."""

    run: Run
    checked: Record
    attempt: Attempt
    settled: Settled = NONE

    @property
    def sources(self) -> Versions:
        return (self.checked.basis or self.run.basis()).read

    @property
    def rows(self) -> int:
        return self.checked.rows_out or 0

    @property
    def source(self) -> tuple[object, ...]:
        """Runs that differ in it do not read the same events; those of several tables read each its own union."""
        alone = self.run.name if self.run.sources.united else None
        return self.run.sources.fingerprint, self.sources, self.run.profile.limits.shard_rows, alone


def compute(run: Run) -> Record:
    """Reads the pinned version, stages the results, records where.

    Raises StepOrderError (check_source has not been done for this state of things), ShardTooLargeError.
    """
    (attempt,) = compute_together([run])
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def compute_together(runs: Sequence[Run]) -> list[Attempt]:
    """As `compute` of runs of one source; an error of one stops no other. Raises whatever ends Spark."""
    lake = runs[0].lake
    with recorded_together(lake, [run.record("compute") for run in runs]) as attempts:
        tasks = [task for run, attempt in zip(runs, attempts, strict=True) if (task := _task(run, attempt)) is not None]
        by_source: dict[tuple[object, ...], dict[int, _Task]] = {}
        for number, task in enumerate(tasks):
            by_source.setdefault(task.source, {})[number] = task
        for mine in by_source.values():
            members = [Member(number, task.run.plan, task.run.windows) for number, task in mine.items()]
            for group in together(members):
                _stage({member.number: mine[member.number] for member in group}, group)
    return attempts


def _task(run: Run, attempt: Attempt) -> _Task | None:
    """The work to compute. None if there is none, which is staged at once, or if the run has an error."""
    with attempt.going_on() as record:
        checked = run.need("check_source")
        record.source_version, record.sources = checked.source_version, checked.sources
        task = _Task(run, checked, attempt)
        run, settled = _changed(run, task.sources, record)
        record.basis = run.basis(task.sources)
        record.rows_in = task.rows
        lookups = missing_checks(run, checked, task.sources)
        record.checks = [*record.checks, *lookups]
        refuse_missing(run, lookups)
        if run.windows and task.rows and not settled.all_of(run):
            return _Task(settled.others(run), checked, attempt, settled)
        staged = stage_nothing(run, task.sources)
        record.staged_version, record.rows_out = settled.beside(run, staged)
    return None


def _stage(tasks: Mapping[int, _Task], members: Sequence[Member]) -> None:
    """Of runs that read the same events: what is staged goes to their records."""
    (first, *_) = tasks.values()
    try:
        outcomes, road = _read_and_stage(tasks, members)
    except Exception as error:  # of all of them, as the source could not be read
        if first.run.lake.ended:
            raise
        outcomes, road = dict.fromkeys(tasks, error), None
    for number, staged in outcomes.items():
        attempt = tasks[number].attempt
        if road is not None:
            attempt.record.took(road)
        if isinstance(staged, Exception):
            attempt.error = staged
            continue
        with attempt.going_on() as record:
            whole = tasks[number].settled.beside(tasks[number].run, staged)
            record.staged_version, record.rows_out = whole


def _read_and_stage(tasks: Mapping[int, _Task], members: Sequence[Member]) -> tuple[Outcomes, Road]:
    """As `stage_together`: of few events in this process, else of the files, where the workers can read them alone."""
    runs = {number: task.run for number, task in tasks.items()}
    (first, *_) = tasks.values()
    reading = joint(channels_of(members))
    events: SourceEvents | UnionEvents
    if first.run.sources.united:
        events = UnionEvents.of(first.run, first.checked, reading)
    else:
        events = SourceEvents.of([(task.run, task.checked) for task in tasks.values()], reading)
    rows = _rows(tasks.values(), events.span)
    reference = reference_tables(list(runs.values()), first.sources)
    time = reached(first.run, first.sources)

    def on_spark() -> Outcomes:
        files = events.files()
        if files is not None:
            try:
                return stage_together(runs, files, rows, first.sources, time, reference)
            except OtherwiseWrittenError:
                pass
        return stage_together(runs, events.frame(), rows, first.sources, time, reference)

    table, road = first.run.roads.take("compute", lambda: _events_here(events, rows), lambda: None)
    if table is None:
        return on_spark(), road
    for task in tasks.values():
        if (check := id_order(task.run.plan, table, task.run.windows, reference)) is not None:
            task.attempt.record.checks = [*task.attempt.record.checks, check]
    return stage_answers(runs, answers_here(runs, table, time, reference), first.sources), road


def _events_here(events: SourceEvents | UnionEvents, rows: int) -> Rows | NotHere | None:
    """The `events`, if they are few, on this machine's disk, and to be staged there: to start a job and its workers
    takes longer than to compute them here."""
    most, name = events.run.roads.computed_here
    if rows > most:
        return NotHere(f"{rows:,} events, more than {most:,} (`limits.{name}`)")
    if events.run.lake.on_disk(events.run.warehouse.root) is None:
        return NotHere("a warehouse elsewhere")
    return events.here(most)


def _rows(tasks: Iterable[_Task], span: tuple[int, int]) -> int:
    """The good rows in the time range that is read, at most."""
    by_span = {task.run.span: task.rows for task in tasks}
    return by_span.get(span, sum(by_span.values()))


def _changed(run: Run, sources: Versions, record: Record) -> tuple[Run, Settled]:
    """The run of those windows that the published results do not hold already, by another form of the pattern, or with
    those before that its events may change; and the members of a family that they hold already in these windows."""
    path = run.warehouse.results(run.name)
    if not exists(run.lake, path):
        return run, NONE
    if run.reopens and run.windows:
        windows = reopened(run, read_ledger(run.lake, run.name, run.plan, run.sources.name), sources)
        record.windows = len(windows)
        return run.narrowed(windows), NONE
    commits = recent_commits(run.lake, path)
    forms = {note.plan_hash for commit in commits if (note := Note.of_commit(commit.note)) is not None}
    if forms <= {run.plan.hash}:
        return run, NONE  # there was no other form
    ledger = read_ledger(run.lake, run.name, run.plan, run.sources.name)
    stored_notes = notes(run.lake, run.name, commits)
    windows = changed(run, ledger, stored_notes, sources)
    check = reuse_check(run, windows)
    if check is not None:
        record.checks, record.windows = [check], len(windows)
        run = run.narrowed(windows)
    settled = settled_members(run, ledger, stored_notes, sources, commits[0].version)
    if (members := settled.check(run)) is not None:
        record.checks = [*record.checks, members]
    return run, settled


def reached(run: Run, sources: Versions) -> int | None:
    """How far time has come in these versions, for a plan that waits for it."""
    if not run.plan.waits or not run.windows:
        return None
    return least_watermark(run, sources, run.span)
