"""Small work on small and on large tables: what a run, a delivery and a correction of few rows cost.

All in one warm session: Java compiles what it has run some hundred times, so `WARM` rounds come before those that
count. The delivery of 20,000 rows into a million is compared with Spark's own append of the same rows to a table of the
same size, which looks for no repeated keys and judges nothing.
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
from bench.trades import FALLING, bench_project, run_of, session, timed, trades
from trendlake.pipelines.ingest.deliver import create_source, ingest
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.frames import frame_of
from trendlake.pipelines.steps.sequence import STEPS

FEW, MANY, DELIVERED, COMPANIES = 12, 1_000_000, 20_000, 1_000
WARM, ROUNDS = 3, 5
START = datetime(1970, 1, 1, tzinfo=UTC)
QUERY = FALLING | {"within": "1 day"}


def events(first: int, count: int, price: float = 1.0) -> pa.Table:
    """`count` trades with the ids from `first` on, one a microsecond of the first day."""
    ids = range(first, first + count)
    return pa.table(
        {
            "event_id": [f"delivered-{i}" for i in ids],
            "event_time": pa.array([START + timedelta(microseconds=i) for i in ids], pa.timestamp("us", "UTC")),
            "event_type": ["Stock"] * count,
            "company": [f"C{i % COMPANIES:04d}" for i in ids],
            "price": [price + i for i in ids],
        }
    )


def deliver(run: Run, rows: pa.Table, number: int) -> None:
    """One delivery; raises SystemExit where not all rows were taken."""
    record = ingest(run.lake, run.contract, [rows], feed=f"feed {number}", run_id=f"bench {number}")
    if (record.rows_inserted or 0) + (record.rows_updated or 0) != rows.num_rows:
        raise SystemExit(f"a delivery of {rows.num_rows} rows was not taken whole")


def small_runs(state: Path) -> list[Measured]:
    """Median seconds of `ROUNDS`, after `WARM`."""
    spark, project = session(), bench_project(state)
    try:
        run = run_of(spark, project, "small", QUERY)
        create_source(run.lake, run.warehouse.source("trades"), run.contract)
        deliver(run, events(0, FEW), 0)
        runs, deliveries, corrections = [], [], []
        for number in range(WARM + ROUNDS):
            runs.append(timed(lambda number=number: steps(run, number)))  # type: ignore[misc]
            new, changed = events(FEW + number, 1), events(0, 1, price=2.0 + number)
            deliveries.append(timed(lambda rows=new, n=number: deliver(run, rows, 2 * n + 1)))  # type: ignore[misc]
            corrections.append(timed(lambda rows=changed, n=number: deliver(run, rows, 2 * n + 2)))  # type: ignore[misc]
        frame_of(spark, events(1, 1)).write.format("delta").mode("append").save(run.warehouse.source("trades"))
        numbers = range(WARM + ROUNDS, 2 * (WARM + ROUNDS))
        repeating = [timed(lambda number=number: steps(run, number, set_apart=1)) for number in numbers]  # type: ignore[misc]
        large, plain = into_many(spark, state)
    finally:
        spark.stop()
    ratio = large / plain
    once, repeating_run = median(runs[WARM:]), median(repeating[WARM:])
    note = f"{large:.2f} s against {plain:.2f} s of Spark's append, which compares and judges nothing"
    return [
        Measured(f"a run over {FEW} events, its four steps", once, "s", None, "wall clock"),
        Measured(
            "the same with a row that is repeated, of it", repeating_run / once, "times", None, f"{repeating_run:.2f} s"
        ),
        Measured("a delivery of one new row", median(deliveries[WARM:]), "s", None, "wall clock"),
        Measured("a delivery of one correction", median(corrections[WARM:]), "s", None, "wall clock"),
        Measured(f"a delivery of {DELIVERED:,} rows into {MANY:,}, of a plain append", ratio, "times", None, note),
    ]


def steps(run: Run, number: int, set_apart: int = 0) -> None:
    """The four steps of a run under an id of its own; raises SystemExit where it sets other rows apart than so many."""
    again = replace(run, run_id=f"bench small {number}")
    records = [step(again) for step in STEPS.values()]
    if records[0].rows_quarantined != set_apart:
        raise SystemExit(f"{records[0].rows_quarantined} rows were set apart")


def into_many(spark: SparkSession, state: Path) -> tuple[float, float]:
    """Median seconds of a delivery into a large table, and of Spark's append of the same rows to one of that size."""
    project = bench_project(state)
    run = run_of(spark, project, "large", QUERY)
    path, plain = run.warehouse.source("trades"), f"{state}/plain"
    create_source(run.lake, path, run.contract)
    trades(spark, MANY, COMPANIES).write.format("delta").mode("append").save(path)
    read_at(run.lake, path, 1).write.format("delta").save(plain)
    delivered, appended = [], []
    for number in range(WARM + ROUNDS):
        rows = events(number * DELIVERED, DELIVERED)
        delivered.append(timed(lambda rows=rows, n=number: deliver(run, rows, n)))  # type: ignore[misc]
        frame = frame_of(spark, rows)
        write = frame.coalesce(1).write.format("delta").mode("append")
        appended.append(timed(lambda write=write: write.save(plain)))  # type: ignore[misc]
    return median(delivered[WARM:]), median(appended[WARM:])


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(small_runs(folder / "bench" / "small"), "small_runs")
