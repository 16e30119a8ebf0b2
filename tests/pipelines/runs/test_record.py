"""Run records: however many there are, few files hold them, and none is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.runs import record as runs
from trendlake.pipelines.runs.record import newest_records, pattern_records, recorded
from trendlake.pipelines.runs.stage import Record

pytestmark = pytest.mark.spark

RECORDS, COMMITS = 30, 4


@pytest.mark.long
def test_records_of_a_long_history(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two writers at once too, who put files together while the other writes."""
    monkeypatch.setattr(runs, "COMMITS_A_FILE", COMMITS)
    warehouse = Warehouse(str(tmp_path))

    def write(pattern: str) -> None:
        for number in range(RECORDS):
            with recorded(Lake.of(spark, warehouse), Record(f"r{number}", pattern, "compute", rows_out=number)):
                pass

    write("first")
    assert len(table_here(bare_lake(spark), warehouse.runs).files) <= COMMITS
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("second", "third")))
    for pattern in ("first", "second", "third"):
        rows = pattern_records(Lake.of(spark, warehouse), [pattern], ("run_id", "rows_out"))
        expected = [(f"r{number}", number) for number in range(RECORDS)]
        assert sorted((row["run_id"], row["rows_out"]) for row in rows) == sorted(expected)
    newest = newest_records(Lake.of(spark, warehouse), None, 3 * RECORDS + 1) or []
    assert len(newest) == spark.read.format("delta").load(warehouse.runs).count() == 3 * RECORDS
    write("fourth")  # those two may have stood in each other's way until the end
    assert len(table_here(bare_lake(spark), warehouse.runs).files) < RECORDS
