"""`trendlake run`: all steps of a pattern, or of several in one Spark session; `trendlake ls`: what selectors mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.next_run import Choice, NextRuns, document_of
from trendlake.jobs.airflow.notify import notify_of_results
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.json_output import of_any_error, of_record
from trendlake.jobs.terminal.lines import is_silent, print_error, say
from trendlake.jobs.terminal.times import manual_run_id, micros_of
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.workspace import Interval, Place
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.batches import batch_of
from trendlake.pipelines.project.selection import GLOB, Patterns

if TYPE_CHECKING:
    from trendlake.pipelines.lake.road import On
    from trendlake.pipelines.steps.batch import Member

WIDTH = 24
"""Characters of a pattern's name in a line about one of several."""


def run_patterns(
    place: Place, words: Sequence[str], batch: str | None, interval: Interval | None, run_id: str | None, on: On | None
) -> Iterator[dict[str, Any] | Verdict]:
    """Runs one pattern, named as such, and raises its error; or all that `words` and `batch` select. Yields a document
    for each."""
    if batch is None and len(words) == 1 and not selects(words[0]):
        yield run_one(place, words[0], interval, run_id, on)
        return
    yield from run_several(place, words, batch, interval, run_id, on)


def list_patterns(words: Sequence[str], profile: str | None, folder: Path | None) -> dict[str, Any]:
    """Prints the patterns that `words` select (default: all), in the order in which a run takes them."""
    from trendlake.jobs.terminal.printing import console
    from trendlake.jobs.terminal.rows import Rows

    place = workspace.find_place(folder, profile)
    patterns = Patterns(place.project, place.profile.batches)
    names = patterns.select(words or ["*"], lambda: last_states(place))
    rows = [_about(patterns, name) for name in names]
    texts = [[" ".join(value) if isinstance(value, tuple) else value or "" for value in row.values()] for row in rows]
    console.print(Rows.of_a_list(("pattern", "kind", "source", "schedule", "batch", "tags", "owner"), texts))
    return {"patterns": rows, "orphans": []}


def last_states(place: Place) -> Mapping[str, str]:
    """How the last run of each pattern ended: `succeeded` or `failed`."""
    from trendlake.pipelines.lake import limits
    from trendlake.pipelines.runs.record import newest_records

    states: dict[str, str] = {}
    with workspace.session(place, "trendlake ls") as lake:
        for record in newest_records(lake, None, limits.RECORDS) or ():
            states.setdefault(record["pattern"], record["status"])
    return states


def selects(word: str) -> bool:
    """Whether a word may mean several patterns."""
    return ":" in word or bool(GLOB & set(word))


def _check_interval(since: str, until: str) -> tuple[int, int]:
    from trendlake.pipelines.runs.intervals import refuse_empty

    start, end = micros_of(since, "--from"), micros_of(until, "--to")
    refuse_empty(start, end)
    return start, end


def run_one(place: Place, pattern: str, interval: Interval | None, run_id: str | None, on: On | None) -> dict[str, Any]:
    """Runs a pattern. Without an `interval` it is the next one (`next_run.NextRuns`). `on`: where all steps are to be
    done. Raises the error of a step."""
    name = workspace.check_early(place, pattern, interval)
    run_id = run_id or manual_run_id("manual")
    with workspace.session(place, f"trendlake run {name}", judges=True, writes=True) as lake:
        from trendlake.pipelines.steps.sequence import STEPS  # imported while Java started

        next_runs = None if interval is not None else NextRuns.of(place, lake, [name])
        asked = workspace.prepared(place, lake, pattern, interval, run_id, on)
        prepared = asked if next_runs is None else next_runs.choose(asked)
        chosen = document_of(Choice(prepared) if next_runs is None else next_runs.choices[name])
        about: dict[str, Any] = {"pattern": name, "run_id": run_id, **chosen}
        if prepared is None:
            return about | {"stages": [], "report": None, "picture": None, "site": None}
        say(f"run {run_id} of {name}")
        records = [workspace.run_step(step, prepared) for step in STEPS]
        pages = workspace.report_if_possible(place, lake, pattern, run_id)
        done = about | {"stages": [*map(of_record, records)]} | pages
    if workspace.changed(records[-1]):
        notify_of_results(place.project, name)
    return done


def run_several(
    place: Place, words: Sequence[str], batch: str | None, interval: Interval | None, run_id: str | None, on: On | None
) -> Iterator[dict[str, Any] | Verdict]:
    """As `run_one`, of all patterns that `words` and `batch` select: each fails by itself."""
    from trendlake.pipelines.steps.batch import run_batch

    if interval is not None:
        _check_interval(*interval)
    patterns = Patterns(place.project, place.profile.batches)
    names = patterns.select([*words, *(patterns.batch(batch) if batch else ())], lambda: last_states(place))
    run_id = run_id or manual_run_id("manual")
    say(f"run {run_id} of {len(names)} patterns")
    members = [_checked(place, name) for name in names]
    files = {member.name: name for member, name in zip(members, names, strict=True)}
    if len(files) < len(names):
        raise ProjectError("two files of the run are patterns of one name", hint="run them one after the other")
    pages: dict[str, dict[str, Path]] = {}
    next_runs: NextRuns | None = None
    if any(member.error is None for member in members):
        with workspace.session(place, f"trendlake run of {len(names)} patterns", judges=True, writes=True) as lake:
            for member in members:
                if member.error is None:
                    member.run = workspace.prepared(place, lake, files[member.name], interval, run_id, on)
            next_runs = None if interval is not None else NextRuns.of(place, lake, list(files))
            for step, member in run_batch(lake, members, choose=None if next_runs is None else next_runs.choose):
                _print_step(step, member)
            begun = [files[member.name] for member in members if member.records]
            pages = workspace.reports(place, lake, begun, run_id)
    choices = {} if next_runs is None else next_runs.choices
    _print_outcome(members)
    for member in members:
        choice = choices.get(member.name, None if next_runs is None else Choice(None))
        yield _document(member, run_id, pages.get(member.name, {}), choice)
    for member in members:
        if member.error is None and member.records and workspace.changed(member.records[-1]):
            notify_of_results(place.project, member.name)


def _checked(place: Place, name: str) -> Member:
    """A member whose pattern's file has been checked before Spark starts."""
    from trendlake.pipelines.authoring.validate import check_pattern
    from trendlake.pipelines.steps.batch import Member

    try:
        return Member(check_pattern(place.project, place.project.pattern_path(name)).name, None)
    except TrendlakeError as error:
        return Member(name, None, error)


def _print_step(step: str, member: Member) -> None:
    line = workspace.summary(member.records[-1]) if member.error is None else f"failed: {_reason(member.error)}"
    say(f"{step.replace('_', '-'):<14} {member.name:<{WIDTH}} {line:<56} {member.seconds[-1]:6.1f} s")


def _print_outcome(members: Sequence[Member]) -> None:
    """The table of a run of several, then each error in full."""
    if is_silent():
        return
    from trendlake.jobs.terminal.printing import console
    from trendlake.jobs.terminal.rows import Rows
    from trendlake.pipelines.redaction import redacted

    texts = []
    for member in members:
        done = member.error is None and bool(member.records)
        rows = f"{member.records[-1].rows_out or 0:,}" if done else ""
        reason = "" if done else "nothing to run" if member.error is None else _reason(member.error)
        texts.append((member.name, member.state, rows, f"{sum(member.seconds):.1f}", reason))
    columns = ("pattern", "state", "rows", "seconds", "reason")
    console.print(Rows.of_a_list(columns, texts, right=("rows", "seconds")))
    for member in members:
        if member.error is not None:
            print_error(f"{member.name}: {redacted(str(member.error))}")


def _reason(error: Exception) -> str:
    """One line, with the code of the error."""
    from trendlake.pipelines.error_text import in_words
    from trendlake.pipelines.redaction import redacted

    return redacted(in_words(error).splitlines()[0])


def _document(
    member: Member, run_id: str, pages: Mapping[str, Path], choice: Choice | None
) -> dict[str, Any] | Verdict:
    about: dict[str, Any] = {"pattern": member.name, "run_id": run_id, "state": member.state}
    about |= document_of(choice or Choice(member.run))
    about["stages"] = [of_record(record) for record in member.records]
    about |= {"report": None, "picture": None, "site": None, **pages}
    if member.error is None:
        return about
    fault = not isinstance(member.error, TrendlakeError)
    return Verdict(about | {"error": of_any_error(member.error)}, good=False, fault=fault)


def _about(patterns: Patterns, name: str) -> dict[str, Any]:
    """The row of `trendlake ls` for a pattern."""
    if name not in patterns.files:
        return {
            "pattern": name,
            "kind": None,
            "source": None,
            "schedule": None,
            "batch": None,
            "tags": (),
            "owner": None,
        }
    pattern = patterns.read[name]
    return {
        "pattern": name,
        "kind": pattern.kind,
        "source": pattern.source,
        **({} if pattern.sources is None else {"sources": pattern.tables}),
        "schedule": pattern.schedule,
        "batch": batch_of(pattern, patterns.rule),
        "tags": pattern.tags,
        "owner": pattern.owner,
    }
