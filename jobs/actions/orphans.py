"""`trendlake ls --orphans`: tables that no file of the project speaks of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.workspace import find_place, session


def list_orphans(profile: str | None, folder: Path | None) -> dict[str, Any]:
    """Prints each table with the command that removes it."""
    from rich.table import Table

    from trendlake.jobs.terminal.printing import console, frame, minute
    from trendlake.pipelines.results.named import orphans

    place = find_place(folder, profile)
    with session(place, "trendlake ls --orphans") as lake:
        rows = [
            asdict(orphan) | {"command": command(f"reset {orphan.table}")} for orphan in orphans(lake, place.project)
        ]
    if not rows:
        console.print("no orphans: each results table has a pattern, each quarantine a contract")
        return {"patterns": [], "orphans": []}
    table = Table(**frame())
    for column in ("table", "pattern", "rows", "changed (UTC)", "removed by"):
        table.add_column(column, justify="right" if column == "rows" else "left", overflow="fold")
    for row in rows:
        table.add_row(
            row["table"], row["pattern"] or "", f"{row['rows']:,}", minute(row["changed"]), f"`{row['command']}`"
        )
    console.print(table)
    if any(row["pattern"] for row in rows):
        console.print("a renamed pattern keeps its results by `renamed_from: NAME` in its file")
    return {"patterns": [], "orphans": rows}
