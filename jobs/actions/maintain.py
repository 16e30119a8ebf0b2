"""`trendlake maintain`: compacts tables and removes expired files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.workspace import find_place, session
from trendlake.pipelines.error_text import plural


def maintain_all(profile: str | None, folder: Path | None) -> dict[str, Any]:
    """Maintains every table of the project's warehouse and prints a line for each."""
    from trendlake.pipelines.lake.maintain import STAGED_DAYS, clear_staging, clear_verdicts, maintain, tables
    from trendlake.pipelines.lake.road import Roads

    place = find_place(folder, profile, writes=True)
    sources = [path.stem for path in place.project.source_contracts()]
    patterns = [path.stem for path in place.project.pattern_files()]
    with session(place, "trendlake maintain", writes=True) as lake:
        done = []
        wanted = tables(lake, sources, patterns)
        for table in maintain(lake, wanted, on_spark=bool(Roads(place.profile.limits).always_spark)):
            done.append(table)
            files = f"{table.files_before:,} files -> {table.files_after:,}"
            say(f"{table.table:<40} {files:<24} {table.bytes_before:,} -> {table.bytes_after:,} bytes")
        if attempts := clear_staging(lake):
            say(f"{'staging':<40} {plural(attempts, 'attempt')} older than {STAGED_DAYS} days removed")
        if verdicts := clear_verdicts(lake):
            say(f"{'verdicts':<40} {plural(verdicts, 'file')} that no run has used for {STAGED_DAYS} days removed")
    return {"tables": done, "attempts_removed": attempts, "verdicts_removed": verdicts}
