"""Two processes, one table on this machine's disk: of commits to the same version one succeeds, and stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.spark.log_store import CLASS
from tests.conftest import CHAOS
from tests.support.commit_race import race

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]
ROUNDS = 500 if CHAOS else 150
"""Of three attempts each."""
TABLES = 14 if CHAOS else 1


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
    assert CLASS in _delegate(store, log).getClass().getName()
    assert not [name for name in (tmp_path / "table" / "_delta_log").iterdir() if name.name.endswith(".tmp")]


def _delegate(store: Any, path: Any) -> Any:
    inner = store.getDelegate(path) if hasattr(store, "getDelegate") else store
    return inner.logStoreImpl() if hasattr(inner, "logStoreImpl") else inner
