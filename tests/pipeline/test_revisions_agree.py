"""The promise of revising: whatever happens to the source, and whenever it is revised, the results are those of a full
recomputation at that version, and their change feed, replayed from nothing, gives them again.

`TRENDLAKE_CHAOS` says how many histories are tried for each pattern; `make chaos` tries many.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipelines.names import column
from pipelines.steps.revise import revise
from pipelines.steps.run import Run
from pipelines.warehouse import latest_version, read_at
from tests.pipeline.flights import all_steps, renamed
from tests.pipeline.signals import PATTERNS, Signals, batch, change, in_order, recomputed, signals
from tests.property.profile import CI

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HISTORIES = int(os.environ.get("TRENDLAKE_CHAOS", "1"))
FIRST_DAY, LAST_DAY = 0.5, 2.5
"""The first half day and the last are not asked for: what happens there is not published."""


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(CI, max_examples=HISTORIES, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_a_revision_is_a_recomputation(spark: SparkSession, pattern: str, seed: int) -> None:
    """Random events, a run, and changes of every sort, revised after some of them."""
    rng = random.Random(f"{pattern} {seed}")
    with TemporaryDirectory() as folder:
        lake = signals(spark, Path(folder) / "project", PATTERNS[pattern])
        lake.insert(batch(rng, 40))
        run = lake.run(FIRST_DAY, LAST_DAY, "first")
        all_steps(run)
        agree(lake, run)
        for number in range(rng.randrange(2, 4)):
            done = [change(rng, lake) for _ in range(rng.randrange(1, 4))]
            record = revise(renamed(run, f"revision {number}"))
            note(f"{done}: {record.rows_inserted}, {record.rows_updated}, {record.rows_deleted}")
            agree(lake, run)
        replayed(lake, run)


def agree(lake: Signals, run: Run) -> None:
    frame = lake.spark.read.format("delta").load(lake.warehouse.results(run.name))
    rows = in_order(frame.select(*map(column, run.plan.result_schema.names)).toArrow().to_pylist(), run)
    assert rows == recomputed(run, lake.version(), run.windows)


def replayed(lake: Signals, run: Run) -> None:
    """Every change of the results since there were none, one after another."""
    path = lake.warehouse.results(run.name)
    newest = latest_version(lake.spark, path)
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
    names = [name for name in feed.columns if not name.startswith("_c")]
    table: dict[Any, Any] = {}
    for version in range(newest + 1):
        steps = feed.where(sf.col("_commit_version") == version).collect()
        for row in sorted(steps, key=lambda row: row["_change_type"] not in ("delete", "update_preimage")):
            key = tuple(str(row[name]) for name in run.plan.key)
            if row["_change_type"] in ("delete", "update_preimage"):
                assert table.pop(key) == [row[name] for name in names]
            else:
                assert key not in table
                table[key] = [row[name] for name in names]
    there = read_at(lake.spark, path, newest).select(*map(column, names)).collect()
    assert sorted(table.values(), key=str) == sorted((list(row) for row in there), key=str)
