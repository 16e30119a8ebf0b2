"""A day's run after many daily deliveries beside one after few: what of it grows with history.

The deliveries and the first runs are outside of the timing. All in one warm session.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.measured import Measured, show
from bench.small_runs import deliver
from bench.trades import DAY, FALLING, bench_project, run_of, session, timed
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.sequence import STEPS

FEW, MANY, ROWS, COMPANIES = 10, 1_000, 958, 100
ROUNDS = 3
START = datetime(1970, 1, 1, tzinfo=UTC)


def trades_of(day: int) -> pa.Table:
    """The trades of a day, counted from 1970, in random order of their ids."""
    moments = [START + timedelta(days=day, seconds=60 * i) for i in range(ROWS)]
    return pa.table(
        {
            "event_id": [f"{(i * 7919) % ROWS:03d}-{day}" for i in range(ROWS)],
            "event_time": pa.array(moments, pa.timestamp("us", "UTC")),
            "event_type": ["Stock"] * ROWS,
            "company": [f"C{i % COMPANIES:04d}" for i in range(ROWS)],
            "price": [float(i * 31 % 101) for i in range(ROWS)],
        }
    )


def daily_history(state: Path) -> list[Measured]:
    """Median seconds of the runs of `ROUNDS` days, after those of as many."""
    spark = session()
    try:
        project = bench_project(state)
        base = run_of(spark, project, "daily", FALLING)
        create_source(base.lake, base.warehouse.source("trades"), base.contract)
        few = after(spark, base, 0, FEW)
        many = after(spark, base, FEW, MANY)
    finally:
        spark.stop()
    note = f"{many:.2f} s against {few:.2f} s, {ROWS} rows a day, wall clock"
    return [
        Measured(
            f"a day's run after {MANY:,} deliveries, of one after {FEW}", many / few, "times", 1.3, note, at_most=True
        )
    ]


def after(spark: SparkSession, base: Run, first: int, last: int) -> float:
    """Delivers the days `first` to `last` and runs the newest of them."""
    for day in range(first, last):
        deliver(base, trades_of(day), day)
    took = []
    for day in range(last - 2 * ROUNDS, last):
        run = replace(base, run_id=f"day {day}", start_us=day * DAY, end_us=(day + 1) * DAY)
        took.append(timed(lambda run=run: [step(run) for step in STEPS.values()]))  # type: ignore[misc]
    return median(took[ROUNDS:])


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(daily_history(folder / "bench" / "daily"), "daily_history")
