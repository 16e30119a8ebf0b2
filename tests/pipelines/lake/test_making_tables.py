"""A results table is made by whoever comes first, though several come at once, and never over something else."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake import warehouse
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.results.publication import create_results

pytestmark = pytest.mark.spark

SCHEMA = StructType([StructField("window_start", TimestampType()), StructField("trends", LongType())])


@pytest.mark.long
def test_a_folder_that_another_writer_has_just_made(spark: SparkSession, tmp_path: Path) -> None:
    """Delta refuses a folder that is not empty and no table yet: its first commit is waited for."""
    path = tmp_path / "results"
    path.mkdir()
    begun = path / "part-00000.tmp"
    begun.write_text("not yet")
    threading.Timer(1.0, begun.unlink).start()
    create_results(bare_lake(spark), str(path), SCHEMA)
    assert exists(bare_lake(spark), str(path))


def test_a_folder_of_something_else(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays as it is, and Delta's own words are told."""
    monkeypatch.setattr(warehouse, "ATTEMPTS", 2)
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(AnalysisException, match="Delta table"):
        create_results(bare_lake(spark), str(tmp_path), SCHEMA)
    assert (tmp_path / "letters.txt").read_text() == "dear"


def test_a_folder_that_a_killed_writer_has_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the log's folder and its first commit: the next writer makes the table all the same."""
    monkeypatch.setattr(warehouse, "ATTEMPTS", 2)
    log = tmp_path / "results" / "_delta_log"
    log.mkdir(parents=True)
    (log / ".00000000000000000000.json.7f1f.tmp").write_text('{"commitInfo"')
    create_results(bare_lake(spark), str(log.parent), SCHEMA)
    assert exists(bare_lake(spark), str(log.parent))


@pytest.mark.long
def test_rows_into_a_folder_that_a_killed_writer_has_left(spark: SparkSession, tmp_path: Path) -> None:
    """A table that its first rows make, as staging and quarantine are, is made beside what a killed writer has left."""
    rows = spark.range(3)
    for mode in ("append", "overwrite"):
        log = tmp_path / mode / "_delta_log"
        log.mkdir(parents=True)
        (log / ".00000000000000000000.json.7f1f.tmp").write_text('{"commitInfo"')
        (log.parent / "part-00000.snappy.parquet").write_text("torn")
        rows.write.format("delta").mode(mode).save(str(log.parent))
        assert spark.read.format("delta").load(str(log.parent)).count() == 3
