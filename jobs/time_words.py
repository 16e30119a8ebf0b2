"""The words of the command that speak of versions: what is corrected, what changed, what was there."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobs.options import AnyRunId, Json, Limit, Pattern, ProfileName, ProjectDir
from jobs.outcome import guarded


def add_time_words(app: typer.Typer) -> None:
    for word in (revise, reset, diff, history, maintain):
        app.command()(word)


@guarded
def revise(
    pattern: Pattern, run_id: AnyRunId = None,
    if_published: Annotated[bool, typer.Option("--if-published", help="Be content where nothing is.")] = False,
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any]:  # fmt: skip
    """Bring what a pattern has published to its source's newest version: late, changed and deleted events.

    Example: trendlake revise delay_snowball
    """
    from jobs.revising import revise_pattern

    return revise_pattern(pattern, run_id, profile, project_dir, if_published=if_published)


@guarded
def reset(
    pattern: Pattern,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any]:  # fmt: skip
    """Remove everything a pattern has published, with its history; the next run starts anew. Sources stay.

    Example: trendlake reset delay_snowball
    """
    from jobs.resetting import reset_pattern

    return reset_pattern(pattern, profile, project_dir, yes=yes)


@guarded
def diff(
    pattern: Pattern,
    since: Annotated[str, typer.Option("--from", help="A version of the results, or a time (ISO 8601).")],
    until: Annotated[str, typer.Option("--to", help="A later version or time.")],
    limit: Limit = 20, as_json: Json = False, profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """Rows that were added, changed or retracted between two versions of the results, and why.

    Example: trendlake diff delay_snowball --from 3 --to 5
    """
    from jobs import looking_back

    return looking_back.diff(pattern, since, until, limit, as_json, profile, project_dir)


@guarded
def history(
    pattern: Pattern,
    window: Annotated[str, typer.Option("--window", help="A time of the results' window column (ISO 8601).")],
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="COLUMN=VALUE, once for each column."),
    ] = None,
    as_json: Json = False,
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """Every value that a group's rows have had in a window, and which version of the source gave it.

    Example: trendlake history delay_snowball --group carrier=UA --window 2013-02-08T09:00
    """
    from jobs import looking_back

    return looking_back.history(pattern, group or [], window, as_json, profile, project_dir)


@guarded
def maintain(profile: ProfileName = None, project_dir: ProjectDir = None) -> dict[str, Any]:
    """Put small files of every table together, and remove what is older than revisions and past answers need (a year).

    Example: trendlake maintain
    """
    from jobs.maintaining import maintain_all

    return maintain_all(profile, project_dir)
