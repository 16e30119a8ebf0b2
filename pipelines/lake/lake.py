"""The lake: the tables of a warehouse, and Spark for what only Spark does with them.

Most commands about tables on the disk of this machine need no Spark: their rows are in a few files, and Java takes
seconds to start. They are given a `Lake`, which starts Java when its `spark` is first asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Never

from delta.tables import DeltaTable
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from trendlake.pipelines.lake.log_cache import newest_commit
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.progress import Count, doing
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import SPARK_PROPERTIES, Profile
from trendlake.pipelines.project.stores import refuse_unsafe_store
from trendlake.pipelines.spark.jvm import java_class
from trendlake.pipelines.spark.session import start_session

ELSEWHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT", SPARK_PROPERTIES)
"""Variables under which Spark may read settings that give a plain path another file system."""
BELOW = re.compile(r"(.*[^/:])/(\w[\w\-.]*)", re.ASCII)
"""A folder and a name in it that Hadoop takes as they are."""


class Lake:
    """The tables of a `warehouse`, and a Spark session for what only Spark does with them."""

    def __init__(self, warehouse: Warehouse, start: Callable[[], SparkSession], *, plain_paths: bool = False) -> None:
        """`start`: gives the session when it is first needed; `plain_paths`: whether it is certain without Spark that
        an absolute path without a scheme is one of this machine's file system."""
        self.warehouse = warehouse
        self._start = start
        self._plain_paths = plain_paths
        self._session: SparkSession | None = None
        self._lock = Lock()
        self._folders: dict[str, Path | None] = {}

    @classmethod
    def of(cls, spark: SparkSession, warehouse: Warehouse) -> Lake:
        """The lake of a session that has started."""
        lake = cls(warehouse, lambda: spark)
        lake._session = spark
        return lake

    @classmethod
    def on_demand(
        cls,
        warehouse: Warehouse,
        project: Project,
        profile: Profile,
        app: str,
        *,
        writes: bool = False,
        refuse: Callable[[], Never] | None = None,
    ) -> Lake:
        """The lake of a command, which starts a session of `project` and `profile` when it is first needed, or calls
        `refuse`, which raises an error in its place. `writes`: as of `start_session`. Raises UnsafeStoreError; its
        `spark` raises what `start_session` does."""
        if writes:
            refuse_unsafe_store(profile, project)
        file_systems = any(name.startswith(("spark.hadoop.", "fs.")) for name in profile.spark)
        other_machines = profile.master is None or profile.on_cluster
        plain = not (file_systems or other_machines or any(map(os.environ.get, ELSEWHERE)))
        if refuse is not None:
            return cls(warehouse, refuse, plain_paths=plain)
        return cls(warehouse, lambda: start_session(project, profile, app, writes=writes), plain_paths=plain)

    @property
    def spark(self) -> SparkSession:
        """The session, which is started by the first who asks."""
        with self._lock:  # several threads may need it first
            if self._session is None:
                with doing("starting Spark"):
                    self._session = self._start()
            return self._session

    @property
    def started(self) -> SparkSession | None:
        """The session, if it has started."""
        return self._session

    @property
    def tasks(self) -> Count | None:
        """How many tasks of those that Spark works on are done; None where it has none, or has not started."""
        session = self._session
        java = None if session is None else session.sparkContext._jsc
        if java is None:
            return None
        try:
            tracker = java.statusTracker()
            stages = [
                info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None
            ]
            done, total = (sum(getattr(info, name)() for info in stages) for name in ("numCompletedTasks", "numTasks"))
        except Py4JError:  # it has ended meanwhile
            return None
        return Count(done, total, "tasks of Spark") if stages else None

    @property
    def ended(self) -> bool:
        """Whether Spark has started and is no more: nothing can go on."""
        return self._session is not None and self._session.sparkContext._jsc is None

    def with_new_session(self) -> Lake:
        """The same lake with a session of its own, whose settings no other code has: Delta takes the note of a commit
        from there."""
        return Lake.of(self.spark.newSession(), self.warehouse)

    def stop(self) -> None:
        """Ends the session, if there is one."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def on_disk(self, path: str) -> Path | None:
        """The place of Spark's `path` in this machine's file system; None where it is in another. A session's file
        systems stay as they are: its answer for a folder is true of all paths in it."""
        if self._plain_paths and path.startswith("/"):
            return Path(path)
        below = BELOW.fullmatch(path)
        if below is None:
            return self._on_disk_by_hadoop(path)
        folder, name = below.groups()
        if folder not in self._folders:
            self._folders[folder] = self._on_disk_by_hadoop(folder)
        parent = self._folders[folder]
        return None if parent is None else parent / name

    def needs_spark_for(self, path: str) -> bool:
        """Whether to say where Spark's `path` is would start a session."""
        return self._session is None and not (self._plain_paths and path.startswith("/"))

    def _on_disk_by_hadoop(self, path: str) -> Path | None:
        files, folder = folder_of(self, path)
        uri = files.makeQualified(folder).toUri()
        return Path(uri.getPath()) if uri.getScheme() == "file" else None


def folder_of(lake: Lake, path: str) -> tuple[Any, Any]:
    """The file system of `path`, and it as Hadoop's path."""
    folder = java_class(lake.spark, "org.apache.hadoop.fs.Path")(path)
    return folder.getFileSystem(lake.spark._jsparkSession.sessionState().newHadoopConf()), folder


def exists(lake: Lake, path: str) -> bool:
    """Whether a Delta table is at `path`. To Delta a folder of a table is that table too, in some of its answers, and a
    part of it in others."""
    if _newest_on_disk(lake, path) is not None:
        return True
    place = lake.on_disk(path)
    if place is not None and not (place / "_delta_log").is_dir():
        return False
    files, folder = folder_of(lake, path)
    return bool(files.exists(folder.suffix("/_delta_log"))) and bool(DeltaTable.isDeltaTable(lake.spark, path))


def _newest_on_disk(lake: Lake, path: str) -> int | None:
    """The newest version whose commit is in the log of a table on this machine's disk, as Delta finds it; None where
    there is no such table."""
    folder = lake.on_disk(path)
    try:
        return None if folder is None else newest_commit(f"{folder}/_delta_log")
    except OSError:
        return None


def latest_version(lake: Lake, path: str) -> int:
    """The newest committed version of the table at `path`."""
    version = _newest_on_disk(lake, path)
    if version is not None:
        return version
    return int(DeltaTable.forPath(lake.spark, path).history(1).select("version").collect()[0][0])


def read_at(lake: Lake, path: str, version: int) -> DataFrame:
    """The table at `path` as it was at `version`, as Spark reads it."""
    return lake.spark.read.format("delta").option("versionAsOf", version).load(path)
