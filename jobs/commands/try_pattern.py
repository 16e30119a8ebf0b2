"""Options of the command that tries a pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal.options import Ids, Json, Limit, Pattern, ProfileName, ProjectDir
from trendlake.jobs.terminal.outcome import guarded


@guarded
def try_(
    pattern: Pattern,
    sample: Annotated[
        bool, typer.Option("--sample", help="The newest windows of the source's table (the default).")
    ] = False,
    since: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option("--from", help="With --to: windows that end in (from, to], instead of the newest."),
    ] = None,
    until: Annotated[Optional[str], typer.Option("--to", help="See --from.")] = None,  # noqa: UP045
    events: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            "--events",
            metavar="FILE",
            help="A file (CSV, Parquet, JSON) instead of the one table of events; needs no Spark. May be repeated.",
        ),
    ] = None,
    tables: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--table",
            metavar="NAME=FILE",
            help="A file instead of a table of `sources` or `lookup`; may be repeated, also for one table. Others are "
            "read as they are.",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--max-events", min=1, help="Upper limit of events in the sample.")] = 50_000,
    limit: Limit = 20,
    ids: Ids = False,
    as_json: Json = False,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:
    """Try a pattern on a sample; nothing is written.

    It runs in this process, without Airflow.

    The sample has whole windows only, so that each row is what a run would publish for the same events. Of windows
    that hold too many events it has some groups, such as of one customer each, with all their events.

    Rows of a file are judged by the contract of its table. --events FILE is --table SOURCE=FILE in short.

    Example: trendlake try delay_snowball --sample

    Example: trendlake try delay_snowball --from 2013-02-01 --to 2013-02-08 --limit 5

    Example: trendlake try my_pattern --events trades.csv --json

    Example: trendlake try unpaid --table orders=o.csv --table payments=p.csv
    """
    from trendlake.jobs.actions.try_pattern import TryOptions, try_pattern

    if sample and (since or until or events or tables):
        raise typer.BadParameter("--sample selects the newest windows: leave out --from, --to, --events and --table")
    typed = tuple(events or ()), tuple(tables or ())
    options = TryOptions(pattern, since, until, *typed, most, limit, as_json, ids)
    return try_pattern(options, profile, project_dir)
