"""Options of the commands about quarantined rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from jobs.terminal.options import Json, Limit, ProfileName, ProjectDir, Source
from jobs.terminal.outcome import guarded

quarantine = typer.Typer(
    help="Show quarantined rows, and replay repaired ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@quarantine.command("show")
@guarded
def show_quarantine(
    source: Source,
    rule: Annotated[Optional[str], typer.Option("--rule", help="Only rows that break this rule first.")] = None,  # noqa: UP045
    run: Annotated[Optional[str], typer.Option("--run", help="Only rows that this run has set apart.")] = None,  # noqa: UP045
    limit: Limit = 20, as_json: Json = False,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="A CSV or Parquet file for all of them, to be mended and replayed."),
    ] = None,
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any] | None:  # fmt: skip
    """Show quarantined rows that still break the contract.

    Why, how many, and which.

    Example: trendlake quarantine show flights --rule flight_has_landed

    Example: trendlake quarantine show trades --out broken.csv
    """
    from jobs.actions import quarantine as quarantining

    return quarantining.show(source, rule, run, limit, as_json, out, profile, project_dir)


@quarantine.command("replay")
@guarded
def replay_quarantine(
    source: Source,
    file: Annotated[Path, typer.Argument(help="The repaired rows: CSV, Parquet or JSON.", metavar="FILE")],
    profile: ProfileName = None, project_dir: ProjectDir = None,
) -> dict[str, Any]:  # fmt: skip
    """Put repaired rows into the source, in one commit.

    Each takes the place of its broken row. Replaying the same file again is safe.

    A row replaces the one that its quarantine_id names, else the one with its event id. Rows of the file that are as
    they were stay open. If one is still broken, nothing is written.

    Example: trendlake quarantine replay trades broken.csv
    """
    from jobs.actions import quarantine as quarantining

    return quarantining.replay(source, file, profile, project_dir)
