"""One hot key: its events are spread over the workers by time, and the rows are those of one shard."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from bench.trades import FALLING, run_of, write_trades
from tests.support.engines import differences, from_table
from tests.support.worked_cases import CHECKED
from trendlake.pipelines.execute.shard_assignment import place
from trendlake.pipelines.execute.shard_plan import Cut, likely
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.results.computation import computed
from trendlake.pipelines.results.source_events import read_events

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.repeats]

EVENTS = 300_000


@pytest.mark.parametrize(("slide", "shards"), [("1 hour", 6), ("20 minutes", 2)])
def test_time_shards_give_the_rows_of_one_shard(spark: SparkSession, project: Project, slide: str, shards: int) -> None:
    """300,000 events of one company, windows side by side and overlapping (where each shard's events beside its own are
    read twice, so that there is one a core): the shares are even, no row differs."""
    run = run_of(spark, project, "hot", FALLING | {"within": "1 hour", "slide": slide})
    write_trades(spark, run.warehouse.source("trades"), EVENTS, companies=1)
    events = read_events(run, CHECKED)
    cut = likely(run.plan, EVENTS, run.windows, run.profile.limits.shard_rows, cores=2)
    assert cut is not None
    assert (cut.shards, cut.partitions) == (shards, 6)
    shares = np.bincount(place(run.plan, cut, events.toArrow()).partition) / EVENTS
    shares = shares[shares > 0]
    assert len(shares) == shards
    assert shares.min() > 0.6 / shards
    assert shares.max() < 1.5 / shards
    whole = from_table(computed(run, events, Cut(run.windows, len(run.windows))).toArrow())
    spread = from_table(computed(run, events, cut).toArrow())
    assert len(whole) == len(run.windows)
    assert differences(whole, spread, ["company"]) == []
