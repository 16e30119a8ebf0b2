"""Facts about one version of a Delta table: which table it is a version of, its columns, when it was committed.

Tables on this machine's disk are read in this process, others by Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from delta.tables import DeltaTable as SparkTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from trendlake.pipelines.lake.commit import time_of
from trendlake.pipelines.lake.here.log import Action, commit_actions, folder_on_disk, opened
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake, exists, latest_version, read_at
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class

COMMIT_INFO = '"commitInfo"'


@dataclass(frozen=True)
class TableVersion:
    """`table_id`: as of `table_id`; `schema`: the columns."""

    version: int
    schema: StructType
    table_id: str | None


def newest(lake: Lake, path: str) -> TableVersion | None:
    """The newest version of the table at `path`, wherever that is; None where there is no table."""

    def here() -> TableVersion | None:
        table = table_here(lake, path)
        return TableVersion(table.version, table.schema, table.table_id)

    def by_spark() -> TableVersion | None:
        if not exists(lake, path):
            return None
        version = latest_version(lake, path)
        return TableVersion(version, read_at(lake, path, version).schema, table_id(lake, path, version))

    return either(here, by_spark)


def schema_of(lake: Lake, path: str, version: int | None = None) -> StructType:
    """The columns of the table at `path`, which must exist, in `version`, in the newest one where that is None."""
    return Table.at(lake, path, version).schema


def table_id(lake: Lake, path: str, version: int | None = None) -> str | None:
    """The id (`metadata.id`) of the Delta table at `path` as of `version`, of the newest one where it is None. A table
    that was dropped and made again has another id; a copy of its folder has the same. None where there is no such
    table, or no such version of it."""

    def here() -> str | None:
        with opened(folder_on_disk(lake, path), version) as table:
            return str(table.metadata().id)

    return either(here, lambda: _table_id_by_spark(lake, path, version))


def _table_id_by_spark(lake: Lake, path: str, version: int | None) -> str | None:
    if not exists(lake, path):
        return None
    log = java_class(lake.spark, DELTA_LOG).forTable(lake.spark._jsparkSession, path)
    none = java_class(lake.spark, "scala.Option").empty()
    snapshot = log.update(False, none, none)
    if version is not None and version != snapshot.version():
        if version > snapshot.version():
            return None
        try:
            snapshot = log.getSnapshotAt(version, none, none, False)
        except (PySparkException, Py4JJavaError):  # its log entries have been cleaned away
            return None
    return str(snapshot.metadata().id())


def creation_time(lake: Lake, path: str) -> datetime | None:
    """When the table at `path` was made, by its metadata; a copy of its folder says the same. None where the metadata
    does not have it, or there is no table."""

    def here() -> int | None:
        with opened(folder_on_disk(lake, path)) as table:
            created: int | None = table.metadata().created_time
            return created

    def by_spark() -> int | None:
        if not exists(lake, path):
            return None
        none = java_class(lake.spark, "scala.Option").empty()
        log = java_class(lake.spark, DELTA_LOG).forTable(lake.spark._jsparkSession, path)
        created = log.update(False, none, none).metadata().createdTime()
        return int(created.get()) if created.isDefined() else None

    milliseconds = either(here, by_spark)
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def changes_rows(lake: Lake, path: str, version: int) -> bool:
    """Whether the commit of a version may have changed rows of the table at `path`: it adds rows or removes files, and
    not only to arrange the same rows in other files. True where its log entry can't be read."""

    def by_spark() -> list[Action]:
        try:
            lines = lake.spark.read.text(f"{path}/_delta_log/{version:020d}.json").collect()
        except PySparkException:
            return [{"cdc": {}}]
        return [json.loads(row[0]) for row in lines]

    return any(map(_changes_rows, either(lambda: commit_actions(folder_on_disk(lake, path), version), by_spark)))


def _changes_rows(action: Mapping[str, Any]) -> bool:
    if "cdc" in action:
        return True
    file = action.get("add") or action.get("remove")
    if file is None or not file.get("dataChange", True):
        return False
    return "remove" in action or json.loads(file.get("stats") or "{}").get("numRecords") != 0


def commit_time(lake: Lake, path: str, version: int) -> int | None:
    """When a version of the table at `path` was committed, microseconds since the epoch; None where its log no longer
    tells. By what the entry says of itself (`commits.time_of`), which stays with a copy; only where that says nothing
    by the time of its file."""
    entry, folder = f"{version:020d}.json", lake.on_disk(path)
    if folder is None:
        return _commit_time_by_spark(lake, path, version, entry)
    file = folder / "_delta_log" / entry
    try:
        with file.open(encoding="utf-8") as lines:
            time = _time_of(lines)
        return file.stat().st_mtime_ns // 1_000_000 * 1000 if time is None else time
    except FileNotFoundError:
        return None


def _commit_time_by_spark(lake: Lake, path: str, version: int, entry: str) -> int | None:
    try:
        lines = lake.spark.read.text(f"{path}/_delta_log/{entry}").where(
            sf.substring("value", 1, 40).contains(COMMIT_INFO)
        )
        time = _time_of(row[0] for row in lines.collect())
    except PySparkException:  # there is no such entry
        return None
    if time is not None:
        return time
    times = SparkTable.forPath(lake.spark, path).history().where(sf.col("version") == version)
    rows = times.select(sf.unix_micros("timestamp")).collect()
    return int(rows[0][0]) if rows else None


def _time_of(lines: Iterable[str]) -> int | None:
    """The time that an entry's own lines tell, microseconds."""
    for line in lines:
        if COMMIT_INFO in line[:40]:
            return time_of(json.loads(line)["commitInfo"])
    return None
