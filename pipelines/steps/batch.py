"""A batch: runs of several patterns for one interval, in one Spark session.

The members of one source read the same version of it, and each time range of the source is judged once. Each keeps its
own staged rows, commit, note and run records, which are those of a run alone. A member that fails stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from trendlake.pipelines.errors import UpstreamFailedError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.paths import upstream
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.sequence import STEPS, TOGETHER

State = Literal["succeeded", "failed", "skipped"]
T = TypeVar("T")
AT_ONCE = {"check_results": 32, "publish": 32}
"""Members whose records are written together; the others' are written when a step of all is done. Until then a batch
that is killed does them again."""


@dataclass
class Member:
    """A pattern of a batch. `run`: None where the pattern's file is wrong, which is then the `error`, and where nothing
    is to be run; `records`: of the steps that have been done."""

    name: str
    run: Run | None
    error: Exception | None = None
    records: list[Record] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Of each step that it has begun: its own time, and its share of what was done for all."""

    @property
    def state(self) -> State:
        if self.error is None:
            return "succeeded"
        return "skipped" if isinstance(self.error, UpstreamFailedError) else "failed"


def run_batch(
    lake: Lake,
    members: Sequence[Member],
    steps: Sequence[str] = tuple(STEPS),
    choose: Callable[[Run], Run | None] | None = None,
) -> Iterator[tuple[str, Member]]:
    """Runs `steps` of all members; after each step of a member, also one that failed, yields the step and the member.

    `members`: a pattern comes after those whose results it reads, and is skipped if one of these fails. Each step is
    done of all members of a source before the next step. An error is kept in its member; it is raised only if Spark has
    ended, after which no member can go on. `choose` gives a run its interval, when the results that it reads are
    published; None where there is nothing to run.
    """
    by_source: dict[str, list[Member]] = {}
    for member in members:
        if member.run is not None:
            by_source.setdefault(member.run.sources.name, []).append(member)
    by_name = {member.name: member for member in members}
    for name, group in by_source.items():
        over = [by_name.get(upstream(table) or "") for table in name.split(",")]
        above = next((member for member in over if member is not None and member.error is not None), None)
        if above is not None:
            for member in group:
                member.error = UpstreamFailedError(f"its source is the results of '{above.name}', whose run failed")
            continue
        if choose is not None:
            for member in group:
                _choose(lake, member, choose)
        yield from _run_group(lake, [member for member in group if member.run is not None], steps)


def _choose(lake: Lake, member: Member, choose: Callable[[Run], Run | None]) -> None:
    try:
        member.run = None if member.run is None else choose(member.run)
    except Exception as error:
        if lake.ended:
            raise
        member.run, member.error = None, error


def _run_group(lake: Lake, members: Sequence[Member], steps: Sequence[str]) -> Iterator[tuple[str, Member]]:
    """The members of one source; ends early where none is left that has not failed."""
    for step in steps:
        ready = [(member, member.run) for member in members if member.run is not None and member.error is None]
        if not ready:
            return
        for part in _parts(ready, AT_ONCE.get(step, len(ready))):
            attempts = TOGETHER[step]([run for _, run in part])
            for (member, _), attempt in zip(part, attempts, strict=True):
                member.error = attempt.error
                member.seconds.append(attempt.record.seconds or 0.0)
                if attempt.error is None:
                    member.records.append(attempt.record)
                yield step, member


def _parts(ready: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(ready), size):
        yield ready[start : start + size]
