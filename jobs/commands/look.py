"""Options of the commands that show results, runs and the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal import completion
from trendlake.jobs.terminal.options import AsOf, Groups, Ids, Json, Limit, ProfileName, ProjectDir, Results
from trendlake.jobs.terminal.outcome import guarded


@guarded
def show(
    pattern: Results,
    limit: Limit = 10,
    group: Groups = None,
    since: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option("--from", help="Only rows of windows that begin at this time (ISO 8601) or later."),
    ] = None,
    until: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--to", help="Only rows of windows that begin before this time."),
    ] = None,
    columns: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--columns", help="Result columns to show, separated by commas."),
    ] = None,
    ids: Ids = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="Write all selected rows to this CSV or Parquet file."),
    ] = None,
    as_of: AsOf = None,
    as_json: Json = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:
    """Show rows of a pattern's results, now or as of a version.

    The rows with the largest counts, or the latest where nothing is counted. Then what is to be repaired, such as
    gaps and windows of an earlier form of the pattern, with the command that does it. The results of a pattern whose
    file is gone have its name still.

    Example: trendlake show delay_snowball --group carrier=UA --from 2013-02-01

    Example: trendlake show delay_snowball --as-of 2026-11-20T18:00 --out rows.csv
    """
    from trendlake.jobs.actions import show as showing

    shown = showing.Shown(limit, group or (), since, until, columns, as_of, out, ids)
    return showing.show(pattern, shown, as_json, profile, project_dir)


@guarded
def ls(
    selectors: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            help="Names, files, or selectors; default: all patterns.",
            metavar="SELECTOR",
            autocompletion=completion.patterns,
        ),
    ] = None,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="List results and quarantines whose pattern or contract has no file.")
    ] = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """List the patterns of the project, or those that a selector means.

    In the order of a run: a pattern comes after those whose results it reads. Selectors: fall_* (names), tag:daily,
    kind:trends, owner:ops, batch:prices, source:trades, source:trades+ (with the patterns that read their results),
    result:failed (of the last run), result:succeeded. Several add up.

    Example: trendlake ls

    Example: trendlake ls source:flights+ result:failed

    Example: trendlake ls --orphans
    """
    from trendlake.jobs.actions.run import list_patterns

    if orphans:
        from trendlake.jobs.actions.orphans import list_orphans

        if selectors:
            raise typer.BadParameter("--orphans takes no SELECTOR: no pattern has them")
        return list_orphans(profile, project_dir)
    return list_patterns(selectors or [], profile, project_dir)


@guarded
def runs(
    pattern: Annotated[Optional[str], typer.Argument(help="Only runs of this pattern.")] = None,  # noqa: UP045
    limit: Limit = 20,
    as_json: Json = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:
    """List the newest run records.

    Shows what each stage read and wrote, and how long it took.

    Example: trendlake runs delay_snowball
    """
    from trendlake.jobs.actions import show as showing

    return showing.runs(pattern, limit, as_json, profile, project_dir)


@guarded
def docs(
    page: Annotated[Optional[str], typer.Argument(help="A page's name; all names when none is given.")] = None,  # noqa: UP045
) -> dict[str, Any]:
    """List the documentation, or print a page.

    Example: trendlake docs tutorial
    """
    from trendlake.jobs.actions.docs import print_page, print_pages

    return print_pages() if page is None else print_page(page)
