"""Options of the commands about versions: revise, diff, history, maintain, reset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal import completion
from trendlake.jobs.terminal.options import AnyRunId, Groups, Json, Limit, Pattern, ProfileName, ProjectDir, Results
from trendlake.jobs.terminal.outcome import guarded
from trendlake.jobs.terminal.verdict import Verdict


@guarded
def revise(
    patterns: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it
        typer.Argument(
            help="Names, files, or selectors such as fall_* and tag:daily; or --source.",
            metavar="PATTERN",
            autocompletion=completion.patterns,
        ),
    ] = None,
    source: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--source",
            help="All published patterns that read this source, and patterns on their results.",
            autocompletion=completion.sources,
        ),
    ] = None,
    run_id: AnyRunId = None,
    if_published: Annotated[
        bool, typer.Option("--if-published", help="Exit successfully if nothing has been published yet.")
    ] = False,
    unlimited: Annotated[
        bool, typer.Option("--all", help="Also where reference rows change more windows than `most_windows`.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be done: tables, changes, windows.")
    ] = False,
    progress: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--progress", help="Of an Airflow task: as of `trendlake run-steps`.", hidden=True),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | Verdict:
    """Bring results up to date with a changed source.

    Applies late, changed and deleted events of the source's newest version.

    Example: trendlake revise delay_snowball

    Example: trendlake revise --source flights

    Example: trendlake revise --source flights --dry-run
    """
    from trendlake.jobs.actions.revise import revise_pattern, revise_several, revise_source
    from trendlake.jobs.actions.revise_dry_run import dry_run_pattern, dry_run_several, dry_run_source
    from trendlake.jobs.actions.run import selects
    from trendlake.jobs.terminal.workspace import find_place

    if (not patterns) == (source is None):
        raise typer.BadParameter("give a PATTERN, or --source SOURCE")
    several = not patterns or len(patterns) > 1 or selects(patterns[0])
    if unlimited and several:
        raise typer.BadParameter("--all is of one PATTERN")
    if dry_run and patterns and several:
        return dry_run_several(patterns, profile, project_dir, if_published=if_published)
    if dry_run and patterns:
        return dry_run_pattern(patterns[0], profile, project_dir, if_published=if_published, unlimited=unlimited)
    if dry_run:
        return dry_run_source(str(source), profile, project_dir)
    place = find_place(project_dir, profile, writes=True)
    if patterns and (len(patterns) > 1 or progress is not None or selects(patterns[0])):
        return revise_several(place, patterns, run_id, progress, if_published=if_published)
    if patterns:
        return revise_pattern(place, patterns[0], run_id, if_published=if_published, unlimited=unlimited)
    return revise_source(place, str(source), run_id)


@guarded
def reset(
    pattern: Results,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Remove everything that a pattern has published.

    Also removes the history of the results. Sources and run records stay. The results of a pattern whose file is gone
    have its name still (`trendlake ls --orphans` lists them); results/NAME is the table of that name, whatever files
    there are.

    Example: trendlake reset delay_snowball --dry-run

    Example: trendlake reset results/delay_snowball --yes
    """
    from trendlake.jobs.actions.reset import reset_pattern

    return reset_pattern(pattern, profile, project_dir, yes=yes, dry_run=dry_run)


@guarded
def diff(
    pattern: Pattern,
    since: Annotated[str, typer.Option("--from", help="A version of the results, or a time (ISO 8601).")],
    until: Annotated[str, typer.Option("--to", help="A later version or time.")],
    limit: Limit = 20,
    as_json: Json = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:
    """Show what changed between two versions of the results.

    Lists rows that were added, changed or retracted, and the commits that did so.

    Example: trendlake diff delay_snowball --from 3 --to 5
    """
    from trendlake.jobs.actions import history as looking_back

    return looking_back.diff(pattern, since, until, limit, as_json, profile, project_dir)


@guarded
def history(
    pattern: Pattern,
    window: Annotated[str, typer.Option("--window", help="A time of the results' window column (ISO 8601).")],
    group: Groups = None,
    as_json: Json = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:
    """Show every value that a group has had in a window.

    Also shows the version of the source that each value was computed from.

    Example: trendlake history delay_snowball --group carrier=UA --window 2013-02-08T09:00
    """
    from trendlake.jobs.actions import history as looking_back

    return looking_back.history(pattern, group or [], window, as_json, profile, project_dir)


@guarded
def maintain(profile: ProfileName = None, project_dir: ProjectDir = None) -> dict[str, Any]:
    """Compact tables and remove expired files.

    Files that revisions and `--as-of` may need expire after a year.

    Example: trendlake maintain
    """
    from trendlake.jobs.actions.maintain import maintain_all

    return maintain_all(profile, project_dir)
