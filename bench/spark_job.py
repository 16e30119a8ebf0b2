"""The whole Spark job beside Spark's own shuffle and sort of the same columns, in one session, turn by turn.

The job: read Delta (the pinned version, its good rows), compute, check the staged rows by the results contract,
publish: the steps of a run with their records, to a results table that was not there before. Not timed is the step
before them, `check_source`, which judges a version of the source. The peer: read the same columns of that version,
`repartition(company)`, `sortWithinPartitions(company, event_time)`, written to nowhere.

Is the peer fair? Both have one session: Java's own choice of compiler and collector, Spark's adaptive execution as it
comes, 8 shuffle partitions, the table in 8 files. The peer's columns are the plan's, the event type among them. The job
need not read that one, as the contract allows one type only; so the peer is timed without it too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.measured import Measured, show
from bench.quotes import CONTRACT, double_top, write_quotes
from bench.trades import bench_project, run_of, session, timed, write_trades
from trendlake.cep_core import run_plan
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish

EVENTS = 10_000_000
COMPANIES = 1_000
ROUNDS = 10
STEPS = (compute, check_results, publish)


def bare_sort(run: Run, *without: str) -> None:
    """Spark's own work on the columns the plan names."""
    source = read_at(run.lake, run.warehouse.source(run.contract.name), 0).select(*run.plan.columns).drop(*without)
    (key,) = run.plan.unit_key
    ordered = source.repartition(key).sortWithinPartitions(key, "event_time")
    ordered.write.format("noop").mode("overwrite").save()


def check_answers(run: Run) -> None:
    """The published rows of some companies are those of the engine in this process. Raises SystemExit."""
    some = ["C0000", "C0007", f"C{COMPANIES - 1:04d}"]
    events = read_events(run, run.need("check_source"))
    whole = run_plan(run.plan, events.where(events["company"].isin(some)).toArrow(), run.windows)
    expected = {row["company"]: row["trends_log10"] for row in whole.to_pylist()}
    published = run.lake.spark.read.format("delta").load(run.warehouse.results(run.name))
    counts = {row["company"]: row["trends_log10"] for row in published.where(published["company"].isin(some)).collect()}
    if published.count() != COMPANIES or expected.keys() != counts.keys():
        raise SystemExit("the Spark job's rows are not those of every company")
    if any(not math.isclose(expected[key], counts[key], rel_tol=1e-9) for key in expected):
        raise SystemExit(f"the engine counts {expected}, the Spark job {counts}")


def check_runs(run: Run) -> None:
    """The published rows of some symbols are those of the engine in this process. Raises SystemExit."""
    some = ["S0000", "S0007", f"S{COMPANIES - 1:04d}"]
    events = read_events(run, run.need("check_source"))
    whole = run_plan(run.plan, events.where(events["symbol"].isin(some)).toArrow(), run.windows)
    published = run.lake.spark.read.format("delta").load(run.warehouse.results(run.name))
    rows = published.where(published["symbol"].isin(some)).select(*run.plan.key).toArrow()
    expected = sorted(map(str, whole.select(list(run.plan.key)).to_pylist()))
    if not expected or sorted(map(str, rows.to_pylist())) != expected:
        raise SystemExit(f"the engine has {len(expected)} rows of Double-Top, the Spark job {rows.num_rows}, or others")


def spark_job(state: Path, rounds: int = ROUNDS) -> list[Measured]:
    """Both jobs, each beside the sort of its own columns."""
    spark = session()
    project = bench_project(state)
    try:
        trades = [*falling_prices(spark, project, rounds), next_by_key(spark, project, rounds)]
        return [*trades, *double_tops(spark, project, rounds)]
    finally:
        spark.stop()


def falling_prices(spark: SparkSession, project: Project, rounds: int) -> list[Measured]:
    """Kind trends: GRETA's Q1."""

    def prepare(name: str) -> Run:
        return run_of(spark, project, name)

    write_trades(spark, prepare("day").warehouse.source("trades"), EVENTS, COMPANIES)
    return measured("whole Spark job", 1.0, prepare, check_answers, rounds)


NEXT: dict[str, Any] = {
    "kind": "algebra",
    "source": "trades",
    "pattern": "SELECT event_id_1 AS cheap, event_id AS next FROM FILTER{price < 1000}(Stock) NEXT Stock",
    "partition_by": ["company"],
    "within": "1 day",
}
"""Kind algebra, NEXT by key: of prices up to 100,000 the left FILTER keeps 1 %."""


def next_by_key(spark: SparkSession, project: Project, rounds: int) -> Measured:
    """The step `compute` alone beside the sort, over the trades that `falling_prices` wrote; both turn by turn."""
    run = run_of(spark, project, "next", NEXT)
    check_source(run)
    sorts, steps = list[float](), list[float]()
    for number in range(rounds + 1):
        sorts.append(timed(lambda: bare_sort(run)))
        mine = run_of(spark, project, f"next_{number}", NEXT)
        mine.records.update(run.records)
        steps.append(timed(lambda mine=mine: compute(mine)))  # type: ignore[misc]
    ours, theirs = min(steps[1:]), min(sorts[1:])
    note = f"{EVENTS:,} events, {COMPANIES:,} keys: compute {ours:.1f} s, Spark's sort {theirs:.1f} s; wall clock"
    name = "kind algebra, NEXT by key: the step compute against Spark's bare sort"
    return Measured(name, ours / theirs, "x", 1.5, note, at_most=True)


def double_tops(spark: SparkSession, project: Project, rounds: int) -> list[Measured]:
    """Kind automaton: Cayuga's Double-Top. A tick's id travels too: rows name their events."""
    query, contract = double_top(), find_project().contract_path(CONTRACT)

    def prepare(name: str) -> Run:
        return run_of(spark, project, f"double_{name}", query, contract_path=contract)

    write_quotes(spark, prepare("day").warehouse.source(CONTRACT), EVENTS, COMPANIES)
    return measured("whole Spark job, Double-Top,", 1.5, prepare, check_runs, rounds)


def measured(
    name: str, bar: float, prepare: Callable[[str], Run], check: Callable[[Run], None], rounds: int
) -> list[Measured]:
    """Seconds of both, best of `rounds` after one to warm up, and their ratio."""
    run = prepare("day")
    check_source(run)
    sorts: list[float] = []
    fewer: list[float] = []
    jobs: list[list[float]] = []
    for number in range(rounds + 1):
        sorts.append(timed(lambda: bare_sort(run)))
        fewer.append(timed(lambda: bare_sort(run, run.plan.schema.event_type)))
        mine = prepare(f"round_{number}")
        mine.records.update(run.records)
        jobs.append([timed(lambda step=step, mine=mine: step(mine)) for step in STEPS])  # type: ignore[misc]
    check(mine)
    best = min(jobs[1:], key=sum)
    seconds_by_step = ", ".join(f"{step.__name__} {seconds:.1f} s" for step, seconds in zip(STEPS, best, strict=True))
    note = f"{EVENTS:,} events, {COMPANIES:,} keys: {seconds_by_step}; Spark's sort {min(sorts[1:]):.1f} s, "
    note += f"{min(fewer[1:]):.1f} s without the event type; wall clock"
    ratio = sum(best) / min(sorts[1:])
    return [Measured(f"{name} against Spark's bare sort", ratio, "x", bar, note, at_most=True)]


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(spark_job(folder / "bench" / "lake"), "spark_job")
