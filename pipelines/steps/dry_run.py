"""The work of a revision, by the code of the revision itself: nothing is written, and no run is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.lake.road import Road
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.revision import Revision, refuse_too_much
from trendlake.pipelines.runs.record import pattern_records
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import Shared, Work, work_of

STEPS_OF_A_RUN = ("check_source", "compute", "check_results", "publish")


@dataclass(frozen=True)
class TableChange:
    """A table: the `shown` version in results (the oldest, where windows show several), and the newest. How many `rows`
    came or went, of a reference table with how many `keys`, and how many break the contract since; None where the
    change feed is not followed."""

    name: str
    reference: bool
    shown: int
    newest: int
    another: bool
    """Whether `newest` is of another Delta table."""
    rows: int | None = None
    keys: int | None = None
    broken: int | None = None


@dataclass(frozen=True)
class LastWork:
    """The newest work of the pattern in its present form: a revision that computed windows, or a run."""

    run_id: str
    windows: int
    seconds: float
    finished_at: int
    """Microseconds since the epoch."""


@dataclass(frozen=True)
class DryRun:
    """The work of a revision of a pattern.

    `record`: as a revision would fill it in up to there; it is not stored. `windows`: the stretches that it would
    compute, `published`: how many results show, and of these `due` were held back. `reason`: why all are computed,
    where the change feed cannot tell. `looked_up`: the events that get other columns by reference tables, in
    `by_lookups` windows. `counts`: of rows that would be inserted, updated and retracted, known where this process
    computes them. `refused`: the error that the revision would end with.
    """

    run: Run
    record: Record
    tables: tuple[TableChange, ...]
    settled: bool = True
    """Whether all windows show the same versions."""
    windows: tuple[Stretch, ...] = ()
    published: int = 0
    due: int = 0
    reason: str | None = None
    looked_up: int = 0
    by_lookups: int = 0
    counts: Mapping[str, int] | None = None
    refused: TrendlakeError | None = None
    last: LastWork | None = None

    @property
    def count(self) -> int:
        """Of the windows."""
        return _count(self.windows)

    @property
    def interval(self) -> tuple[int | None, int] | None:
        """The start of the first window and the end of the last one, microseconds; no start where windows hold all
        history."""
        if not self.windows:
            return None
        windows = self.run.plan.windows
        start = None if windows.endless else windows.start(self.windows[0][0])
        return start, windows.end(self.windows[-1][1])


def dry_run(run: Run, shared: Shared) -> DryRun:
    """`shared`: as of `revise_together`. Raises as `work_of`."""
    record = run.record("revise")
    record.interval_from = record.interval_to = record.windows = None
    work = work_of(replace(run, unlimited=True), record, shared)
    task = work.task
    reason = next((check.data.get("reason") for check in record.checks if check.name == "revision"), None)
    tables = _tables(run, work, followed=reason is None)
    base = DryRun(run, record, tables, task.settled, published=_count(task.published), due=_count(task.due))
    if work.revision is None:
        return base
    with closing(work.revision) as revision:
        refused = _refusal(run, revision)
        return replace(
            base,
            windows=revision.affected.stretches,
            reason=reason,
            looked_up=revision.lookups.events,
            by_lookups=revision.lookups.windows,
            counts=_counts(work, revision) if refused is None else None,
            refused=refused,
            last=_last_work(run),
        )


def _refusal(run: Run, revision: Revision) -> TrendlakeError | None:
    try:
        refuse_too_much(run, revision.lookups.windows)
        if revision.affected.stretches:
            revision.refuse()
    except TrendlakeError as error:
        return error
    return None


def _counts(work: Work, revision: Revision) -> dict[str, int] | None:
    """Of rows that differ, where they are computed already."""
    if not revision.local or not revision.affected.stretches:
        return None
    difference = revision.difference(int(work.ledger.version or 0))
    if difference is None:
        return None
    with closing(difference):
        return dict(difference.counts)


def _tables(run: Run, work: Work, *, followed: bool) -> tuple[TableChange, ...]:
    revision, events = work.revision, {part.key for part in run.parts}
    looked_up = {part.key for part in run.references}
    changes = []
    for part in run.every_part:
        shown, newest = work.task.after.at(part.key), work.task.sources.at(part.key)
        another = shown.table_id != newest.table_id
        change = TableChange(part.contract.name, part.key not in events, shown.version, newest.version, another)
        if revision is not None and followed and shown != newest:
            rows = revision.rows.get(part.key, 0) if part.key in events else revision.lookups.rows.get(part.key, 0)
            keys = revision.lookups.keys.get(part.key, 0) if part.key in looked_up else None
            broken = revision.broken.get(part.key)
            change = replace(change, rows=rows, keys=keys, broken=0 if broken is None else broken.rows)
        changes.append(change)
    return tuple(changes)


def _last_work(run: Run) -> LastWork | None:
    names = ("run_id", "stage", "status", "plan_hash", "windows", "seconds", "finished_at")
    steps: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in pattern_records(run.lake, [run.name], names):
        if row["status"] == "succeeded" and row["plan_hash"] == run.plan.hash and row["seconds"] is not None:
            kind = "revise" if row["stage"] == "revise" else "run"
            steps.setdefault((row["run_id"], kind), {})[row["stage"]] = row
    done = [work for (run_id, _), rows in steps.items() if (work := _work(run_id, rows)) is not None]
    return max(done, key=lambda work: work.finished_at, default=None)


def _work(run_id: str, rows: Mapping[str, Mapping[str, Any]]) -> LastWork | None:
    """Of the records of a run by stage; None where it has computed no window, or is not done."""
    last = rows.get("revise") or rows.get("publish")
    windows = (rows.get("revise") or rows.get("compute") or {}).get("windows")
    if last is None or not windows:
        return None
    return LastWork(run_id, windows, sum(row["seconds"] for row in rows.values()), last["finished_at"] or 0)


def _count(stretches: Iterable[Stretch]) -> int:
    return sum(last - first + 1 for first, last in stretches)


def road_of(dry: DryRun) -> str:
    """Where the revision would be computed, in words; empty where nothing is."""
    return "" if dry.record.road is None else str(Road(dry.record.road, dry.record.road_reason or ""))
