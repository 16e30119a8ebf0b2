"""The warehouse: the paths of tables, their versions, and the retry that concurrent writers need."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta.tables import DeltaTable, DeltaTableBuilder
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from trendlake.pipelines.errors import BusyTableError, NotOursError, SourceMissingError
from trendlake.pipelines.lake.log_cache import newest_commit
from trendlake.pipelines.project.lineage_settings import Lineage
from trendlake.pipelines.project.paths import PUBLISHED, Project, upstream
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.table_names import QUARANTINE, shared_table
from trendlake.pipelines.spark.jvm import java_class
from trendlake.pipelines.spark.on_demand import SessionOnDemand


class OvertakenError(Exception):
    """Another publication came first; Delta skipped the write."""


CONFLICTS = (
    OvertakenError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
"""Another writer came first. In Python, DeltaConcurrentModificationException is not the others' base."""
ATTEMPTS = 12
KEPT = {"delta.logRetentionDuration": "interval 365 days", "delta.deletedFileRetentionDuration": "interval 365 days"}
"""A past answer can be read again, and the changes of a source followed, for a year."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Warehouse:
    """Paths of the tables under `root`, a path or URI without a slash at its end; `lineage`: the receiver of events
    about the tables that runs read and write, None for none; `elsewhere`: the places of tables of sources that other
    programs write; `project`: whose contracts say which quarantines there are, and whose pattern files say which
    results tables have other names than their patterns; None where no project is asked about."""

    root: str
    lineage: Lineage | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict, hash=False)
    project: Project | None = None
    _tables: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, profile: Profile, project: Project) -> Warehouse:
        return cls(profile.warehouse_of(project), profile.lineage_of(project), profile.sources_of(project), project)

    @property
    def runs(self) -> str:
        return f"{self.root}/trendlake_runs"

    def source(self, name: str) -> str:
        """The table of a source. Raises ProjectError where it would be another source's quarantine, or the other way
        round: neither is read or written then."""
        self._refuse_shared(name)
        if name in self.elsewhere:
            return self.elsewhere[name]
        pattern = upstream(name)
        return f"{self.root}/sources/{name}" if pattern is None else self.results(pattern)

    def missing(self, source: str) -> SourceMissingError:
        """The error for a source whose table is missing, with a hint how to create it."""
        name, path = upstream(source), self.source(source)
        if source in self.elsewhere:
            hint = "so says `sources` of the profile: is it a Delta table, and can it be reached?"
            return SourceMissingError(f"the table of the source '{source}' is not at {path}", hint=hint)
        hint = f"run `trendlake ingest {source}`" if name is None else f"run `trendlake run {name}` first"
        return SourceMissingError(f"the source '{source}' is not in the warehouse: {path}", hint=hint)

    def refuse_foreign(self, name: str) -> None:
        """Raises NotOursError for a source whose table other programs write."""
        if name in self.elsewhere:
            raise NotOursError(
                f"the table of '{name}' is written by other programs, says the profile: {self.elsewhere[name]}",
                hint="change it as it is always changed, then `trendlake revise` the patterns that read it",
            )

    def quarantine(self, name: str) -> str:
        """The table of a source's rows that break its contract. Raises ProjectError as `source`."""
        self._refuse_shared(name)
        return f"{self.root}/sources/{name}{QUARANTINE}"

    def _refuse_shared(self, name: str) -> None:
        error = self.project and shared_table(name, self.project.contracts, self.elsewhere)
        if error:
            raise error

    def table_of(self, pattern: str) -> str:
        """The name of the results table of a pattern. It stays as it was when this object was first asked: a file that
        is edited while a run goes on does not send its rows elsewhere."""
        if pattern not in self._tables:
            self._tables[pattern] = (self.project and self.project.table_of(pattern)) or pattern
        return self._tables[pattern]

    def results(self, pattern: str) -> str:
        """The results table of a pattern."""
        return self.results_table(self.table_of(pattern))

    def results_table(self, table: str) -> str:
        """The results table of that name."""
        return f"{self.root}/{PUBLISHED}{table}"

    @property
    def staged(self) -> str:
        """Holds `staging` of every pattern and run."""
        return f"{self.root}/staging"

    def staging(self, pattern: str, run_id: str) -> str:
        return f"{self.staged}/{pattern}/{folder_name(run_id)}"


def folder_name(run_id: str) -> str:
    """A run id as the name of a folder below another: colons and the like are no part of Hadoop's paths, `..` is the
    folder above, and what begins with _ or . is hidden from Spark."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", run_id)
    if plain == run_id and len(plain) <= 100 and plain.strip(".") and not plain.startswith(("_", ".")):
        return plain
    return f"{plain[:100].lstrip('._') or 'run'}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}"


def on_disk(spark: SparkSession, path: str) -> Path | None:
    """The place of Spark's `path` in this machine's file system; None where it is in another. A session's file systems
    stay as they are: its answer for a folder is true of all paths in it."""
    if isinstance(spark, SessionOnDemand):
        if (certain := spark.folder_on_disk(path)) is not None:
            return certain
        return _on_disk_by_hadoop(spark, path)
    below = _BELOW.fullmatch(path)
    if below is None:
        return _on_disk_by_hadoop(spark, path)
    folders, (folder, name) = _FOLDERS.setdefault(spark, {}), below.groups()
    if folder not in folders:
        folders[folder] = _on_disk_by_hadoop(spark, folder)
    parent = folders[folder]
    return None if parent is None else parent / name


_FOLDERS: WeakKeyDictionary[SparkSession, dict[str, Path | None]] = WeakKeyDictionary()
_BELOW = re.compile(r"(.*[^/:])/(\w[\w\-.]*)", re.ASCII)
"""A folder and a name in it that Hadoop takes as they are."""


def _on_disk_by_hadoop(spark: SparkSession, path: str) -> Path | None:
    files, folder = folder_of(spark, path)
    uri = files.makeQualified(folder).toUri()
    return Path(uri.getPath()) if uri.getScheme() == "file" else None


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a Delta table is at `path`. To Delta a folder of a table is that table too, in some of its answers, and a
    part of it in others."""
    if _newest_on_disk(spark, path) is not None:
        return True
    place = on_disk(spark, path)
    if place is not None and not (place / "_delta_log").is_dir():
        return False
    files, folder = folder_of(spark, path)
    return bool(files.exists(folder.suffix("/_delta_log"))) and bool(DeltaTable.isDeltaTable(spark, path))


def _newest_on_disk(spark: SparkSession, path: str) -> int | None:
    """The newest version whose commit is in the log of a table on this machine's disk, as Delta finds it; None where
    there is no such table."""
    folder = on_disk(spark, path)
    try:
        return None if folder is None else newest_commit(f"{folder}/_delta_log")
    except OSError:
        return None


def latest_version(spark: SparkSession, path: str) -> int:
    """The newest committed version of the table at `path`."""
    version = _newest_on_disk(spark, path)
    if version is not None:
        return version
    return int(DeltaTable.forPath(spark, path).history(1).select("version").collect()[0][0])


def read_at(spark: SparkSession, path: str, version: int) -> DataFrame:
    """The table at `path` as it was at `version`."""
    return spark.read.format("delta").option("versionAsOf", version).load(path)


def read_if_there(spark: SparkSession, path: str) -> DataFrame | None:
    return spark.read.format("delta").load(path) if exists(spark, path) else None


BEING_MADE = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND")
"""Delta's errors while another writer has made the table's folder and not yet its first commit; and for good, where the
folder holds something else."""


def with_retries(action: Callable[[], Result], what: str) -> Result:
    """`action`, again while other writers get in between. Raises BusyTableError after the last attempt, or Delta's own
    error where a table cannot be made because its folder holds something else."""
    for attempt in range(ATTEMPTS):
        try:
            return action()
        except CONFLICTS as error:
            last: Exception = error
        except AnalysisException as error:
            if not any(name in str(error) for name in ("DELTA_TABLE_ALREADY_EXISTS", *BEING_MADE)):
                raise
            last = error
        time.sleep(random.uniform(0.1, 0.3) * min(2**attempt, 20))
    if any(name in str(last) for name in BEING_MADE):
        raise last
    raise BusyTableError(f"{what}: other writers changed the table at each of {ATTEMPTS} attempts") from last


def create(spark: SparkSession, path: str, builder: DeltaTableBuilder, what: str) -> None:
    """Make a table at `path`, if there is none yet, while others may do the same.

    Delta makes the folder of the log first and then refuses folders that are not empty: whoever is killed between the
    two leaves a folder in which no table can be made. It is cleared away once its first commit has been waited for
    in vain. Raises as `with_retries`.
    """
    try:
        with_retries(builder.execute, what)
    except AnalysisException:
        if not _begun_and_left(spark, path):
            raise
        files, folder = folder_of(spark, path)
        files.delete(folder, True)
        with_retries(builder.execute, what)


def _begun_and_left(spark: SparkSession, path: str) -> bool:
    """Whether there is nothing but a log without a commit in it."""
    files, folder = folder_of(spark, path)
    if not files.exists(folder) or [item.getPath().getName() for item in files.listStatus(folder)] != ["_delta_log"]:
        return False
    names = [item.getPath().getName() for item in files.listStatus(folder.suffix("/_delta_log"))]
    return not any(re.fullmatch(r"\d{20}\..*", name) for name in names)


def folder_of(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The file system of `path`, and it as Hadoop's path."""
    folder = java_class(spark, "org.apache.hadoop.fs.Path")(path)
    return folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), folder
