"""Maintenance of a table on this machine's disk by delta-rs: what Spark does for `trendlake maintain`, without Java."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError

from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log import logged_versions, newest_view
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.here.write import HOOKS, put_together
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import refuse, refuse_more
from trendlake.pipelines.lake.warehouse import KEPT, OvertakenError, with_retries

TARGET_BYTES = 1 << 30
"""Smaller files are put together, to files of this size: as by Delta's OPTIMIZE."""
WHOLE_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")
"""A checkpoint of one file. delta-rs would take a part of one that has several for the whole."""


@dataclass(frozen=True)
class Kept:
    """A table before and after the work on it."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


def maintain_here(lake: Lake, name: str, path: str) -> Kept:
    """Maintains the table called `name`. Raises NotHereError where that is left to Spark, which may do it once more
    from the beginning; BusyTableError, and as `refuse_full_disk`."""
    before = _writable(lake, path)
    folder = before.folder
    with_retries(lambda: _changed(folder, _keep), f"keeping {name}")
    with_retries(lambda: compact(lake, path), f"optimizing {name}")
    for file in with_retries(lambda: _changed(folder, _vacuum), f"vacuuming {name}"):
        (folder / file).with_name(f".{Path(file).name}.crc").unlink(missing_ok=True)  # Hadoop's checksum
    _clean_log(folder)
    after = table_here(lake, path)
    return Kept(name, len(before.files), len(after.files), sum(before.sizes.values()), sum(after.sizes.values()))


def _writable(lake: Lake, path: str) -> TableHere:
    table = table_here(lake, path)
    refuse({"a table that asks more of who writes it": not table.writable})
    return table


def _changed(folder: Path, change: Callable[[DeltaTable], Any]) -> Any:
    """Calls `change` with the newest version. Raises OvertakenError where another writer comes first."""
    with newest_view(folder) as view:
        try:
            return change(view)
        except CommitFailedError as error:
            raise OvertakenError from error


def _keep(view: DeltaTable) -> None:
    properties = view.metadata().configuration
    if any(properties.get(key) != value for key, value in KEPT.items()):
        once = CommitProperties(max_commit_retries=0)
        view.alter.set_table_properties(KEPT, commit_properties=once, post_commithook_properties=HOOKS)


def compact(lake: Lake, path: str) -> None:
    """Puts the small files of the table at `path` together, in their order, to files of `TARGET_BYTES`: the rows stay
    what they are, and so do older versions. Raises as `write.put_together`; OvertakenError where another writer comes
    first."""
    for files in _groups(_writable(lake, path)):
        table = _writable(lake, path)
        if not set(files) <= set(table.files):
            raise OvertakenError
        note = json.dumps({"compaction": uuid.uuid4().hex})  # no stage: it is no publication
        put_together(table, files, table.part(files).batches(table.schema.names), note)


def _groups(table: TableHere) -> list[list[str]]:
    """Files that become one each: neighbours among the small ones, two or more."""
    sizes, groups, room = table.sizes, list[list[str]](), 0
    for name in (name for name, size in sizes.items() if size < TARGET_BYTES):
        if sizes[name] > room:
            groups.append([])
            room = TARGET_BYTES
        groups[-1].append(name)
        room -= sizes[name]
    several = [group for group in groups if len(group) > 1]
    size = sum(sizes[name] for group in several for name in group)
    refuse_more(size, limits.COMPACTED_BYTES, "bytes of files to be put together")
    return several


def _vacuum(view: DeltaTable) -> list[str]:
    """Removes files that have not been in the table for as long as its property says; and files that never were, or
    that hold changes, by their own age: `full` means what Delta's VACUUM does. Returns their names."""
    return view.vacuum(dry_run=False, full=True, post_commithook_properties=HOOKS)


def _clean_log(folder: Path) -> None:
    """Writes a checkpoint, and removes entries of the log that are older than its property says and that a checkpoint
    replaces. Spark does both as it commits, this process only here (`write.HOOKS`)."""
    log = folder / "_delta_log"
    if not all(WHOLE_CHECKPOINT.fullmatch(file.name) for file in log.glob("[0-9]*.checkpoint*")):
        return
    with newest_view(folder) as view:
        if view.metadata().configuration.get("delta.enableExpiredLogCleanup", "true") != "true":
            return
        if not (log / f"{view.version():020d}.checkpoint.parquet").exists():
            view.create_checkpoint()
        view.cleanup_metadata()
    oldest = f"{logged_versions(folder)[-1]:020d}"
    for file in log.glob("*.crc"):  # of the log, and Hadoop's; delta-rs leaves them
        if file.name.lstrip(".")[:20] < oldest:
            file.unlink(missing_ok=True)
