"""Options of the commands that run patterns: each step, all of them, a backfill; and the pages of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from trendlake.jobs.terminal import completion
from trendlake.jobs.terminal.options import AnyRunId, Pattern, ProfileName, ProjectDir, RunId, Since, Until
from trendlake.jobs.terminal.outcome import guarded
from trendlake.jobs.terminal.verdict import Verdict


def _step(
    step: str, pattern: str, since: str, until: str, run_id: str, profile: str | None, folder: Path | None
) -> dict[str, Any]:
    from trendlake.jobs.terminal import workspace
    from trendlake.jobs.terminal.json_output import of_record

    place = workspace.find_place(folder, profile, writes=True)
    name = workspace.check_early(place, pattern, (since, until))
    with workspace.session(place, f"trendlake {step} {name}", writes=True) as lake:
        return of_record(workspace.run_step(step, workspace.prepared(place, lake, pattern, (since, until), run_id)))


@guarded
def check_source(
    pattern: Pattern,
    since: Since,
    until: Until,
    run_id: RunId,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Step 1: pin the source's version and check its rows.

    Example: trendlake check-source delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    return _step("check_source", pattern, since, until, run_id, profile, project_dir)


@guarded
def compute(
    pattern: Pattern,
    since: Since,
    until: Until,
    run_id: RunId,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Step 2: compute the windows and stage the results.

    Example: trendlake compute delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    return _step("compute", pattern, since, until, run_id, profile, project_dir)


@guarded
def check_results(
    pattern: Pattern,
    since: Since,
    until: Until,
    run_id: RunId,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Step 3: check the staged results.

    Example: trendlake check-results delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    return _step("check_results", pattern, since, until, run_id, profile, project_dir)


@guarded
def publish(
    pattern: Pattern,
    since: Since,
    until: Until,
    run_id: RunId,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Step 4: publish the staged results in one commit.

    Example: trendlake publish delay_snowball --from 2013-02-01 --to 2013-02-02 --run-id r1
    """
    return _step("publish", pattern, since, until, run_id, profile, project_dir)


@guarded
def report(
    pattern: Pattern,
    run_id: RunId,
    since: Annotated[Optional[str], typer.Option("--from", help="Ignored: the run record has the interval.")] = None,  # noqa: UP045
    until: Annotated[Optional[str], typer.Option("--to", help="Ignored: the run record has the interval.")] = None,  # noqa: UP045
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Step 5: write the run's report, a page and a picture.

    Example: trendlake report delay_snowball --run-id r1
    """
    from trendlake.jobs.terminal import workspace

    place = workspace.find_place(project_dir, profile)
    name = place.project.pattern_path(pattern).stem
    with workspace.session(place, f"trendlake report {pattern}") as lake:
        about: dict[str, Any] = {"pattern": name, "run_id": run_id}
        return about | workspace.report(place, lake, pattern, run_id)


@guarded
def run_steps(
    patterns: Annotated[list[str], typer.Argument(help="A name or a file; of a batch several.", metavar="PATTERN")],
    since: Since,
    until: Until,
    run_id: RunId,
    steps: Annotated[str, typer.Option("--steps", help="Steps in their order, separated by commas.")],
    progress: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--progress", help="A file for each step done; the process that holds its lock is waited on."),
    ] = None,
    batch: Annotated[Optional[str], typer.Option("--batch", help="The batch that the patterns are of.")] = None,  # noqa: UP045
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | Verdict:
    """Run some steps in one Spark application, for an Airflow task.

    Example: trendlake run-steps rising --from 2026-01-01 --to 2026-01-02 --run-id r1 --steps compute,check_results
    """
    if batch is not None:
        from trendlake.jobs.actions.batch_steps import run_batch_steps

        return run_batch_steps(batch, patterns, since, until, run_id, steps, progress, profile, project_dir)
    if len(patterns) != 1:
        raise typer.BadParameter("several patterns need --batch")
    from trendlake.jobs.actions import steps as stepping

    return stepping.run_steps(patterns[0], since, until, run_id, steps, progress, profile, project_dir)


@guarded
def site(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(help="Names of patterns, or files; default: all of the project."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> Verdict:
    """Write the reports as a static site.

    Writes an index, a page for each pattern, and the Great Expectations pages of its last check. Also a page for each
    source, and a graph of all tables and patterns.

    Example: trendlake site
    """
    from trendlake.jobs.terminal import workspace

    return workspace.build_site(workspace.find_place(project_dir, profile), patterns or [])


@guarded
def run(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            help="Names, files, or selectors such as fall_* and tag:daily (`trendlake ls --help` lists them).",
            metavar="PATTERN",
            autocompletion=completion.patterns,
        ),
    ] = None,
    since: Annotated[Optional[str], typer.Option("--from", help="Start of the interval, ISO 8601 (UTC).")] = None,  # noqa: UP045
    until: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--to", help="Its end: windows that end in (from, to]. Default: the next complete windows."),
    ] = None,
    batch: Annotated[Optional[str], typer.Option("--batch", help="All patterns of this batch.")] = None,  # noqa: UP045
    on: Annotated[
        Optional[Literal["here", "spark"]],  # noqa: UP045
        typer.Option("--on", help="Do each step in this process, or on Spark. Default: by the number of rows."),
    ] = None,
    run_id: AnyRunId = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> Iterator[Any]:
    """Run all steps of patterns for an interval.

    Without --from and --to: the complete windows after the last published one; if none is published, the last complete
    window. A window is complete when the source has an event after it (consistency strong: when its allowed lateness
    has passed too). A run does not fill gaps: `trendlake show PATTERN` names them.

    Several patterns share one Spark session and one look at their source. An error in one stops no other: the table at
    the end has the state of each, and the exit code is 1. With --json each pattern is a line.

    Example: trendlake run delay_snowball

    Example: trendlake run delay_snowball --from 2013-01-01 --to 2014-01-02

    Example: trendlake run tag:daily source:flights+ --from 2013-01-01 --to 2013-01-02
    """
    from trendlake.jobs.actions.run import run_patterns
    from trendlake.jobs.terminal.workspace import find_place

    if not patterns and batch is None:
        raise typer.BadParameter("give a PATTERN, or --batch NAME")
    if (since is None) != (until is None):
        raise typer.BadParameter("give both --from and --to; or neither: the next complete windows")
    interval = None if since is None or until is None else (since, until)
    place = find_place(project_dir, profile, writes=True)
    yield from run_patterns(place, patterns or [], batch, interval, run_id, on)


@guarded
def apply(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            help="Names, files, selectors, or one file of `plan --out`; default: all patterns.",
            metavar="PATTERN",
            autocompletion=completion.patterns,
        ),
    ] = None,
    since: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--from", help="Recompute only windows that end after it; older ones keep their form."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> Iterator[Any]:
    """Bring published results up to date with edited files.

    Prints the plan and asks. Then it backfills stale windows, upstream first, and revises the patterns that read their
    results. Interrupted, it goes on when it is typed again. Results without a pattern's file stay. A plan file is
    refused where a pattern, a contract or results have changed since. With --json each document is a line.

    Example: trendlake apply

    Example: trendlake apply falling --from 2026-01-01 --yes

    Example: trendlake apply plan.json --yes
    """
    from trendlake.jobs.actions.apply import apply as applied

    yield from applied(patterns or [], since, profile, project_dir, yes=yes)


@guarded
def backfill(
    pattern: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A name under conf/patterns, or a file's path; default with --stale: all patterns.",
            metavar="PATTERN",
            autocompletion=completion.patterns,
        ),
    ] = None,
    since: Annotated[Optional[str], typer.Option("--from", help="Start of the interval, ISO 8601 (UTC).")] = None,  # noqa: UP045
    until: Annotated[Optional[str], typer.Option("--to", help="Its end: windows that end in (from, to].")] = None,  # noqa: UP045
    stale: Annotated[
        bool, typer.Option("--stale", help="Only windows that an older version of Trendlake computed wrongly.")
    ] = False,
    chunk: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--chunk", help="Length of a chunk, such as 30 days; default: a twelfth of the interval."),
    ] = None,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Compute the newest chunk first.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the number of windows, events and bytes.")
    ] = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> Iterator[dict[str, Any]]:
    """Compute a long interval in chunks.

    All chunks share one Spark session. Started again, it continues where it stopped.

    Example: trendlake backfill delay_snowball --from 2013-01-01 --to 2014-01-02 --chunk "30 days"

    Example: trendlake backfill --stale --dry-run
    """
    from trendlake.jobs.actions import backfill as backfilling
    from trendlake.jobs.airflow.notify import notify_of_results
    from trendlake.jobs.terminal import workspace

    place = workspace.find_place(project_dir, profile, writes=not dry_run)
    length = backfilling.length_of(chunk)
    changed: dict[str, None] = {}
    if stale:
        if since is not None or until is not None:
            raise typer.BadParameter("--stale selects the windows itself: leave out --from and --to")
        names = [file.stem for file in place.project.pattern_files()] if pattern is None else [pattern]
        with workspace.session(place, "trendlake backfill --stale", writes=not dry_run) as lake:
            for document in backfilling.run_stale(place, lake, names, length, newest_first, dry_run):
                changed |= {document["pattern"]: None} if document.get("changed") else {}
                yield document
    else:
        if pattern is None or since is None or until is None:
            raise typer.BadParameter("a backfill needs PATTERN, --from and --to; or --stale")
        yield from backfilling.backfill_pattern(place, pattern, (since, until), length, newest_first, dry_run)
    for name in changed:
        notify_of_results(place.project, name)
