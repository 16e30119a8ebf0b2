"""`trendlake apply`: prints the plan, asks, and does what it says: backfills of stale windows, upstream first, then
revisions of what reads their results.

The state of a pattern is compared again when its turn comes: so an apply that was cut short goes on when it is typed
again, and a pattern downstream sees what was published before it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.backfill import computed
from trendlake.jobs.actions.plan import chosen, show_plan
from trendlake.jobs.actions.revise import revise_in_session
from trendlake.jobs.airflow.notify import notify_of_results
from trendlake.jobs.terminal.json_output import of_any_error
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.jobs.terminal.times import manual_run_id
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.waiting import asking
from trendlake.jobs.terminal.workspace import Place, find_place, session
from trendlake.pipelines.error_text import in_words, plural
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.redaction import redacted

if TYPE_CHECKING:
    from trendlake.pipelines.lake.commit import Commit
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.planning.compare import Comparison, Planned
    from trendlake.pipelines.results.windows import Stretch
    from trendlake.pipelines.runs.run import Run

WORK = frozenset({"changes_results", "contract", "code", "behind"})
"""States of patterns that an apply brings up to date."""


def apply(
    words: Sequence[str], since: str | None, profile: str | None, folder: Path | None, *, yes: bool
) -> Iterator[dict[str, Any] | Verdict]:
    """Yields the document of the plan, then those of each pattern that was worked on. `words`: patterns, or one plan
    file; none: all. An error in one pattern stops those that read its results, and no other. Raises ProjectError,
    StalePlanError."""
    from trendlake.pipelines.planning.basis import newer_sources, read_plan, refuse_other_basis
    from trendlake.pipelines.planning.compare import Comparison

    place, file = find_place(folder, profile, writes=True), _plan_file(words)
    bases = {} if file is None else read_plan(file)
    names = chosen(place, words if file is None else list(bases))
    changed: list[str] = []
    with session(place, "trendlake apply", writes=True) as lake:
        comparison = Comparison(lake, place.project, place.profile)
        planned = comparison.of(names, removed=not words)
        of_file = [] if file is None else [(one, file) for one in planned]
        for one, path in of_file:
            refuse_other_basis(one.pattern, bases[one.pattern], one.basis, path, _commits(lake, one))
        yield show_plan(place, planned, frozenset(), "text")
        for one, _ in of_file:
            for line in newer_sources(bases[one.pattern], one.basis):
                say(f"{one.pattern}: {line}; the newest is read")
        todo = _in_order(dict(zip(names, planned, strict=False)), comparison)
        if not todo:
            say("nothing to apply")
            return
        if not yes:
            _ask(len(todo))
        failed: dict[str, None] = {}
        for name, edited in todo.items():
            if name in failed:
                say(f"{name}: left as it is, since a pattern before it has failed")
                continue
            try:
                for document in _applied(place, lake, comparison, name, since if edited else None, edited=edited):
                    changed += [document["pattern"]] if document.get("changed") else []
                    yield document
            except TrendlakeError as error:
                print_error(f"{name}: {redacted(in_words(error))}")
                failed |= dict.fromkeys((name, *comparison.below(name)))
                yield Verdict({"pattern": name, "error": of_any_error(error)}, good=False)
    for name in dict.fromkeys(changed):
        notify_of_results(place.project, name)


def _commits(lake: Lake, one: Planned) -> list[Commit]:
    """The newest of the results; none where there are no results."""
    from trendlake.pipelines.lake.commits import recent_commits

    if one.run is None or one.basis is None or one.basis.results_version is None:
        return []
    return recent_commits(lake, one.run.warehouse.results(one.run.name))


def _plan_file(words: Sequence[str]) -> Path | None:
    """The plan file that is named in place of patterns. Raises ProjectError where it is named with others."""
    files = [word for word in words if word.endswith(".json")]
    if files and len(words) > 1:
        raise ProjectError(f"{files[0]} is a plan, which names its patterns itself", hint="give it alone")
    return Path(files[0]) if files else None


def _in_order(planned: dict[str, Planned], comparison: Comparison) -> dict[str, bool]:
    """The patterns to work on, each after those whose results it reads (which have more patterns below them), and
    whether it is one of those that were named: of others, only a revision is due."""
    work = [name for name, one in planned.items() if one.state in WORK or one.behind]
    below = (name for one in work for name in comparison.below(planned[one].pattern))
    order = sorted(dict.fromkeys((*work, *below)), key=lambda name: -len(comparison.below(Path(name).stem)))
    return {name: name in planned for name in order}


def _ask(count: int) -> None:
    import typer

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("apply asks before it publishes, and this is no terminal: add --yes")
    with asking():
        typer.confirm(f"apply this to {plural(count, 'pattern')}?", abort=True, err=True)


def _applied(
    place: Place, lake: Lake, comparison: Comparison, name: str, since: str | None, *, edited: bool
) -> Iterator[dict[str, Any]]:
    """Brings a pattern up to date. `edited`: also its windows of another form, and those that faulty code made."""
    from trendlake.pipelines.results.row_versions import StaleRows
    from trendlake.pipelines.steps.backfill import stale_chunks

    one = comparison.now(name)
    for state in ("changes_results", "code") if edited else ():
        if one.run is None or one.state != state:
            continue
        windows = StaleRows(tuple(_since(one.run, one.windows, since)), one.why)
        todo = stale_chunks(one.run.plan.windows, windows, None, newest_first=False)
        yield from computed(place, lake, name, one.pattern, todo, stale=state == "code")
        one = comparison.now(name)
    if one.error is not None:
        raise one.error
    if one.behind:
        run_id = manual_run_id("apply")
        yield revise_in_session(place, lake, name, run_id, if_published=True, unlimited=False)


def _since(run: Run, stretches: Sequence[Stretch], since: str | None) -> Iterator[Stretch]:
    """The windows that end after `--from`; all without it."""
    after = None if since is None else run.plan.windows.after(run.times.micros(since, "--from"))
    for first, last in stretches:
        start = first if after is None else max(first, after)
        if start <= last:
            yield start, last
