"""Revising beside recomputing: of 10 million events in 100 windows, one in a thousand changes, all in one window.

Both are timed in one warm session, so that neither pays for Spark's start: the recomputation is the four steps of a
run over all windows at the new version, to a results table of its own; the revision brings the table that shows the
old version to the new one. Then revised again, where no version is new. Java compiles what it has run some hundred
times: a recomputation runs its jobs over many rows, a revision its own code over few, so `WARM` revisions come before
those that count; the first of them, which pays for all that, is told beside. Last, a process of its own makes its first
revision, as `trendlake revise` does: timed from when Spark is up.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from bench.measured import Measured, show
from bench.trades import DAY, FALLING, bench_project, run_of, session, timed, trades
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

EVENTS = 10_000_000
COMPANIES = 1_000
WINDOWS = 100
CHANGED = 1_000
"""One event of so many."""
ROUNDS = 3
WARM = 12
FRESH = """\
import sys, time
from pathlib import Path
from dataclasses import replace
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.spark.session import start_session

project = replace(find_project(), state=Path(sys.argv[1]))
spark = start_session(project, load_profile(project, "local"))
start = time.perf_counter()
from bench.revisions import QUERY
from bench.trades import run_of
from trendlake.pipelines.steps.revise import revise
record = revise(run_of(spark, project, "followed", QUERY))
print(time.perf_counter() - start, record.rows_updated, record.staged_version)
"""
QUERY = FALLING | {"within": f"{DAY // WINDOWS // 1_000_000} seconds"}


def change(run: Run, window: int, length: int = DAY // WINDOWS) -> None:
    """Turns the prices of one event in `CHANGED` of all upside down, picked by their ids from one window."""
    start, end = window * length, (window + 1) * length
    inside = (sf.col("event_time") >= sf.timestamp_micros(sf.lit(start))) & (
        sf.col("event_time") < sf.timestamp_micros(sf.lit(end))
    )
    picked = sf.pmod(sf.xxhash64("event_id"), sf.lit(CHANGED // WINDOWS)) == 0
    source = DeltaTable.forPath(run.lake.spark, run.warehouse.source("trades"))
    source.update(inside & picked, {"price": sf.lit(100_000.0) - sf.col("price")})


def recompute(run: Run) -> None:
    for step in STEPS.values():
        step(run)


def rows_of(run: Run) -> set[tuple[object, ...]]:
    table = run.lake.spark.read.format("delta").load(run.warehouse.results(run.name))
    return {tuple(row) for row in table.select(*run.plan.result_schema.names).collect()}


def revisions(state: Path, events: int = EVENTS, rounds: int = ROUNDS) -> list[Measured]:
    """Seconds of each, best of `rounds` after those to warm up."""
    spark = session()
    project = bench_project(state)
    try:
        rows = measured(spark, project, events, rounds)
        change(run_of(spark, project, "followed", QUERY), WINDOWS // 4)
    finally:
        spark.stop()
    return [*rows, first_of_process(state)]


def first_of_process(state: Path) -> Measured:
    """Seconds of a process's first revision, a small one, beyond Spark's start."""
    done = subprocess.run([sys.executable, "-c", FRESH, str(state)], capture_output=True, text=True, check=True)
    seconds, updated, staged = done.stdout.split()[-3:]
    if updated == "0" or staged != "None":
        raise SystemExit("the first revision of a process was not a small one")
    note = "beyond Spark's start, imports of the step included; wall clock"
    return Measured("the first revision of a process", float(seconds), "s", 4.0, note, True)


def measured(spark: SparkSession, project: Project, events: int, rounds: int) -> list[Measured]:
    followed = run_of(spark, project, "followed", QUERY)
    path = followed.warehouse.source("trades")
    create_source(followed.lake, path, followed.contract)
    trades(spark, events, COMPANIES).write.format("delta").mode("append").save(path)
    recompute(followed)
    whole, changed, quiet = [], [], []
    for number in range(WARM + rounds):
        change(followed, WINDOWS // 2 + number)
        run = run_of(spark, project, "followed", QUERY)
        record = Record("", None, "revise")

        def again(run: Run = run, kept_record: Record = record) -> None:
            kept_record.__dict__.update(revise(run).__dict__)

        changed.append(timed(again))
        table = latest_version(run.lake, run.warehouse.results(run.name))
        quiet.append(timed(again))
        if record.rows_updated or latest_version(run.lake, run.warehouse.results(run.name)) != table:
            raise SystemExit("a revision where nothing has changed made a commit")
    for number in range(rounds + 1):
        fresh = run_of(spark, project, f"fresh_{number}", QUERY)
        whole.append(timed(lambda fresh=fresh: recompute(fresh)))  # type: ignore[misc]
    if rows_of(fresh) != rows_of(run):
        raise SystemExit("the revised rows are not those of the recomputation")
    revised, recomputed = min(changed[WARM:]), min(whole[1:])
    note = f"{events:,} events, {WINDOWS} windows: {revised:.1f} s against {recomputed:.1f} s; wall clock"
    what, share = "revise 0.1 % of the events in 1 % of the windows, of a recomputation", 100 * revised / recomputed
    return [
        Measured(what, share, "%", 10.0, note, True),
        Measured("the first revision of a session", changed[0], "s", None, "wall clock"),
        Measured("revise where nothing has changed", min(quiet[1:]), "s", 10.0, "no commit; wall clock", True),
    ]


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(revisions(folder / "bench" / "lake"), "revisions")
