"""Maintenance by delta-rs, in this process, does what Spark's does: the same files are left, and no row changes."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_rewrite import Results, bag, row, table_of
from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here import write as writes
from trendlake.pipelines.lake.here.log import logged_versions
from trendlake.pipelines.lake.here.maintain import Kept, maintain_here
from trendlake.pipelines.lake.here.read import CHANGE, table_here
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.maintain import maintain
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.lake.warehouse import KEPT

pytestmark = pytest.mark.spark

YEAR_AGO = time.time() - 366 * 86400


def maintained(spark: SparkSession, path: str) -> Kept:
    """In this process: what is left to Spark is an error."""
    return maintain_here(bare_lake(spark), "results/x", path)


def maintained_on_spark(spark: SparkSession, path: str, *, on_spark: bool = True) -> Kept:
    (done,) = maintain(bare_lake(spark), {"results/x": path}, on_spark=on_spark)
    return done


def history(lake: Results) -> None:
    """Appends and changes, by this process and by Spark: files, removed files, files of changes."""
    for number in range(4):
        lake.write([row(3 * number), row(3 * number + 1), row(3 * number + 2)])
    lake.bring([row(n, whole=n) for n in range(6)] + [row(n) for n in range(6, 11)])
    lake.write_by_spark([row(30), row(31)])
    DeltaTable.forPath(lake.spark, lake.path).delete("id = 'e31'")


def age(folder: Path, until: int, moment: float = YEAR_AGO) -> None:
    """Makes all that the versions before `until` have written and removed as old as `moment`."""
    for version in range(until):
        entry = folder / "_delta_log" / f"{version:020d}.json"
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            for kind, about in action.items():
                if kind == "commitInfo":
                    about["timestamp"] = int(moment * 1000)
                if kind == "remove":
                    about["deletionTimestamp"] = int(moment * 1000)
                if kind in ("add", "cdc"):
                    os.utime(folder / about["path"], (moment, moment))
        entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        for file in (folder / "_delta_log").glob(f"*{version:020d}.*"):
            os.utime(file, (moment, moment))
        for checksum in (folder / "_delta_log").glob(f".{version:020d}.json.crc"):  # of what it was before
            checksum.unlink()


def files(folder: Path) -> set[str]:
    """Data and changes that are on the disk."""
    return {
        str(file.relative_to(folder)) for file in folder.rglob("*") if "_delta_log" not in file.parts if file.is_file()
    }


def two_equal(spark: SparkSession, tmp_path: Path, until: Callable[[int], int]) -> tuple[Results, Path]:
    """A table with a history, and its copy, in which times of files are kept."""
    lake = Results(spark, tmp_path)
    history(lake)
    folder = Path(lake.path)
    age(folder, until(logged_versions(folder)[0] + 1))
    for name in ("stray.parquet", ".hidden", "_own"):  # of a writer that was killed, and no data
        (folder / name).write_text("x")
        os.utime(folder / name, (YEAR_AGO, YEAR_AGO))
    (folder / "young.parquet").write_text("x")
    return lake, Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.long
@pytest.mark.parametrize(
    "old", [pytest.param("none", marks=pytest.mark.repeats), "some", pytest.param("all", marks=pytest.mark.repeats)]
)
def test_both_roads_leave_the_same(spark: SparkSession, tmp_path: Path, old: str) -> None:
    """Rows, files, change feed and the answer, for a table whose files are old or are not."""
    lake, copy = two_equal(spark, tmp_path, lambda count: {"none": 0, "some": count - 2, "all": count}[old])
    folder, before = Path(lake.path), lake.rows()
    version = logged_versions(folder)[0]
    there = files(folder)
    local, by_spark = maintained(spark, lake.path), maintained_on_spark(spark, str(copy))
    assert (local.table, local.files_before, local.files_after, local.bytes_before) == (
        (by_spark.table, by_spark.files_before, by_spark.files_after, by_spark.bytes_before)
    )
    assert local.files_before > local.files_after == 1
    assert local.bytes_after == sum(table_here(bare_lake(spark), lake.path).sizes.values())
    assert lake.rows() == before == bag(spark.read.format("delta").load(str(copy)))
    gone, gone_there = there - files(folder), there - files(copy)
    assert gone == gone_there
    assert ("stray.parquet" in gone, "young.parquet" in gone) == (True, False)
    assert bool([name for name in gone if name.startswith("_change_data")]) == (old != "none")
    assert bool([name for name in gone if name.startswith("part-")]) == (old != "none")
    for path in (lake.path, str(copy)):
        table = table_here(bare_lake(spark), path)
        assert table.feed(["id"], version, 10).num_rows == 0
        assert len(table.files) == 1
        properties = DeltaTable.forPath(spark, path).detail().select("properties").collect()[0][0]
        assert KEPT.items() <= properties.items()
    if old == "none":
        assert bag(read_at(bare_lake(spark), lake.path, version - 2)) == bag(
            read_at(bare_lake(spark), str(copy), version - 2)
        )
    again, again_there = maintained(spark, lake.path), maintained_on_spark(spark, str(copy))
    assert (again.files_before, again.files_after) == (again_there.files_before, again_there.files_after) == (1, 1)


@pytest.mark.long
def test_the_properties_of_a_table_made_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """How long files are kept is set where it was not, and nothing else about the table changes."""
    lake = Results(spark, tmp_path)
    spark.sql(f"ALTER TABLE delta.`{lake.path}` UNSET TBLPROPERTIES ('delta.logRetentionDuration')")
    lake.write([row(1)])
    before = DeltaTable.forPath(spark, lake.path).detail().collect()[0]
    maintained(spark, lake.path)
    after = DeltaTable.forPath(spark, lake.path).detail().collect()[0]
    assert after["properties"] == before["properties"] | KEPT
    same = ("id", "minReaderVersion", "minWriterVersion", "tableFeatures", "clusteringColumns", "createdAt")
    assert [after[name] for name in same] == [before[name] for name in same]
    lake.bring([row(1, real=3.0)])
    assert lake.rows() == bag(table_of([row(1, real=3.0)]))


@pytest.mark.long
@pytest.mark.parametrize("cleaned", ["true", "false"])
def test_the_log(spark: SparkSession, tmp_path: Path, cleaned: str) -> None:
    """Old entries go once there is a checkpoint after them, unless the table says that they stay; young versions can be
    read, and the table as ever."""
    lake = Results(spark, tmp_path)
    spark.sql(f"ALTER TABLE delta.`{lake.path}` SET TBLPROPERTIES ('delta.enableExpiredLogCleanup' = '{cleaned}')")
    for number in range(6):
        lake.write([row(number)])
    folder, log = Path(lake.path), Path(lake.path) / "_delta_log"
    maintained(spark, lake.path)
    assert logged_versions(folder)[-1] == 0
    newest = logged_versions(folder)[0]
    for number in range(6, 9):
        lake.write([row(number)])
    age(folder, newest + 2)
    maintained(spark, lake.path)
    oldest = newest if cleaned == "true" else 0
    assert logged_versions(folder)[-1] == oldest
    if cleaned == "true":
        assert not [file.name for file in log.glob("*.crc") if file.name.lstrip(".")[:20] < f"{newest:020d}"]
    assert bag(read_at(bare_lake(spark), lake.path, newest + 2)) == bag(table_of([row(n) for n in range(8)]))
    lake.write([row(9)])
    assert lake.rows() == bag(table_of([row(n) for n in range(10)]))
    version = logged_versions(folder)[0]
    assert table_here(bare_lake(spark), lake.path).feed(["id"], version - 1, 10)[CHANGE].to_pylist() == ["insert"]


@pytest.mark.long
@pytest.mark.parametrize("writer", ["appends", "changes", "optimizes"])
def test_a_writer_comes_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    """Between the files being read and the commit: each row is there once, as the other writer has left it."""
    lake = Results(spark, tmp_path)
    for number in range(3):
        lake.write([row(number)])
    rows = [row(n) for n in range(3)]
    real, others = writes.AddAction, [writer]

    def meanwhile(*asked: Any) -> Any:
        if others:
            match others.pop():
                case "appends":
                    lake.write([row(7)])
                    rows.append(row(7))
                case "changes":
                    rows[1] = row(1, real=9.0)
                    lake.bring(rows)
                case "optimizes":
                    DeltaTable.forPath(spark, lake.path).optimize().executeCompaction()
        return real(*asked)

    monkeypatch.setattr(writes, "AddAction", meanwhile)
    done = maintained(spark, lake.path)
    assert not others
    assert lake.rows() == bag(table_of(rows))
    assert done.files_after == len(table_here(bare_lake(spark), lake.path).files)


@pytest.mark.long
def test_what_is_left_to_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much to be rewritten, clustered tables: nothing is done here, and then all of it."""
    lake = Results(spark, tmp_path)
    for number in range(3):
        lake.write([row(number)])
    with monkeypatch.context() as patch:
        patch.setattr(limits, "COMPACTED_BYTES", 100)
        with pytest.raises(NotHereError, match="bytes of files to be put together"):
            maintained(spark, lake.path)
        assert len(table_here(bare_lake(spark), lake.path).files) == 3
        assert maintained_on_spark(spark, lake.path, on_spark=False).files_after == 1
    clustered = str(tmp_path / "clustered")
    spark.sql(f"CREATE TABLE delta.`{clustered}` (id STRING, at TIMESTAMP) USING delta CLUSTER BY (at)")
    with pytest.raises(NotHereError):
        maintained(spark, clustered)
    assert maintained_on_spark(spark, clustered, on_spark=False).files_after == 0
