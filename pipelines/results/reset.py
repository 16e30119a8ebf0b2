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

from pyspark.sql import SparkSession

from trendlake.pipelines.errors import BusyTableError
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.warehouse import Warehouse, exists, folder_of, latest_version, on_disk
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class
from trendlake.pipelines.spark.on_demand import runs_java


@dataclass(frozen=True)
class Published:
    """The loss by a reset: rows of the newest version, and how many versions there are."""

    rows: int
    versions: int


def published(spark: SparkSession, path: str) -> Published | None:
    """The rows and versions that `reset` would remove; None where nothing is published."""
    if not exists(spark, path):
        return None
    return Published(Table.at(spark, path).row_count, latest_version(spark, path) + 1)


def reset(spark: SparkSession, warehouse: Warehouse, name: str, path: str) -> None:
    """Removes the table `name`, such as `results/rising`, at `path`.

    It is moved below the staged rows first, so that no half of a table is left where one is looked for; `maintain`
    removes what a killed reset leaves there. Raises BusyTableError where it cannot be moved; of a table on this
    machine's disk OSError, which says why.
    """
    target = f"{warehouse.staged}/{name.rpartition('/')[2]}/reset/{uuid.uuid4().hex}"
    moved = _moved_here(spark, path, target)
    if moved is None or runs_java(spark):
        files, folder = folder_of(spark, path)
        removed = folder_of(spark, target)[1]
        if moved is None:
            files.mkdirs(removed.getParent())
            if not files.rename(folder, removed):
                raise BusyTableError(f"{name} cannot be moved away: {path}")
        java_class(spark, DELTA_LOG).invalidateCache(spark._jsparkSession, folder)
        files.delete(removed, True)
    else:
        shutil.rmtree(moved)


def _moved_here(spark: SparkSession, path: str, target: str) -> Path | None:
    """The place to which the folder has been moved; None unless both are on one disk of this machine. Raises OSError.
    Hadoop does not say why it moves nothing, and may copy half a table."""
    folder, removed = on_disk(spark, path), on_disk(spark, target)
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
