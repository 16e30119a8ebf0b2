"""The interface of a revision for the step `revise`, wherever it is computed."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ToleranceError, TooMuchError
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.revision.affected import Affected
from trendlake.pipelines.revision.changed_lookups import LookupCounts
from trendlake.pipelines.revision.difference import Difference
from trendlake.pipelines.revision.rewrite import Rewrite
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record


class Revision(Protocol):
    """Brings the windows of a `Task` to its version. `local.RevisionHere` computes them in this process,
    `spark.SparkRevision` on Spark. Called in this order: `find_affected`, which writes nothing, `quarantine`, `refuse`,
    `compute`, `difference`, `close`."""

    @property
    def local(self) -> bool:
        """Whether it is computed in this process."""

    @property
    def affected(self) -> Affected:
        """The windows and groups to compute; none if no result depends on what changed."""

    @property
    def rows(self) -> Mapping[str, int]:
        """By its key of each table of events that has changed: how many of its rows came or went, where the change feed
        is followed."""

    @property
    def lookups(self) -> LookupCounts:
        """As `rows`, of reference tables."""

    @property
    def broken(self) -> Mapping[str, Broken]:
        """By its key of each table: the rows that break its contract since, as far as they are known."""

    @property
    def unique(self) -> bool:
        """Whether no row of the published windows repeats a key of the table."""

    def find_affected(self, record: Record) -> None:
        """Finds `affected`; adds counts and checks to `record`."""

    def quarantine(self) -> None:
        """Quarantines the rows that are `broken`."""

    def refuse(self) -> None:
        """Raises ToleranceError where contracts do not tolerate so many rows that are `broken`."""

    def compute(self, record: Record) -> None:
        """Computes and checks the rows of `affected`; adds counts and checks to `record`. Raises ToleranceError,
        ChecksFailedError, ShardTooLargeError."""

    def difference(self, results_version: int) -> Difference | Rewrite | None:
        """The rows that differ from a version of the results. None if another attempt has to take it, because the
        published rows have become too many for this one."""

    def close(self) -> None:
        """Frees what is held in memory."""


def quarantine_key(run: Run, task: Task) -> str:
    """The facts, in addition to the run and its version, that decide which rows of its one table a revision
    quarantines."""
    table, after = task.sources.at(run.key), task.after.at(run.key)
    judged = f" {task.published}" if run.key in task.earlier else ""
    return f"revise {after.version} {run.contract.fingerprint} {table.table_id}{judged}"


def refuse_lost(run: Run, broken: Broken, rows: int, where: str) -> None:
    """Raises ToleranceError if the contract does not tolerate so many bad rows among `rows`."""
    if broken.lost > run.contract.tolerance * rows:
        raise ToleranceError(
            f"{broken.lost} of {rows} rows of '{run.contract.name}' break its contract {where}; "
            f"it tolerates {run.contract.tolerance:.2%}: {broken}",
            hint=f"see them with `trendlake quarantine show {run.contract.name}`",
        )


def refuse_too_much(run: Run, by_lookups: int) -> None:
    """Raises TooMuchError where changes of reference tables touch more windows than the pattern allows."""
    limits = [one.most_windows for one in run.pattern.lookup.values() if one.most_windows is not None]
    if limits and by_lookups > min(limits) and not run.unlimited:
        raise TooMuchError(
            f"changed rows of reference tables touch {plural(by_lookups, 'window')} of {run.name}, more than the "
            f"{min(limits):,} of `most_windows`",
            hint=f"`trendlake revise {run.typed} --all` computes them; nothing was published",
        )


@dataclass
class Refused:
    """The tables that lost more rows than their contracts tolerate: all are asked before one is an error. `earlier`:
    the tables whose rows in all published windows were judged again."""

    earlier: Container[str] = ()
    errors: list[ToleranceError] = field(default_factory=list)

    def ask(self, part: Run, broken: Broken, rows: Callable[[], int]) -> None:
        """As `refuse_lost` of one table; its `rows` are counted where some are lost."""
        if broken.lost:
            where = "in the published windows" if part.key in self.earlier else "since the last revision"
            try:
                refuse_lost(part, broken, rows(), where)
            except ToleranceError as error:
                self.errors.append(error)

    def raise_all(self) -> None:
        """Raises ToleranceError that names each of them."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            hints = " and ".join(str(error.hint) for error in self.errors)
            raise ToleranceError("; ".join(error.message for error in self.errors), hint=hints)


def changes_check(task: Task, rows: int, affected: Affected) -> Check:
    """The check of a revision that follows the change feed. `rows`: of the source that came or went."""
    if task.earlier:
        return _judged_check(task, rows, affected)
    touched = f"{plural(affected.count, 'window')} touched"
    observed = f"{plural(rows, 'row')} changed from {task.after.words} to {task.sources}: {touched}"
    upto = {"from_version": task.after.version, "to_version": task.sources.version}
    data = {"rows": rows, "windows": affected.count, **upto}
    return Check("revision", True, observed, "change feed", data=data)


def _judged_check(task: Task, rows: int, affected: Affected) -> Check:
    """As `changes_check`, where rows are judged by two contracts. `rows`: that are good by one of them alone."""
    judged = sum(last - first + 1 for first, last in task.published)
    observed = (
        f"{plural(judged, 'window')} judged again by the changed contract: {plural(rows, 'row')} with another verdict, "
        f"{plural(affected.count, 'window')} touched"
    )
    data = {"rows": rows, "windows": affected.count, "judged_again": judged, "to_version": task.sources.version}
    return Check("revision", True, observed, "rows judged by both contracts", data=data)
