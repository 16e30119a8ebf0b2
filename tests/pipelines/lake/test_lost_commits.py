"""A commit that is not in the log, though the log store said so, is noticed and made again; and when commits were made
is known in a copy of the table too."""

from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake.table import TableMerger
from pyspark.sql import DataFrameWriter, SparkSession

from tests.pipelines.revision.test_rewrite import Results, bag, row, table_of
from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake import commits, limits
from trendlake.pipelines.lake.commits import known_commits
from trendlake.pipelines.lake.here import write
from trendlake.pipelines.lake.warehouse import with_retries
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.results.history import version_of

pytestmark = pytest.mark.spark


def replaced(path: str) -> None:
    """What another process does that finds no entry, and renames its own into place after ours: its commit of no rows
    has our version."""
    log = Path(path) / "_delta_log"
    newest = max(log.glob("[0-9]*.json"))
    moment = time.time_ns() // 1_000_000
    info = {"timestamp": moment, "operation": "WRITE", "engineInfo": "another"}
    newest.write_text(json.dumps({"commitInfo": info}) + "\n")
    for checksum in (log / f"{newest.stem}.crc", log / f".{newest.name}.crc"):
        checksum.unlink(missing_ok=True)


@pytest.mark.long
@pytest.mark.parametrize("rows", [3, limits.QUARANTINED + 1])
def test_quarantined_rows_are_written_again(spark: SparkSession, tmp_path: Path, rows: int, monkeypatch: Any) -> None:
    """Once: a third write finds them there. By a file of this process, and by Spark."""
    path, losses = str(tmp_path / "quarantine"), [1]
    spark.range(1).write.format("delta").save(path)
    place, name = (write, "write_deltalake") if rows <= limits.QUARANTINED else (DataFrameWriter, "save")
    real = getattr(place, name)

    def save(*args: Any, **named: Any) -> Any:
        done = real(*args, **named)
        if losses:
            replaced(path)
            losses.pop()
        return done

    monkeypatch.setattr(place, name, save)
    bad = spark.range(5, 8)
    for _ in range(2):
        with_retries(
            lambda: q.write_quarantine(bare_lake(spark), bad, path, run_id="r", source_version=1, key="k", rows=rows),
            "writing",
        )
        assert not losses
        assert sorted(row[0] for row in spark.read.format("delta").load(path).collect()) == [0, 5, 6, 7]


@pytest.mark.long
def test_small_revision_is_not_taken_as_published(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """The caller takes its difference anew, and publishes it under the same number."""
    lake = Results(spark, tmp_path)
    lake.write([row(1)])
    real, losses = TableMerger.execute, [1]

    def execute(merge: TableMerger) -> Any:
        done = real(merge)
        if losses:
            replaced(lake.path)
            losses.pop()
        return done

    monkeypatch.setattr(TableMerger, "execute", execute)
    wanted = [row(1, real=2.0), row(2)]
    note = lake.note()
    assert lake.rewrite(wanted).commit(note) is None
    assert lake.rows() == bag(table_of([row(1)]))
    assert lake.rewrite(wanted).commit(note) is not None
    assert lake.rows() == bag(table_of(wanted))


def test_times_are_those_of_the_original_in_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    """`cp -r` sets all files to now. The versions of a time are as before."""
    lake, moments = Results(spark, tmp_path), []
    for number in range(3):
        lake.write([row(number)])
        time.sleep(0.05)
        moments.append(datetime.now(UTC))
        time.sleep(0.05)
    copy = str(tmp_path / "copy")
    shutil.copytree(lake.path, copy, copy_function=shutil.copyfile)
    assert [version_of(bare_lake(spark), lake.path, moment.isoformat()) for moment in moments] == [1, 2, 3]
    assert [version_of(bare_lake(spark), copy, moment.isoformat()) for moment in moments] == [1, 2, 3]
    assert [commit.at for commit in known_commits(bare_lake(spark), copy)] == [
        commit.at for commit in known_commits(bare_lake(spark), lake.path)
    ]


class Behind(datetime):
    """A clock that is an hour behind."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) - timedelta(hours=1)


def test_a_clock_that_is_behind(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is not before the one that it follows. Another program's metadata is no note of ours."""
    lake = Results(spark, tmp_path)
    lake.write([row(1)])
    monkeypatch.setattr(commits, "datetime", Behind)
    lake.bring([row(2)])
    monkeypatch.undo()
    now = datetime.now(UTC)
    history = known_commits(bare_lake(spark), lake.path)
    assert [commit.version for commit in history] == [2, 1, 0]
    assert history[0].at == history[1].at
    assert version_of(bare_lake(spark), lake.path, now.isoformat()) == 2
    rows = spark.createDataFrame(table_of([row(3)]))
    rows.write.format("delta").mode("append").option("userMetadata", '{"at": 5, "stage": 7}').save(lake.path)
    newest = known_commits(bare_lake(spark), lake.path)[0]
    assert newest.at is not None
    assert newest.at > now - timedelta(seconds=1)
