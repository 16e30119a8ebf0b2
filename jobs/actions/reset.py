"""`trendlake reset`: what would be lost, and the question whether it may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from jobs.airflow.notify import notify_of_results
from jobs.terminal.workspace import find_place, session


def reset_pattern(pattern: str, profile: str | None, folder: Path | None, *, yes: bool) -> dict[str, Any]:
    """Prints the number of rows and versions, asks unless `yes`, and removes the results table of the pattern."""
    from cep_core import load_pattern
    from pipelines.results import reset

    place = find_place(folder, profile)
    name = load_pattern(place.project.pattern_path(pattern)).name
    with session(place, f"trendlake reset {name}") as spark:
        published = reset.published(spark, place.warehouse, name)
        if published is None:
            typer.echo(f"{name}: nothing is published")
            return {"pattern": name, "rows": 0, "versions": 0, "removed": False}
        rows = f"{published.rows:,} row{'' if published.rows == 1 else 's'}"
        versions = f"{published.versions:,} version{'' if published.versions == 1 else 's'}"
        typer.echo(f"{name}: {rows} and {versions} of the results are lost; sources and run records stay")
        if not yes:
            typer.confirm("Remove the results?", abort=True)
        reset.reset(spark, place.warehouse, name)
    typer.echo(f"{name}: results removed; `trendlake run {name}` or `trendlake backfill {name}` computes them again")
    notify_of_results(place.project, name)
    return {"pattern": name, "rows": published.rows, "versions": published.versions, "removed": True}
