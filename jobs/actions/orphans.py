"""`trendlake ls --orphans`: tables that no file of the project speaks of."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.workspace import find_place, session


def list_orphans(profile: str | None, folder: Path | None) -> dict[str, Any]:
    """Prints each table with the command that removes it."""
    from trendlake.jobs.terminal.printing import console, minute
    from trendlake.jobs.terminal.rows import Rows
    from trendlake.pipelines.results.named import orphans

    place = find_place(folder, profile)
    with session(place, "trendlake ls --orphans") as lake:
        rows = [
            asdict(orphan) | {"command": command(f"reset {orphan.table}")} for orphan in orphans(lake, place.project)
        ]
    if not rows:
        console.print("no orphans: each results table has a pattern, each quarantine a contract")
        return {"patterns": [], "orphans": []}
    texts = [
        (row["table"], row["pattern"] or "", f"{row['rows']:,}", minute(row["changed"]), f"`{row['command']}`")
        for row in rows
    ]
    columns = ("table", "pattern", "rows", "changed (UTC)", "removed by")
    console.print(Rows.of_a_list(columns, texts, right=("rows",)))
    if any(row["pattern"] for row in rows):
        console.print("a renamed pattern keeps its results by `renamed_from: NAME` in its file")
    return {"patterns": [], "orphans": rows}
