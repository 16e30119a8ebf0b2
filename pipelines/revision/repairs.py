"""The faults of the published results of a pattern, each with the command that repairs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.lake.versions import TableVersion
from trendlake.pipelines.results.coverage import Segment
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.results.next_windows import last_published
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.scope import backfills, gaps_of, older_versions, other_forms, task_of
from trendlake.pipelines.runs.consistency import last_complete, least_watermark_here
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions

State = Literal[
    "nothing_published",
    "earlier_form",
    "wrong_version",
    "gap",
    "behind_source",
    "windows_due",
    "source_unreadable",
    "no_file",
    "not_known",
]


@dataclass(frozen=True)
class Repair:
    """A `state` in words (`text`), how many windows it is about (None: not counted), and the `command`, without
    `trendlake`, that repairs it; None where no command does."""

    state: State
    windows: int | None
    text: str
    command: str | None


def repairs(run: Run, ledger: Ledger, newest: Mapping[str, TableVersion | None]) -> list[Repair]:
    """The states of the results of the run's pattern that are to be repaired, in the order in which to do it. `newest`:
    the newest version of each of its tables by its key, None where there is no table."""
    states = [*_other_forms(run, ledger.segments), *_wrong(run, ledger), *_gaps(run, ledger.segments)]
    if not ledger.segments:
        states.append(Repair("nothing_published", None, "nothing is published", f"run {run.typed}"))
    if all(table is not None for table in newest.values()):
        states += [*_behind(run, ledger, newest), *_due(run, ledger, run.known(newest))]
    return states


def _other_forms(run: Run, segments: Sequence[Segment]) -> Iterator[Repair]:
    for stretch, command in backfills(run.plan.windows, run.typed, other_forms(run.plan, segments), run.times):
        yield _of_windows("earlier_form", stretch, "shows an earlier form", "show an earlier form", command)


def _gaps(run: Run, segments: Sequence[Segment]) -> Iterator[Repair]:
    for stretch, command in backfills(run.plan.windows, run.typed, gaps_of(segments), run.times):
        text = "before the last published one is not published", "before the last published one are not published"
        yield _of_windows("gap", stretch, *text, command)


def _of_windows(state: State, stretch: Stretch, one: str, several: str, command: str) -> Repair:
    count = stretch[1] - stretch[0] + 1
    return Repair(state, count, f"{plural(count, 'window')} {one if count == 1 else several}", command)


def _wrong(run: Run, ledger: Ledger) -> Iterator[Repair]:
    stale = older_versions(run, ledger)
    if stale is not None:
        text = f"{plural(stale.count, 'window')} {stale.reason}"
        yield Repair("wrong_version", stale.count, text, f"backfill {run.typed} --stale")


def _behind(run: Run, ledger: Ledger, newest: Mapping[str, TableVersion | None]) -> Iterator[Repair]:
    """A `weak` pattern is not revised: its results show the version of the source that was the newest then."""
    if run.pattern.consistency == "weak" or all(item.plan_hash != run.plan.hash for item in ledger.segments):
        return
    try:
        task = task_of(run, ledger, newest)
    except TrendlakeError as error:
        yield Repair("source_unreadable", None, error.message, None)
        return
    there = (
        f"'{run.sources.name}' is at {task.sources.words}" if not task.sources.named else f"newest is {task.sources}"
    )
    if task.reason is not None:
        yield Repair("behind_source", None, task.reason, f"revise {run.typed}")
    elif task.earlier:
        yield Repair("behind_source", None, f"rules of {run.sources.name} have changed", f"revise {run.typed}")
    elif task.published and task.after != task.sources:
        yield Repair("behind_source", None, f"{there}, results show {task.after.words}", f"revise {run.typed}")
    elif task.due:
        count = sum(last - first + 1 for first, last in task.due)
        text = f"{plural(count, 'window')} held back for late events can be published"
        yield Repair("behind_source", count, text, f"revise {run.typed}")


def _due(run: Run, ledger: Ledger, sources: Versions) -> Iterator[Repair]:
    """Where this process can read the newest events: for a note, no job of Spark is started."""
    published = last_published(ledger)
    if published is None:
        return
    with suppress(TrendlakeError):
        reached = either(lambda: least_watermark_here(run, sources), lambda: None)
        count = 0 if reached is None else last_complete(run, reached) - published
        if count > 0:
            text = "after the last published one is complete", "after the last published one are complete"
            yield _of_windows("windows_due", (1, count), *text, f"run {run.typed}")
