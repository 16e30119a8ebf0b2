"""`trendlake reset`: what would be lost, and the question whether it may be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trendlake.jobs.airflow.notify import notify_of_source
from trendlake.jobs.terminal.hints import as_typed
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.waiting import asking
from trendlake.jobs.terminal.workspace import Place, find_place, session, site_of
from trendlake.pipelines.error_text import plural

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake


def reset_pattern(name: str, profile: str | None, folder: Path | None, *, yes: bool, dry_run: bool) -> dict[str, Any]:
    """Prints the number of rows and versions, asks unless `yes`, and removes the table that `name` means; with
    `dry_run` only prints."""
    from trendlake.pipelines.results import reset
    from trendlake.pipelines.results.named import publishers_of, table_named
    from trendlake.pipelines.site.build import forget_pattern

    place = find_place(folder, profile, writes=not dry_run)
    with session(place, f"trendlake reset {name}", writes=not dry_run) as lake:
        table = table_named(lake, place.project, name)
        about = {"pattern": table.pattern or name, "table": table.name, "rows": 0, "versions": 0, "removed": False}
        published = reset.published(lake, table.path)
        if published is None:
            say(f"{name}: nothing is published")
            return about
        lost = f"{plural(published.rows, 'row')} and {plural(published.versions, 'version')}"
        again = as_typed(_again(place, lake, name, table.pattern))
        about |= {"rows": published.rows, "versions": published.versions}
        say(f"{table.name}: {lost} {'would be' if dry_run else 'are'} lost; sources and run records stay")
        if dry_run:
            say(again)
            return about
        if not yes:
            with asking():
                typer.confirm(f"Remove {table.name}?", abort=True)
        publishers = [] if table.pattern is not None else publishers_of(lake, table)
        reset.reset(lake, table.name, table.path)
        for gone in publishers:
            forget_pattern(site_of(place, lake), gone)
    say(f"{table.name}: removed. {again}")
    if table.pattern is not None:
        notify_of_source(place.project, f"results/{table.pattern}")
    return about | {"removed": True}


def _again(place: Place, lake: Lake, name: str, pattern: str | None) -> str:
    """A sentence with the command that computes all published windows again."""
    from trendlake.cep_core.errors import TrendlakeError
    from trendlake.pipelines.results.coverage import spans
    from trendlake.pipelines.results.ledger import read_ledger
    from trendlake.pipelines.revision.scope import backfills
    from trendlake.pipelines.runs.run import prepare

    if pattern is None:
        return "No file of the project speaks of it."
    try:
        word = pattern if name.startswith("results/") else name
        run = prepare(lake, place.project, place.profile, word, "reset", 0, 1)
        shown = spans(read_ledger(run.lake, run.name, run.plan, run.sources.name).segments)
    except TrendlakeError:  # the file is wrong, or the pattern has another table by now
        return f"`trendlake run {pattern}` computes results of it."
    commands = backfills(run.plan.windows, run.typed, shown[:1] and [(shown[0][0], shown[-1][1])], run.times)
    return f"`trendlake {commands[0][1] if commands else f'run {run.typed}'}` computes it again."
