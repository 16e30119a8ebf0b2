"""Options of the commands about quarantined rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trendlake.jobs.terminal.options import Json, Limit, ProfileName, ProjectDir, Source
from trendlake.jobs.terminal.outcome import guarded

quarantine = typer.Typer(
    help="Show quarantined rows, and replay repaired ones.", no_args_is_help=True, rich_markup_mode=None
)


@quarantine.command("show")
@guarded
def show_quarantine(
    source: Source,
    rule: Annotated[Optional[str], typer.Option("--rule", help="Only rows that break this rule first.")] = None,  # noqa: UP045
    run: Annotated[Optional[str], typer.Option("--run", help="Only rows that this run has quarantined.")] = None,  # noqa: UP045
    limit: Limit = 20,
    as_json: Json = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="Write all of them to this CSV or Parquet file, for repair and replay."),
    ] = None,
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any] | None:
    """Show quarantined rows that still break the contract.

    Shows counts by rule, then rows with the reason.

    Example: trendlake quarantine show flights --rule flight_has_landed

    Example: trendlake quarantine show trades --out broken.csv
    """
    from trendlake.jobs.actions import quarantine as quarantining

    return quarantining.show(source, rule, run, limit, as_json, out, profile, project_dir)


@quarantine.command("replay")
@guarded
def replay_quarantine(
    source: Source,
    file: Annotated[Path, typer.Argument(help="The repaired rows: CSV, Parquet or JSON.", metavar="FILE")],
    profile: ProfileName = None,
    project_dir: ProjectDir = None,
) -> dict[str, Any]:
    """Put repaired rows into the source, in one commit.

    Each replaces its broken row. Replaying the same file again changes nothing.

    A row replaces the row of its quarantine_id, else the row with its event id. Rows that were not changed stay open.
    If a row still breaks the contract, nothing is written.

    Example: trendlake quarantine replay trades broken.csv
    """
    from trendlake.jobs.actions import quarantine as quarantining

    return quarantining.replay(source, file, profile, project_dir)
