"""Maintenance for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from jobs.terminal.workspace import find_place, session
from pipelines.error_text import plural


def maintain_all(profile: str | None, folder: Path | None) -> dict[str, Any]:
    """Every table of the project's warehouse, with a line for each."""
    from pipelines.delta.maintain import STAGED_DAYS, clear_staging, maintain, tables

    place = find_place(folder, profile)
    sources = [path.stem for path in sorted(place.project.contracts.glob("*.yaml"))]
    patterns = [path.stem for path in place.project.pattern_files()]
    with session(place, "trendlake maintain") as spark:
        done = []
        for kept in maintain(spark, tables(spark, place.warehouse, sources, patterns)):
            done.append(kept)
            files = f"{kept.files_before:,} files -> {kept.files_after:,}"
            typer.echo(f"{kept.table:<40} {files:<24} {kept.bytes_before:,} -> {kept.bytes_after:,} bytes")
        if attempts := clear_staging(spark, place.warehouse):
            typer.echo(f"{'staging':<40} {plural(attempts, 'attempt')} older than {STAGED_DAYS} days removed")
    return {"tables": done, "attempts_removed": attempts}
