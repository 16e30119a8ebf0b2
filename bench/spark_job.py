"""The whole Spark job beside Spark's own shuffle and sort of the same columns, in one session, turn by turn.

The job: judge all rows of the source by its contract, compute, check the staged rows by the results contract, publish:
the steps of a run with their records, to a results table that was not there before. No verdict on a file of the source
is kept from an earlier run, but where that is measured. The peer: read the same columns, `repartition(company)`,
`sortWithinPartitions(company, event_time)`, written to nowhere. Of `check_source` the peer is DuckDB, which reads the
table's files and sorts three columns.

Times are processor seconds of this process, Java and the workers. "First in its session" is a new process, after Spark
has started, with compiled kernels in their cache.

Is the peer fair? Both have one session: Java's own choice of compiler and collector, Spark's adaptive execution as it
comes, 8 shuffle partitions, the table in 8 files. The peer's columns are the plan's, the event type among them. The job
need not read that one, as the contract allows one type only; so the peer is timed without it too.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from bench.measured import Measured, processor, show
from bench.quotes import CONTRACT, double_top, write_quotes
from bench.trades import FALLING, add_trades, bench_project, run_of, session, write_trades
from trendlake.cep_core import run_plan
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.quality.judge import many_rows
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish

EVENTS = 10_000_000
COMPANIES = 1_000
ROUNDS = 5
FIRSTS = 2
"""Sessions of which the first job is measured; before them one fills the cache of compiled kernels."""
STEPS = (check_source, compute, check_results, publish)


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
        trades.append(in_calendar(spark, project, rounds))
        return [*trades, judged_again(spark, project, rounds), *double_tops(spark, project, rounds)]
    finally:
        spark.stop()


def falling_prices(spark: SparkSession, project: Project, rounds: int) -> list[Measured]:
    """Kind trends: GRETA's Q1."""

    def prepare(name: str) -> Run:
        return run_of(spark, project, name)

    run = prepare("day")
    write_trades(spark, run.warehouse.source("trades"), EVENTS, COMPANIES)
    warm, sort = measured("whole Spark job", 1.0, prepare, check_answers, rounds)
    firsts = [first_in_session(project, number) for number in range(FIRSTS + 1)][1:]
    best = min(firsts, key=lambda seconds: sum(seconds.values()))
    note = f"{EVENTS:,} events, {COMPANIES:,} keys: {by_step(best)}; Spark's warm sort {sort:.1f} s"
    name = "whole Spark job, first in its session, against Spark's bare sort"
    first = Measured(name, sum(best.values()) / sort, "x", 3.0, note, at_most=True)
    judged, peer = min(seconds["check_source"] for seconds in firsts), duckdb_sort(run)
    note = f"{EVENTS:,} rows, first in its session: {judged:.1f} s; DuckDB {peer:.1f} s"
    name = "check_source against DuckDB's scan and sort of three columns"
    return [first, warm, Measured(name, judged / peer, "x", 2.0, note, at_most=True)]


def first_in_session(project: Project, number: int) -> dict[str, float]:
    """Seconds by step of a job in a process and a session of its own."""
    forget_verdicts(project)
    command = [sys.executable, "-m", "bench.spark_job", str(project.state), f"first_{number}"]
    done = subprocess.run(command, cwd=find_project().root, stdout=subprocess.PIPE, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def first_job(state: Path, name: str) -> dict[str, float]:
    """As `first_in_session`, in this process."""
    spark = session()
    try:
        run = run_of(spark, replace(find_project(), state=state), name)
        return {step.__name__: processor(lambda step=step: step(run)) for step in STEPS}  # type: ignore[misc]
    finally:
        spark.stop()


def forget_verdicts(project: Project) -> None:
    """Removes the verdicts on files that are kept of earlier runs."""
    many_rows.cache_clear()
    shutil.rmtree(project.state / "warehouse" / "verdicts", ignore_errors=True)


def duckdb_sort(run: Run) -> float:
    """Seconds of DuckDB for company, time and price of the source, sorted by company and time; least of some."""
    files = f"{run.warehouse.source(run.contract.name)}/*.parquet"
    query = f"SELECT company, event_time, price FROM read_parquet('{files}') ORDER BY company, event_time"
    return min(processor(lambda: duckdb.sql(query).to_arrow_table()) for _ in range(FIRSTS))


def judged_again(spark: SparkSession, project: Project, rounds: int) -> Measured:
    """`check_source` in a warm session, each time with one new file of 1 % of the rows."""
    run = run_of(spark, project, "again")
    check_source(run)
    seconds = []
    for number in range(rounds):
        add_trades(spark, run.warehouse.source("trades"), EVENTS, EVENTS // 100, COMPANIES, number)
        seconds.append(processor(lambda: check_source(run_of(spark, project, "again"))))
    note = f"{EVENTS:,} rows and one new file of {EVENTS // 100:,}; warm session"
    return Measured("check_source again, with one new file of 1 %", min(seconds), "s", 5.0, note, at_most=True)


def by_step(seconds: dict[str, float]) -> str:
    """`check_source 4.0 s, compute 5.2 s`."""
    return ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())


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
        sorts.append(processor(lambda: bare_sort(run)))
        mine = run_of(spark, project, f"next_{number}", NEXT)
        mine.records.update(run.records)
        steps.append(processor(lambda mine=mine: compute(mine)))  # type: ignore[misc]
    ours, theirs = min(steps[1:]), min(sorts[1:])
    note = f"{EVENTS:,} events, {COMPANIES:,} keys: compute {ours:.1f} s, Spark's sort {theirs:.1f} s"
    name = "kind algebra, NEXT by key: the step compute against Spark's bare sort"
    return Measured(name, ours / theirs, "x", 1.5, note, at_most=True)


def in_calendar(spark: SparkSession, project: Project, rounds: int) -> Measured:
    """The whole job with `time_zone: UTC`, whose windows are the same, of that without; by turns, of each step the best
    round: the steps before and after `compute` do the same work, and differ by chance more than `compute` does."""
    zones: list[dict[str, Any]] = [{"time_zone": "UTC"}, {}]
    jobs: list[list[dict[str, float]]] = [[], []]
    for number in range(rounds + 1):
        for place in (0, 1) if number % 2 else (1, 0):
            forget_verdicts(project)
            run = run_of(spark, project, f"zoned_{place}_{number}", {**FALLING, **zones[place]})
            jobs[place].append({step.__name__: processor(lambda step=step, run=run: step(run)) for step in STEPS})  # type: ignore[misc]
    best = [{step: min(seconds[step] for seconds in one[1:]) for step in one[0]} for one in jobs]
    ours, theirs = (sum(seconds.values()) for seconds in best)
    computed = " against ".join(f"{seconds['compute']:.2f}" for seconds in best)
    note = f"{EVENTS:,} events, {COMPANIES:,} keys: {ours:.2f} s against {theirs:.2f} s (compute {computed}); goal 1.01"
    name = "whole Spark job with time_zone, of that without"
    return Measured(name, ours / theirs, "x", 1.05, note, at_most=True)


def double_tops(spark: SparkSession, project: Project, rounds: int) -> list[Measured]:
    """Kind automaton: Cayuga's Double-Top. A tick's id travels too: rows name their events."""
    query, contract = double_top(), find_project().contract_path(CONTRACT)

    def prepare(name: str) -> Run:
        return run_of(spark, project, f"double_{name}", query, contract_path=contract)

    write_quotes(spark, prepare("day").warehouse.source(CONTRACT), EVENTS, COMPANIES)
    return [measured("whole Spark job, Double-Top,", 1.5, prepare, check_runs, rounds)[0]]


def measured(
    name: str, bar: float, prepare: Callable[[str], Run], check: Callable[[Run], None], rounds: int
) -> tuple[Measured, float]:
    """Seconds of both in a warm session, best of `rounds` after one to warm up, and their ratio; and of the sort."""
    run = prepare("day")
    check_source(run)
    sorts: list[float] = []
    fewer: list[float] = []
    jobs: list[dict[str, float]] = []
    for number in range(rounds + 1):
        sorts.append(processor(lambda: bare_sort(run)))
        fewer.append(processor(lambda: bare_sort(run, run.plan.schema.event_type)))
        forget_verdicts(run.project)
        mine = prepare(f"round_{number}")
        jobs.append({step.__name__: processor(lambda step=step, mine=mine: step(mine)) for step in STEPS})  # type: ignore[misc]
    check(mine)
    best, sort = min(jobs[1:], key=lambda seconds: sum(seconds.values())), min(sorts[1:])
    note = f"{EVENTS:,} events, {COMPANIES:,} keys: {by_step(best)}; Spark's sort {sort:.1f} s, "
    note += f"{min(fewer[1:]):.1f} s without the event type"
    ratio = sum(best.values()) / sort
    return Measured(f"{name} against Spark's bare sort", ratio, "x", bar, note, at_most=True), sort


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(first_job(Path(sys.argv[1]), sys.argv[2])))
    else:
        folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
        show(spark_job(folder / "bench" / "lake"), "spark_job")
