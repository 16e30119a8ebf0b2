"""One hot key: all events of a day are one company's, so that only time shards can spread them over the cores."""

from __future__ import annotations

import os
from pathlib import Path

from bench.measured import Measured, show
from bench.trades import FALLING, bench_project, run_of, session, timed, write_trades
from trendlake.pipelines.execute.distribute import distribute
from trendlake.pipelines.execute.shard_plan import Part, likely
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute

EVENTS = 10_000_000
HOT = FALLING | {"within": "1 hour"}
ROUNDS = 2


def time_shards(state: Path, events: int = EVENTS) -> list[Measured]:
    """Seconds of the compute step on all cores against one, the same table and the same cut's rule."""
    seconds: dict[str, float] = {}
    shards = ""
    for master in ("local[1]", "local[*]"):
        spark = session(master)
        project = bench_project(state)
        run = run_of(spark, project, "hot", HOT)
        write_trades(spark, run.warehouse.source("trades"), events, companies=1)
        check_source(run)
        seconds[master] = min([timed(lambda run=run: compute(run)) for _ in range(ROUNDS + 1)][1:])  # type: ignore[misc]
        cores = spark.sparkContext.defaultParallelism
        cut = likely(run.plan, events, run.windows, run.profile.limits.shard_rows, cores)
        if cut is not None:
            lie = distribute(run.plan, read_events(run, run.need("check_source")), [Part(run.plan, cut)])
            used = lie.select("partition").distinct().count()
            shards = f"{cut.shards} time shards in {used} partitions on {cores} cores"
        spark.stop()
    gain = seconds["local[1]"] / seconds["local[*]"]
    note = f"{events:,} events of one key in 24 windows: {seconds['local[1]']:.1f} s on one core, "
    note += f"{seconds['local[*]']:.1f} s on all; {shards}"
    return [Measured("one hot key, all cores against one", gain, "x", None, note)]


if __name__ == "__main__":
    state = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(time_shards(state / "bench" / "lake"), "time_shards")
