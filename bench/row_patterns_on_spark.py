"""Kind match_recognize over 10 million trades of a day on Spark: a whole run with a row for each event of a match
beside Spark's bare sort, and a revision beside a recomputation.

The trades that change are one in a thousand of all, in one hundredth of the day, of all companies: twelve revisions
come before those that count, as in `bench.revisions`. Times are processor seconds of this process, Java and the
workers, all in one warm session.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.measured import Measured, processor, show
from bench.revisions import change, recompute, rows_of
from bench.spark_job import measured
from bench.trades import DAY, bench_project, run_of, session, trades, write_trades
from trendlake.cep_core import run_plan
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise

EVENTS = 10_000_000
COMPANIES = 1_000
ROUNDS = 3
WARM = 12
PARTS = 100
"""Parts of the day, of which the trades of one change."""
V_SHAPE = "PATTERN (s d+ u+) DEFINE d AS price < PREV(price), u AS price > PREV(price)"


def query(measures: str, rows: str = "", **keys: Any) -> dict[str, Any]:
    clause = f"PARTITION BY company ORDER BY event_time MEASURES {measures} {rows} {V_SHAPE}"
    text = f"SELECT {', '.join(part.split(' AS ')[1] for part in measures.split(', '))} FROM trades"
    return {"kind": "match_recognize", "source": "trades", "pattern": f"{text} MATCH_RECOGNIZE ({clause})", **keys}


ALL_ROWS = query("CLASSIFIER() AS label, SUM(price) AS total, MAX(price) AS most", "ALL ROWS PER MATCH")
SHAPES = query("s.price AS top, LAST(d.price) AS bottom, LAST(u.price) AS back, COUNT(*) AS n", within="1 hour")


def on_spark(state: Path, events: int = EVENTS, rounds: int = ROUNDS) -> list[Measured]:
    spark = session()
    try:
        whole = all_rows(spark, bench_project(state), events, rounds)
        return [whole, revision(spark, bench_project(state), events, rounds)]
    finally:
        spark.stop()


def all_rows(spark: SparkSession, project: Project, events: int, rounds: int) -> Measured:
    write_trades(spark, run_of(spark, project, "day").warehouse.source("trades"), events, COMPANIES)

    def prepare(name: str) -> Run:
        return run_of(spark, project, f"rows_{name}", ALL_ROWS)

    name = "whole Spark job, ALL ROWS PER MATCH, CLASSIFIER and two running measures,"
    return measured(name, 1.2, prepare, check_rows, rounds)[0]


def check_rows(run: Run) -> None:
    """The published rows of some companies are those of the engine in this process. Raises SystemExit."""
    some = ["C0000", "C0007", f"C{COMPANIES - 1:04d}"]
    events = read_events(run, run.need("check_source"))
    whole = run_plan(run.plan, events.where(events["company"].isin(some)).toArrow(), run.windows)
    published = run.lake.spark.read.format("delta").load(run.warehouse.results(run.name))
    names = run.plan.result_schema.names
    rows = published.where(published["company"].isin(some)).select(*names).toArrow()
    expected = sorted(map(str, whole.select(names).to_pylist()))
    if not expected or sorted(map(str, rows.cast(whole.schema).to_pylist())) != expected:
        raise SystemExit(f"the engine has {len(expected)} rows of V shapes, the Spark job {rows.num_rows}, or others")


def revision(spark: SparkSession, project: Project, events: int, rounds: int) -> Measured:
    followed = run_of(spark, project, "followed", SHAPES)
    path = followed.warehouse.source("trades")
    create_source(followed.lake, path, followed.contract)
    trades(spark, events, COMPANIES).write.format("delta").mode("append").save(path)
    recompute(followed)
    revised, whole = list[float](), list[float]()
    for number in range(WARM + rounds):
        change(followed, PARTS // 2 + number, DAY // PARTS)
        run = run_of(spark, project, "followed", SHAPES)
        records = list[Record]()
        revised.append(processor(lambda run=run, records=records: records.append(revise(run))))  # type: ignore[misc]
        if not records[0].rows_updated or records[0].road != "here":
            raise SystemExit("a small revision was made by Spark, or found nothing")
    for number in range(rounds + 1):
        fresh = run_of(spark, project, f"fresh_{number}", SHAPES)
        whole.append(processor(lambda fresh=fresh: recompute(fresh)))  # type: ignore[misc]
    if rows_of(fresh) != rows_of(run):
        raise SystemExit("the revised rows are not those of the recomputation")
    ours, theirs = min(revised[WARM:]), min(whole[1:])
    note = f"{events:,} events, {events // 1_000:,} changed in {DAY // PARTS // 60_000_000} minutes, within 1 hour: "
    note += f"{ours:.2f} s against {theirs:.1f} s; goal 7 %"
    name = "revise one event in a thousand, of a recomputation"
    return Measured(name, 100 * ours / theirs, "%", 15.0, note, at_most=True)


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(on_spark(folder / "bench" / "row_patterns"), "row_patterns_on_spark")
