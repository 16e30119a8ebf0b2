"""`trendlake run-steps` of a batch: some steps of all its patterns in one Spark application, for an Airflow task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.steps import STEPS, in_order
from trendlake.jobs.airflow.progress import Failure, end_with_task, write_members, write_step
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.error_text import in_words, plural
from trendlake.pipelines.errors import PASSING
from trendlake.pipelines.redaction import redacted

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.steps.batch import Member

Note = Callable[[str, str], None]
"""Says that a step is done, with the line about it."""


def run_batch_steps(
    batch: str,
    patterns: Sequence[str],
    since: str,
    until: str,
    run_id: str,
    steps: str,
    progress: Path | None,
    profile: str | None,
    folder: Path | None,
) -> Verdict:
    """Runs `steps` of all `patterns` (names or files) of a batch, and notes in `progress` each step, which patterns
    failed, and which have new results.

    A file that does not compile is left out, because Airflow shows its error as that file's own. A pattern whose
    interval another DAG has published by schedule is skipped. The verdict is not good if a pattern failed. Raises the
    first error if all failed.
    """
    names = in_order(steps)
    if progress is not None:
        end_with_task(progress)

    def note(step: str, line: str) -> None:
        say(f"{step.replace('_', '-'):<14} {line}")
        if progress is not None:
            write_step(progress, step, line)

    place = workspace.find_place(folder, profile, writes=True)
    members, files = _compiling(place, patterns)
    with workspace.session(place, f"trendlake batch {batch}", judges=True, writes=True) as lake:
        for member in members:
            member.run = workspace.prepared(place, lake, files[member.name], (since, until), run_id)
        due = [member for member in members if names[0] != STEPS[0] or _is_due(member)]
        _run_steps(lake, due, [name for name in names if name != STEPS[-1]], note)
        failures = [_failure(member, files[member.name], names) for member in due if member.error is not None]
        changed = [member.name for member in due if _has_new_results(member)]
        if progress is not None:
            write_members(progress, failures, changed)
        if due and len(failures) == len(due):
            raise next(member.error for member in due if member.error is not None)
        if names[-1] == STEPS[-1]:
            written = workspace.reports(place, lake, [files[m.name] for m in due if m.error is None], run_id)
            note(STEPS[-1], plural(len(written), "page"))
    about: dict[str, Any] = {"batch": batch, "run_id": run_id, "changed": changed}
    about["patterns"] = [
        {"pattern": member.name, "state": member.state, "stages": [of_record(record) for record in member.records]}
        for member in due
    ]
    return Verdict(about, good=not failures)


def _compiling(place: Place, patterns: Sequence[str]) -> tuple[list[Member], dict[str, str]]:
    """A member for each file that compiles, and the files by the names of their patterns. Raises the first error if
    none does."""
    from trendlake.pipelines.authoring.validate import check_pattern
    from trendlake.pipelines.steps.batch import Member

    files: dict[str, str] = {}
    errors: list[TrendlakeError] = []
    for path in patterns:
        try:
            files[check_pattern(place.project, place.project.pattern_path(path)).name] = path
        except TrendlakeError as error:
            errors.append(error)
            print_error(f"left out: {redacted(str(error))}")
    if not files:
        raise errors[0]
    return [Member(name, None) for name in files], files


def _is_due(member: Member) -> bool:
    """Whether no other DAG has published the interval by schedule. Prints a line if one has, or if the interval before
    is not published."""
    from trendlake.pipelines.runs.scheduled import published_by_schedule

    run = member.run
    assert run is not None
    earlier = published_by_schedule(run)
    if earlier.run_id is not None:
        say(f"{member.name}: skipped: run {earlier.run_id} has published this interval")
        return False
    if earlier.until is not None and earlier.until < run.start_us:
        gap = replace(run, start_us=earlier.until, end_us=run.start_us).options
        say(f"{member.name}: no scheduled run before this one: {command(f'run {run.typed} {gap}')}")
    return True


def _run_steps(lake: Lake, members: Sequence[Member], steps: Sequence[str], note: Note) -> None:
    """A step is done when each member has done it or failed; one that no member could do is not done."""
    from trendlake.pipelines.steps.batch import run_batch

    open_steps = list(steps)
    for step, member in run_batch(lake, members, steps):
        while open_steps and open_steps[0] != step:
            _note_done(open_steps.pop(0), members, note)
        if member.error is not None:
            print_error(f"{member.name}: {redacted(str(member.error))}")
    for step in open_steps:
        _note_done(step, members, note)


def _note_done(step: str, members: Sequence[Member], note: Note) -> None:
    done = [record for member in members for record in member.records if record.stage == step]
    failed = [member.name for member in members if member.error is not None]
    if done or not members:
        line = workspace.summary(done[0]) if len(members) == 1 else f"{len(done)} of {plural(len(members), 'pattern')}"
        note(step, f"{line}; failed: {', '.join(failed)}" if failed else line)


def _has_new_results(member: Member) -> bool:
    record = member.records[-1] if member.records else None
    return (
        member.run is not None
        and record is not None
        and record.stage == "publish"
        and workspace.has_new_results(member.run, record)
    )


def _failure(member: Member, file: str, steps: Sequence[str]) -> Failure:
    error = member.error
    assert error is not None
    mistake = isinstance(error, TrendlakeError) and error.code not in PASSING
    return Failure(member.name, file, steps[len(member.records)], redacted(in_words(error)), mistake)
