"""A Spark session that starts when it is first needed.

Commands about tables on the disk of this machine mostly need none: their rows are in a few files, and Java
takes seconds to start. They pass this object on as the session. Code that reads files asks it for the place of a path;
any other use of it starts Spark.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Any, cast

from pyspark.sql import SparkSession

from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import SPARK_PROPERTIES, Profile
from trendlake.pipelines.project.stores import refuse_unsafe_store
from trendlake.pipelines.spark.session import start_session

ELSEWHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT", SPARK_PROPERTIES)
"""Variables under which Spark may read settings that give a plain path another file system."""


class SessionOnDemand:
    """Stands for the session of `project` and `profile`; its attributes are those of the session, which the first
    of them starts. Raises what `start_session` raises, then."""

    def __init__(self, project: Project, profile: Profile, app: str, *, writes: bool) -> None:
        self._project, self._profile, self._app, self._writes = project, profile, app, writes
        self._session: SparkSession | None = None
        self._lock = Lock()

    @property
    def started(self) -> bool:
        return self._session is not None

    def folder_on_disk(self, path: str) -> Path | None:
        """The place of Spark's `path` in this machine's file system, if that is certain without asking Spark."""
        file_systems = any(name.startswith(("spark.hadoop.", "fs.")) for name in self._profile.spark)
        other_machines = self._profile.master is None or self._profile.on_cluster
        if file_systems or other_machines or any(map(os.environ.get, ELSEWHERE)) or not path.startswith("/"):
            return None
        return Path(path)

    def stop(self) -> None:
        """Ends the session, if there is one."""
        if self._session is not None:
            self._session.stop()
            self._session = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:  # several threads may need it first
            if self._session is None:
                self._session = start_session(self._project, self._profile, self._app, writes=self._writes)
        return getattr(self._session, name)


def has_ended(spark: SparkSession) -> bool:
    """Whether the session is of no use any more, such as after Java was killed. One that has not been needed has not
    ended, and is not started to be asked."""
    if isinstance(spark, SessionOnDemand) and not spark.started:
        return False
    return spark.sparkContext._jsc is None


def session_on_demand(project: Project, profile: Profile, app: str, *, writes: bool = False) -> SparkSession:
    """`SessionOnDemand`, under the type of what it stands for. `writes`: as of `start_session`. Raises
    UnsafeStoreError."""
    if writes:
        refuse_unsafe_store(profile, project)
    return cast(SparkSession, SessionOnDemand(project, profile, app, writes=writes))


def runs_java(spark: SparkSession) -> bool:
    """Whether there is a session already, which holds things about tables."""
    return not isinstance(spark, SessionOnDemand) or spark.started
