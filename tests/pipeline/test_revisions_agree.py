"""The promise of revising: whatever happens to the source, and whenever it is revised, the results are those of a full
recomputation at that version, and their change feed, replayed from nothing, gives them again.

`TRENDLAKE_CHAOS` says how many histories are tried for each pattern; `make chaos` tries many.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pipelines.steps.revise import revise
from tests.pipeline.flights import all_steps, renamed
from tests.pipeline.promises import HISTORIES as DONE
from tests.pipeline.promises import agree, replayed
from tests.pipeline.signals import ALWAYS, PATTERNS, batch, change, signals
from tests.property.profile import CI

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HISTORIES = int(os.environ.get("TRENDLAKE_CHAOS", "1"))
FIRST_DAY, LAST_DAY = 0.5, 2.5
"""The first half day and the last are not asked for: what happens there is not published."""


@pytest.mark.parametrize("pattern", PATTERNS if "TRENDLAKE_CHAOS" in os.environ else ALWAYS)
@settings(CI, max_examples=HISTORIES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
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
        DONE[pattern] += 1
