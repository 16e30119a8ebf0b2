"""Files that are gone between two steps: what was staged, and a version of the source that VACUUM has removed. Nothing
is published in part, and a run from the beginning gives the right rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.steps.test_faults import event, is_right, rising
from tests.support.bare_lake import bare_lake
from tests.support.flights import all_steps
from tests.support.reading import stored
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import IN_DRIVER, IN_WORKERS, Signals, signals
from trendlake.pipelines.errors import FileMissingError, StagedLostError
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.lake.road import On
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.results.staging import staged_folder
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.session import quiet
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish

pytestmark = pytest.mark.spark

DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a file is gone": lambda folder: next(folder.glob("*.parquet")).unlink(),
    "a file is empty": lambda folder: next(folder.glob("*.parquet")).write_bytes(b""),
    "the folder is gone": shutil.rmtree,
}


def lake_of(spark: SparkSession, folder: Path, profile: Profile = IN_DRIVER) -> Signals:
    """A day of events, published."""
    lake = signals(spark, folder / "project", PATTERNS["plain"], profile=profile)
    lake.insert(rising(0, 20))
    all_steps(lake.run(0, 1, "first"))
    lake.insert([event("s", 2.5, 9, place="s"), event("t", 3.5, 8, place="s")])
    return lake


def staged(run: Run) -> Path:
    return Path(staged_folder(run, int(run.need("compute").staged_version)))


@pytest.mark.long
@pytest.mark.parametrize("on", [None, "spark"])
def test_staged_rows_that_are_gone(spark: SparkSession, tmp_path: Path, on: On | None) -> None:
    """They are not taken for windows without rows: check_results and publish say what is missing, and the results stay
    as they are. By Spark too."""
    lake = lake_of(spark, tmp_path)
    path = lake.warehouse.results("watched")
    before, version = stored(path), latest_version(bare_lake(spark), path)
    for name, damage in DAMAGES.items():
        run = replace(lake.run(0, 1, name), on=on)
        check_source(run), compute(run), check_results(run)
        damage(staged(run))
        for step in (check_results, publish):
            run.records.clear()
            with quiet(spark), pytest.raises((StagedLostError, FileMissingError), match="staging/"):
                step(run)
        assert latest_version(bare_lake(spark), path) == version
    assert stored(path).equals(before)
    all_steps(lake.run(0, 1, "again"))
    is_right(lake, lake.run(0, 1, "again"))


@pytest.mark.long
def test_vacuum_between_two_steps(spark: SparkSession, tmp_path: Path) -> None:
    """The version that check_source has pinned is gone: the error names VACUUM, and the run that reads the newest."""
    lake = lake_of(spark, tmp_path, IN_WORKERS)
    run = lake.run(0, 1, "second")
    check_source(run)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table = DeltaTable.forPath(spark, lake.source)
    table.optimize().executeCompaction()
    table.vacuum(0)
    with quiet(spark), pytest.raises(FileMissingError, match="VACUUM") as error:
        compute(run)
    assert str(error.value.hint).startswith("run `trendlake run watched` for the same interval")
    all_steps(lake.run(0, 1, "third"))
    is_right(lake, lake.run(0, 1, "third"))
