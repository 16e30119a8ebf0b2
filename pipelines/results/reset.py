"""Removing what a pattern has published, so that its next run starts from nothing.

The results table goes as a whole, with its history and its change feed. Sources, quarantine and run records stay; the
records claim nothing any more, as the table that they speak of is gone: the next run makes another one.
"""

from __future__ import annotations

import errno
import uuid
from dataclasses import dataclass

from pyspark.sql import SparkSession

from trendlake.pipelines.errors import BusyTableError
from trendlake.pipelines.lake.warehouse import Warehouse, exists, folder_of, latest_version, on_disk
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class


@dataclass(frozen=True)
class Published:
    """The loss by a reset: rows of the newest version, and how many versions there are."""

    rows: int
    versions: int


def published(spark: SparkSession, path: str) -> Published | None:
    """The rows and versions that `reset` would remove; None where nothing is published."""
    if not exists(spark, path):
        return None
    return Published(spark.read.format("delta").load(path).count(), latest_version(spark, path) + 1)


def reset(spark: SparkSession, warehouse: Warehouse, name: str, path: str) -> None:
    """Removes the table `name`, such as `results/rising`, at `path`.

    It is moved below the staged rows first, so that no half of a table is left where one is looked for; `maintain`
    removes what a killed reset leaves there. Raises BusyTableError where it cannot be moved; of a table on this
    machine's disk OSError, which says why.
    """
    files, folder = folder_of(spark, path)
    target = f"{warehouse.staged}/{name.rpartition('/')[2]}/reset/{uuid.uuid4().hex}"
    removed = folder_of(spark, target)[1]
    if not _moved_here(spark, path, target):
        files.mkdirs(removed.getParent())
        if not files.rename(folder, removed):
            raise BusyTableError(f"{name} cannot be moved away: {path}")
    java_class(spark, DELTA_LOG).invalidateCache(spark._jsparkSession, folder)
    files.delete(removed, True)


def _moved_here(spark: SparkSession, path: str, target: str) -> bool:
    """Whether both are on one disk of this machine, and the folder has been moved. Raises OSError. Hadoop does not say
    why it moves nothing, and may copy half a table."""
    folder, removed = on_disk(spark, path), on_disk(spark, target)
    if folder is None or removed is None:
        return False
    removed.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(removed)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True
