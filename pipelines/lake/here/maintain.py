"""Maintenance of a table on this machine's disk by delta-rs: what Spark does for `trendlake maintain`, without Java."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError
from pyarrow.parquet import read_metadata

from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log import logged_versions, newest_view
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.here.write import HOOKS, compacting_alone, refuse_full_disk, rows_of_group, writer
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import refuse, refuse_more
from trendlake.pipelines.lake.warehouse import KEPT, OvertakenError, with_retries

TARGET_BYTES = 1 << 30
"""Smaller files are put together, to files of this size: as by Delta's OPTIMIZE."""
WHOLE_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")
"""A checkpoint of one file. delta-rs would take a part of one that has several for the whole."""


@dataclass(frozen=True)
class Kept:
    """The work done on a table: files rewritten into fewer, bytes before and after."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


def maintain_here(lake: Lake, name: str, path: str) -> Kept:
    """Maintains the table called `name`. Raises NotHereError where that is left to Spark, which may do it once more
    from the beginning; BusyTableError, and as `refuse_full_disk`."""
    folder = _writable(lake, path).folder
    with_retries(lambda: _changed(folder, _keep), f"keeping {name}")
    removed, added, grown = with_retries(lambda: _compacted(lake, path), f"optimizing {name}")
    for file in with_retries(lambda: _changed(folder, _vacuum), f"vacuuming {name}"):
        (folder / file).with_name(f".{Path(file).name}.crc").unlink(missing_ok=True)  # Hadoop's checksum
    _clean_log(folder)
    table = table_here(lake, path)
    files, size = len(table.files), sum(table.sizes.values())
    return Kept(name, files + removed - added, files, size - grown, size)


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


def _compacted(lake: Lake, path: str) -> tuple[int, int, int]:
    """Puts the small files together, in their order. Returns how many files were removed and added, and by how many
    bytes the table has grown."""
    folder = _writable(lake, path).folder
    with compacting_alone(folder, wait=True) as alone:
        refuse({"a file system without locks": not alone})
        table = _writable(lake, path)
        small = [name for name, size in table.sizes.items() if size < TARGET_BYTES]
        size = sum(table.sizes[name] for name in small)
        if len(small) < 2:
            return 0, 0, 0
        refuse_more(size, limits.COMPACTED_BYTES, "bytes of files to be put together")
        refuse_full_disk(folder, size)
        how = writer(table.none().schema, _rows_a_group(table, small))

        def compact(view: DeltaTable) -> Mapping[str, Any]:
            optimizer = view.optimize
            return optimizer.compact(target_size=TARGET_BYTES, writer_properties=how, post_commithook_properties=HOOKS)

        metrics = _changed(folder, compact)
    grown = _total_size(metrics["filesAdded"]) - _total_size(metrics["filesRemoved"])
    return metrics["numFilesRemoved"], metrics["numFilesAdded"], grown


def _rows_a_group(table: TableHere, files: list[str]) -> int:
    about = [read_metadata(table.folder / name) for name in files]
    groups = (item.row_group(at) for item in about for at in range(item.num_row_groups))
    return rows_of_group(sum(item.num_rows for item in about), sum(group.total_byte_size for group in groups))


def _total_size(metrics: str) -> int:
    return int(json.loads(metrics)["totalSize"])


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
