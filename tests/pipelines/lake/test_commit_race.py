"""Two processes, one table on this machine's disk: of commits to the same version one succeeds, and stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.support.commit_race import race
from trendlake.pipelines.spark.disk_classes import LOG_STORE

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]
ROUNDS = 500 if CHAOS else 150
"""Of three attempts each."""
TABLES = 14 if CHAOS else 1


@pytest.mark.long
@pytest.mark.parametrize("table", range(TABLES))
def test_no_commit_is_lost(tmp_path: Path, table: int) -> None:
    """Two JVMs and delta-rs commit each version at the same moment: one of them succeeds, and its entry is in the
    log."""
    done = race(tmp_path, ROUNDS)
    assert not done.lost
    assert sorted(version for versions in done.committed.values() for version in versions) == sorted(done.log)
    assert len(done.log) == ROUNDS
    assert len(set(done.log.values())) > 1, "they were not at it at the same time"


def test_session_uses_the_log_store(spark: SparkSession, tmp_path: Path) -> None:
    """Delta hands log entries of local tables to it."""
    path = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(path)
    java: Any = spark.sparkContext._jvm
    store = java.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path).store()
    log = java.org.apache.hadoop.fs.Path(f"file:{path}/_delta_log")
    assert LOG_STORE in _delegate(store, log).getClass().getName()
    assert not [name for name in (tmp_path / "table" / "_delta_log").iterdir() if name.name.endswith(".tmp")]


@pytest.mark.long
@pytest.mark.parametrize("name", ["a table", "100%25 ä"])
def test_lists_the_log_as_hadoop_does(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The same files in the same order, from any name on; a log that is not there is refused."""
    path = str(tmp_path / name)
    for _ in range(12):
        spark.range(1).write.format("delta").mode("append").save(path)
    java: Any = spark.sparkContext._jvm
    log = java.org.apache.hadoop.fs.Path(path, "_delta_log")
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    ours, hadoops = (_by_class(java, name, conf) for name in (LOG_STORE, "io.delta.storage.HDFSLogStore"))
    listings = []
    for first in (f"{0:020d}.", f"{10:020d}.checkpoint.parquet", f"{11:020d}.json", f"{99:020d}.", "_"):
        start = java.org.apache.hadoop.fs.Path(log, first)
        listings.append([_statuses(store.listFrom(start, conf)) for store in (ours, hadoops)])
    assert all(mine == theirs for mine, theirs in listings)
    # The last checkpoint and the folder for commits that are not made yet come after all versions.
    assert [len(mine) for mine, _ in listings][2:] == [3, 2, 2]
    with pytest.raises(Exception, match="does not exist"):
        ours.listFrom(java.org.apache.hadoop.fs.Path(str(tmp_path / "none"), "a"), conf)


def _by_class(java: Any, name: str, conf: Any) -> Any:
    loader = java.Thread.currentThread().getContextClassLoader()
    kinds = java.java.lang.reflect.Array.newInstance(java.Class.forName("java.lang.Class"), 1)
    kinds[0] = conf.getClass()
    arguments = java.java.lang.reflect.Array.newInstance(java.Class.forName("java.lang.Object"), 1)
    arguments[0] = conf
    return java.Class.forName(name, True, loader).getConstructor(kinds).newInstance(arguments)


def _statuses(iterator: Any) -> list[tuple[str, int, int, bool]]:
    listed = []
    while iterator.hasNext():
        one = iterator.next()
        listed.append((str(one.getPath()), one.getLen(), one.getModificationTime(), one.isDirectory()))
    return listed


def _delegate(store: Any, path: Any) -> Any:
    inner = store.getDelegate(path) if hasattr(store, "getDelegate") else store
    return inner.logStoreImpl() if hasattr(inner, "logStoreImpl") else inner
