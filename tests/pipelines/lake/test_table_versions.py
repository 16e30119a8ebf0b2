"""Which table a version is of, and when it was committed: the same in this process and by Spark, and in a copy."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.roads import not_here
from trendlake.pipelines.lake import versions as table_versions
from trendlake.pipelines.lake.here import read
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.versions import commit_time, newest, table_id

pytestmark = pytest.mark.spark


def by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the table is not on this machine's disk."""

    for module in (read, table_versions):
        monkeypatch.setattr(module, "folder_on_disk", not_here)
    monkeypatch.setattr(Lake, "on_disk", lambda *arguments: None)


@pytest.mark.long
def test_the_id_of_a_table(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays through appends, another schema and a copy; a table made anew in the same place has another."""
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    spark.range(3).write.format("delta").save(path)
    spark.range(3).selectExpr("id", "id AS other").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(path)
    shutil.copytree(path, copy)
    first = str(DeltaTable.forPath(spark, path).detail().select("id").collect()[0][0])
    asked = [(path, None), (path, 0), (path, 1), (copy, 1), (path, 2), (str(tmp_path / "none"), None)]
    local = [table_id(bare_lake(spark), *one) for one in asked]
    assert local == [first, first, first, first, None, None]
    with monkeypatch.context() as elsewhere:
        by_spark(elsewhere)
        assert [table_id(bare_lake(spark), *one) for one in asked] == local
        newest_version = newest(bare_lake(spark), path)
        assert newest_version is not None
        assert (newest_version.version, newest_version.table_id) == (1, first)
    shutil.rmtree(path)
    spark.range(1).write.format("delta").save(path)
    spark.range(1).write.format("delta").mode("append").save(path)
    second = table_id(bare_lake(spark), path, 1)
    assert second not in (None, first)
    by_spark(monkeypatch)
    assert table_id(bare_lake(spark), path, 1) == second


def test_the_time_of_a_commit(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the log entry says, whatever the time of its file; only an entry that says none has its file's."""
    path = str(tmp_path / "t")
    before = datetime.now(UTC).timestamp() * 1e6
    spark.range(3).write.format("delta").save(path)
    spark.range(3).write.format("delta").mode("append").save(path)
    log = tmp_path / "t" / "_delta_log"
    for entry in log.glob("*.json"):
        os.utime(entry, (86_400, 86_400))  # a copy that lost its times
    said = [commit_time(bare_lake(spark), path, version) for version in (0, 1)]
    assert before - 2000 <= said[0] <= said[1] <= datetime.now(UTC).timestamp() * 1e6  # type: ignore[operator]
    assert commit_time(bare_lake(spark), path, 2) is None
    first = log / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    info = next(line["commitInfo"] for line in lines if "commitInfo" in line)
    times = {}
    for keys in ({"inCommitTimestamp": 1_700_000_000_000}, {"timestamp": 1_600_000_000_000}, {}):
        commit_info = {key: value for key, value in info.items() if "imestamp" not in key} | keys
        first.write_text(
            "".join(
                json.dumps({**line, **({"commitInfo": commit_info} if "commitInfo" in line else {})}) + "\n"
                for line in lines
            )
        )
        (log / f".{first.name}.crc").unlink(missing_ok=True)
        os.utime(first, (86_400, 86_400))
        with monkeypatch.context() as elsewhere:
            times[str(keys)] = [commit_time(bare_lake(spark), path, 0)]
            by_spark(elsewhere)
            times[str(keys)] += [commit_time(bare_lake(spark), path, 0), commit_time(bare_lake(spark), path, 7)]
    micros = [1_700_000_000_000_000, 1_600_000_000_000_000, 86_400_000_000]
    assert list(times.values()) == [[one, one, None] for one in micros]
