"""Keeping the tables of a warehouse in shape: small files made few; files that no query can need removed.

How long files are kept is the tables' own property (`warehouse.KEPT`): a revision reads the source's change feed since
the version it has last seen; `diff`, `history` and `--as-of` read old versions of the results. VACUUM removes what is
older.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from delta.tables import DeltaTable

from trendlake.pipelines.lake.here.maintain import Kept, maintain_here
from trendlake.pipelines.lake.lake import Lake, exists, folder_of
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.lake.warehouse import KEPT, with_retries
from trendlake.pipelines.progress import doing
from trendlake.pipelines.project.table_names import QUARANTINE
from trendlake.pipelines.spark.identifiers import quoted

KEEP = (
    "ALTER TABLE {table} SET TBLPROPERTIES ("
    "'delta.logRetentionDuration' = 'interval 365 days', "
    "'delta.deletedFileRetentionDuration' = 'interval 365 days')"
)
"""Sets `warehouse.KEPT`. Spark takes no parameter for the table here: its path goes in as a quoted identifier, and is
not an analyst's to choose."""


STAGED_DAYS = 30
"""How long the staged rows of an attempt are kept: for a publication to come, and to look at where a check failed. As
long kept verdicts that no run uses."""


def tables(lake: Lake, sources: list[str], patterns: list[str]) -> dict[str, str]:
    """Names and paths of the tables of sources and of patterns, those that are there and not others'."""
    wanted = {
        **{f"sources/{name}": lake.warehouse.source(name) for name in sources if name not in lake.warehouse.elsewhere},
        **{f"sources/{name}{QUARANTINE}": lake.warehouse.quarantine(name) for name in sources},
        **{f"results/{name}": lake.warehouse.results(name) for name in patterns},
        "trendlake_runs": lake.warehouse.runs,
    }
    return {name: path for name, path in wanted.items() if exists(lake, path)}


def maintain(lake: Lake, tables: dict[str, str], *, on_spark: bool = False) -> Iterator[Kept]:
    """Each table kept for as long as `KEPT` says, its small files put together (clustered tables by their columns), and
    older files removed. Safe while runs go on: no row changes, and readers and writers are not disturbed, or try
    again. Tables that this process may write need no Spark, unless `on_spark`."""
    for name, path in tables.items():
        by_spark = partial(_maintain_by_spark, lake, name, path)
        with doing(f"maintaining {name}", asked=lambda: lake.tasks):
            table = by_spark() if on_spark else either(partial(maintain_here, lake, name, path), by_spark)
        yield table


def _maintain_by_spark(lake: Lake, name: str, path: str) -> Kept:
    table = DeltaTable.forPath(lake.spark, path)
    properties = table.detail().select("properties").collect()[0][0]
    if any(properties.get(key) != value for key, value in KEPT.items()):
        with_retries(lambda: _keep(lake, path), f"keeping {name}")
    metrics = with_retries(
        lambda: table.optimize().executeCompaction().select("metrics").collect()[0][0], f"optimizing {name}"
    )
    table.vacuum()
    size = table.detail().select("numFiles", "sizeInBytes").collect()[0]
    removed, added = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    grown = metrics["filesAdded"]["totalSize"] - metrics["filesRemoved"]["totalSize"]
    return Kept(name, size[0] + removed - added, size[0], size[1] - grown, size[1])


def clear_staging(lake: Lake) -> int:
    """Removes the staged rows of attempts older than `STAGED_DAYS`; how many they were."""
    place, oldest = lake.on_disk(lake.warehouse.staged), (time.time() - STAGED_DAYS * 86400) * 1000
    if place is not None:
        expired = [attempt for attempt in place.glob("*/*/*") if attempt.stat().st_mtime * 1000 < oldest]
        for attempt in expired:
            shutil.rmtree(attempt) if attempt.is_dir() else attempt.unlink()
        return len(expired)
    files, folder = folder_of(lake, lake.warehouse.staged)
    attempts = files.globStatus(folder.suffix("/*/*/*")) or ()
    old = [folder.getPath() for folder in attempts if folder.getModificationTime() < oldest]
    for attempt in old:
        files.delete(attempt, True)
    return len(old)


def clear_verdicts(lake: Lake) -> int:
    """Removes what is kept of the judgement of sources and no run has used for `STAGED_DAYS`: of files, tables and
    contracts of before. How many files they were."""
    root = lake.on_disk(lake.warehouse.verdicts)
    if root is None:  # nothing is kept in other file systems
        return 0
    oldest, removed = time.time() - STAGED_DAYS * 86400, 0
    for file in root.glob("*/*/*"):
        with suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()
                removed += 1
    for folder in (*root.glob("*/*"), *root.glob("*")):
        with suppress(OSError):  # it holds files
            folder.rmdir()
    return removed


def _keep(lake: Lake, path: str) -> None:
    lake.spark.sql(KEEP.replace("{table}", f"delta.{quoted(path)}"))
