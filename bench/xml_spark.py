"""Kind xml_join on Spark: many queries in one run beside each in a run of its own; a part of `make bench`.

Timed is the step `compute`: a Spark job that reads the documents, runs the queries and stages the rows. Documents count
as parsed: the seconds by which a Spark job that parses them is longer than one that reads them are taken off each
run. A run alone has its own job to plan and start, which is what it costs to run a query by itself on Spark; the note
says how much is left where a run that finds nothing is taken off instead. Wall-clock seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.measured import Measured, show
from bench.small_runs import deliver
from bench.trades import bench_project, run_of, session, timed
from bench.xml_join import ITEMS, MANY, WEEK, items, parsed
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.pipelines.generate.xml_queries import feed_pattern, feed_queries
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute

ALONE = 10
"""Queries that are measured each by itself, of `MANY`."""
ROUNDS = 3
WITHIN = "1 hour"
NOTHING: dict[str, Any] = {
    "kind": "xml_join",
    "left": {"a": "//nothing"},
    "right": {"b": "//nothing"},
    "where": ["$a = $b"],
    "operator": "followed_by",
    "within": WITHIN,
    "return": {},
}


def on_spark(folder: Path) -> list[Measured]:
    """The measure; tables are made under `folder`."""
    spark = session()
    try:
        return [together(spark, bench_project(folder))]
    finally:
        spark.stop()


def together(spark: SparkSession, project: Project) -> Measured:
    """Seconds of `MANY` queries in one run, beside those of a sample of runs of one query each."""

    def run_named(name: str, query: dict[str, Any]) -> Run:
        contract = project.contract_path("feeds")
        run = run_of(spark, project, name, {"source": "feeds", **query}, contract_path=contract)
        on_spark_only = Profile(limits=Limits(shard_rows=run.profile.limits.shard_rows, driver_rows=1))
        return replace(run, profile=on_spark_only, start_us=0, end_us=WEEK * 1_000_000)

    queries = feed_queries(MANY, 2)
    many = run_named("many", {**feed_pattern(WITHIN), "each": queries})
    nothing = run_named("nothing", NOTHING)
    create_source(many.lake, many.warehouse.source("feeds"), many.contract)
    deliver(many, items(), 0)
    seconds, rows = computed(many, 1, ROUNDS)
    alone, without_rows = [], []
    for number, query in enumerate(queries[:ALONE]):
        run = run_named(f"alone_{number}", {**feed_pattern(WITHIN), "each": [query]})
        alone.append(computed(run, 0, 1)[0])
        without_rows.append(computed(nothing, 0, 1)[0])
    parsing = parsing_on_spark(many)
    one, none = mean(alone), mean(without_rows)
    quick, slow = seconds - parsing, MANY * (one - parsing)
    assert isinstance(many.plan, XmlJoinPlan)
    joining = MANY * (one - none) / (seconds - none)
    note = (
        f"{ITEMS:,} documents, within {WITHIN}, {len(many.plan.joins):,} different queries: {quick:.2f} s with "
        f"{rows:,} rows staged, against {slow:,.0f} s ({ALONE} runs measured, {one:.2f} s each); "
        f"parsing, {parsing:.2f} s, not counted. Less a run that finds nothing, {none:.2f} s: {joining:,.0f} times. "
        "Wall clock"
    )
    return Measured(f"{MANY:,} queries together on Spark, each by itself", slow / quick, "times", 100, note)


def computed(run: Run, warm: int, rounds: int) -> tuple[float, int]:
    """The median seconds of the step `compute`, after `warm` rounds that do not count, and how many rows it stages."""
    check_source(run)
    seconds = [timed(lambda: compute(run)) for _ in range(warm + rounds)]
    return median(seconds[warm:]), int(run.records["compute"].rows_out or 0)


def parsing_on_spark(run: Run) -> float:
    """Seconds by which a job that parses all documents of the run's source is longer than one that reads them."""
    documents = read_at(run.lake, run.warehouse.source("feeds"), 1).select("document").repartition(2).persist()

    def job(work: Callable[[pa.RecordBatch], int]) -> float:
        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.record_batch({"n": [work(batch)]})

        frame = documents.mapInArrow(counted, "n long")
        return median([timed(frame.collect) for _ in range(ROUNDS + 1)][1:])

    try:
        return job(lambda batch: len(parsed(pa.table(batch)))) - job(lambda batch: batch.num_rows)
    finally:
        documents.unpersist()


if __name__ == "__main__":
    state = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(on_spark(state / "bench" / "xml_spark"), "xml_spark")
