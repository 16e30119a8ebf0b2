"""Removing what a pattern has published, so that its next run starts from nothing.

The results table goes as a whole, with its history and its change feed. Sources, quarantine and run records stay; the
records claim nothing any more, as the table that they speak of is gone: the next run makes another one.
"""

from __future__ import annotations

import errno
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from trendlake.pipelines.errors import BusyTableError
from trendlake.pipelines.lake.lake import Lake, exists, folder_of, latest_version
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class


@dataclass(frozen=True)
class Published:
    """The loss by a reset: rows of the newest version, and how many versions there are."""

    rows: int
    versions: int


def published(lake: Lake, path: str) -> Published | None:
    """The rows and versions that `reset` would remove; None where nothing is published."""
    if not exists(lake, path):
        return None
    return Published(Table.at(lake, path).row_count, latest_version(lake, path) + 1)


def reset(lake: Lake, name: str, path: str) -> None:
    """Removes the table `name`, such as `results/rising`, at `path`.

    It is moved below the staged rows first, so that no half of a table is left where one is looked for; `maintain`
    removes what a killed reset leaves there. Raises BusyTableError where it cannot be moved; of a table on this
    machine's disk OSError, which says why.
    """
    target = f"{lake.warehouse.staged}/{name.rpartition('/')[2]}/reset/{uuid.uuid4().hex}"
    moved = _moved_here(lake, path, target)
    if moved is None or lake.started is not None:
        files, folder = folder_of(lake, path)
        removed = folder_of(lake, target)[1]
        if moved is None:
            files.mkdirs(removed.getParent())
            if not files.rename(folder, removed):
                raise BusyTableError(f"{name} cannot be moved away: {path}")
        java_class(lake.spark, DELTA_LOG).invalidateCache(lake.spark._jsparkSession, folder)
        files.delete(removed, True)
    else:
        shutil.rmtree(moved)


def _moved_here(lake: Lake, path: str, target: str) -> Path | None:
    """The place to which the folder has been moved; None unless both are on one disk of this machine. Raises OSError.
    Hadoop does not say why it moves nothing, and may copy half a table."""
    folder, removed = lake.on_disk(path), lake.on_disk(target)
    if folder is None or removed is None:
        return None
    removed.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(removed)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return None
    return removed
