"""Options of the commands that show results, runs and the documentation."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from jobs.terminal.options import AsOf, Json, Limit, Pattern, ProfileName, ProjectDir
from jobs.terminal.outcome import guarded


@guarded
def show(
    pattern: Pattern, limit: Limit = 10, as_of: AsOf = None, as_json: Json = False, profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """Show rows of a pattern's results, now or as of a version.

    The rows with the largest counts, or the latest where nothing is counted.

    Example: trendlake show delay_snowball --limit 5

    Example: trendlake show delay_snowball --as-of 2026-11-20T18:00
    """
    from jobs.terminal import printing, workspace

    place = workspace.find_place(project_dir, profile)
    place.project.pattern_path(pattern)
    with workspace.session(place, f"trendlake show {pattern}") as spark:
        return printing.print_results(place, spark, pattern, limit, as_of, as_json=as_json)


@guarded
def runs(
    pattern: Annotated[Optional[str], typer.Argument(help="Only runs of this pattern.")] = None,  # noqa: UP045
    limit: Limit = 20, as_json: Json = False, profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """List the newest run records.

    What each stage read and wrote, and how long it took.

    Example: trendlake runs delay_snowball
    """
    from jobs.terminal import printing, workspace

    place = workspace.find_place(project_dir, profile)
    with workspace.session(place, "trendlake runs") as spark:
        return printing.print_runs(place, spark, pattern, limit, as_json=as_json)


@guarded
def docs(
    page: Annotated[Optional[str], typer.Argument(help="A page's name; all names when none is given.")] = None,  # noqa: UP045
) -> dict[str, Any]:
    """List the documentation, or print a page.

    Example: trendlake docs tutorial
    """
    from jobs.actions.docs import print_page, print_pages

    return print_pages() if page is None else print_page(page)
