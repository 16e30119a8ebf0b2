"""Windows that a pattern of another kind holds back for late events: what the earlier kind has published there goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.results.test_changed_keys import DAYS, events
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree
from tests.support.signal_patterns import KEYS
from tests.support.signals import DAY_US, START_US, signals
from trendlake.pipelines.lake import limits
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark


@pytest.mark.long
@pytest.mark.parametrize("road", ["here", pytest.param("by Spark", marks=pytest.mark.chaos)])
def test_rows_of_another_kind_go(
    spark: SparkSession, tmp_path: Path, road: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last day is held back in the new form; a revision publishes it when no late event can come, and the table has
    rows of that form only."""
    if road == "by Spark":
        monkeypatch.setattr(limits, "PUBLISHED", -1)
    lake = signals(spark, tmp_path / "project", KEYS["two groups"])
    lake.insert(events())
    all_steps(lake.run(*DAYS, "first"))
    lake.edit(KEYS["matches"] + "consistency: strong\n")
    run = lake.run(*DAYS, "second")
    record = all_steps(run)
    assert record.note is not None
    assert record.note["withheld"]
    there = DeltaTable(lake.warehouse.results(run.name)).to_pyarrow_table().to_pylist()
    assert {row["plan_hash"] for row in there} == {run.plan.hash}
    lake.insert([events()[0] | {"event_id": "later", "event_time": START_US + 4 * DAY_US}])
    assert (revise(renamed(run, "late")).rows_inserted or 0) > 0
    agree(lake, run)
