"""Kind xml_join over a history of feed items, on Spark and Delta in one warm session: a day's run after a long
history, and one corrected document of 225,000; a part of `make bench`.

Deliveries and first runs are outside of the timing. Wall-clock seconds.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from bench.measured import Measured, show
from bench.small_runs import deliver
from bench.trades import DAY, bench_project, run_of, session, timed
from trendlake.pipelines.generate.feeds import feeds
from trendlake.pipelines.generate.xml_queries import LEAVES, feed_pattern, feed_queries
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

DAYS, EACH_DAY, FEW = 100, 1_000, 2
"""Days of history, their documents, and the days that `within` and the run need."""
QUERIES = 100
ROUNDS = 3
DOCUMENTS, WEEK = 225_000, 7
"""Documents of a week, of which one is corrected."""
CONDITIONS = 3
"""Of the queries over these: channel and title alone have millions of answers."""


def feed_run(spark: SparkSession, project: Project, name: str, queries: list[dict[str, str]]) -> Run:
    """A run of queries with `within: 1 day` over the source `feeds`."""
    query: dict[str, Any] = {"source": "feeds", **feed_pattern("1 day"), "each": queries}
    return run_of(spark, project, name, query, contract_path=project.contract_path("feeds"))


def whole(run: Run) -> float:
    """Seconds from `check_source` to `publish`."""
    return timed(lambda: [step(run) for step in STEPS.values()])


def of_days(first: int, last: int) -> pa.Table:
    """The documents of some days; ids go on."""
    table = feeds(EACH_DAY * (last - first), EACH_DAY / 86_400, first + 1, first * DAY)
    ids = pc.binary_join_element_wise(f"{first}-", table["event_id"], "")
    return table.set_column(0, "event_id", ids)


def long_history(spark: SparkSession, project: Project) -> Measured:
    """The median of the runs of three days with two days of history, beside that after a hundred days."""
    base = feed_run(spark, project, "daily", feed_queries(QUERIES, 3))
    create_source(base.lake, base.warehouse.source("feeds"), base.contract)
    took: dict[int, float] = {}
    done = 0
    for history in (FEW, DAYS):
        seconds = []
        for day in range(done, history + 2 * ROUNDS):
            deliver(base, of_days(day, day + 1), day)
            if day >= history:
                seconds.append(whole(replace(base, run_id=f"day {day}", start_us=day * DAY, end_us=(day + 1) * DAY)))
        done = history + 2 * ROUNDS
        took[history] = median(seconds[ROUNDS:])
    note = f"{took[DAYS]:.2f} s against {took[FEW]:.2f} s, {EACH_DAY:,} documents a day, {QUERIES} queries; wall clock"
    return Measured(
        f"a day's run after {DAYS} days of documents, of one after `within` and a day",
        took[DAYS] / took[FEW],
        "times",
        1.3,
        note,
        at_most=True,
    )


def corrected(spark: SparkSession, project: Project) -> Measured:
    """Seconds to revise the results for one document that is in answers, beside those to compute them anew. Raises
    SystemExit where the rows of both differ."""
    queries = [query for query in feed_queries(10_000, 4) if conditions(query) >= CONDITIONS][:1_000]
    run = replace(feed_run(spark, project, "week", queries), start_us=0, end_us=WEEK * DAY)
    create_source(run.lake, run.warehouse.source("feeds"), run.contract)
    documents = feeds(DOCUMENTS, DOCUMENTS / WEEK / 86_400, 1, 0)
    deliver(run, documents, 0)
    whole(run)
    rows = run.records["publish"].rows_inserted
    anew, revised, deleted = [], [], 0
    answered = pc.is_in(documents["event_id"], pa.array([row["left_id"] for row in rows_of(run)]))
    later = pc.indices_nonzero(answered).to_pylist()[ROUNDS:-ROUNDS]
    for number in range(1, 2 * ROUNDS):
        one = documents.slice(later[len(later) // 2 + number], 1)
        text = one["document"][0].as_py().replace("<title>", f"<title>Corrected {number} ")
        deliver(run, one.set_column(2, "document", pa.array([text])), number)
        records: list[Record] = []
        again = replace(run, run_id=f"revision {number}")
        revised.append(timed(lambda again=again, records=records: records.append(revise(again))))  # type: ignore[misc]
        deleted += records[0].rows_deleted or 0
        if number >= ROUNDS:
            again = feed_run(spark, project, f"anew_{number}", queries)
            anew.append(whole(replace(again, start_us=0, end_us=WEEK * DAY)))
            if sorted(map(repr, rows_of(again))) != sorted(map(repr, rows_of(run))):
                raise SystemExit("the revised rows are not those of the recomputation")
    quick, slow = median(revised[ROUNDS - 1 :]), median(anew)
    note = (
        f"{quick:.2f} s against {slow:.2f} s, {len(queries):,} queries, {rows:,} rows, of which {len(revised)} "
        f"corrections retracted {deleted}; wall clock"
    )
    return Measured(
        f"one document of {DOCUMENTS:,} corrected, of all computed anew",
        quick / slow,
        "times",
        0.05,
        note,
        at_most=True,
    )


def rows_of(run: Run) -> list[dict[str, Any]]:
    """The published rows, without their origin."""
    table = run.lake.spark.read.format("delta").load(run.warehouse.results(run.name))
    rows: list[dict[str, Any]] = table.select(*run.plan.result_schema.names).toArrow().to_pylist()
    return rows


def conditions(query: dict[str, str]) -> int:
    return len({(query[f"left_{place}"], query[f"right_{place}"]) for place in range(len(LEAVES))})


def xml_history(folder: Path) -> list[Measured]:
    """Both measures; tables are made under `folder`."""
    spark = session()
    try:
        return [
            long_history(spark, bench_project(folder / "daily")),
            corrected(spark, bench_project(folder / "corrected")),
        ]
    finally:
        spark.stop()


if __name__ == "__main__":
    state = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(xml_history(state / "bench" / "xml_history"), "xml_history")
