"""Batches on Spark, in one warm session: many patterns at the price of one, from `check_source` to `publish`; their
revision; a batch of one; and a batch in which two fail.

The patterns of `selective` want one company each (W4 of `bench.workloads`) and have tables of their own; `family` is
one pattern for all companies, with one table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from bench.measured import Measured, show
from bench.trades import FALLING, bench_project, run_of, session, timed, trades
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.batch import Member, run_batch
from trendlake.pipelines.steps.revise import revise_together
from trendlake.pipelines.steps.sequence import STEPS

EVENTS, COMPANIES = 10_000_000, 1_000
FEW_EVENTS = 100_000
"""Of the source whose patterns are revised, and of the batch in which two fail."""
PATTERNS, REVISED = 100, 1_000
CORRECTED, CONCERNED = 10, 5
"""Rows of the correction, and the patterns that can match one of them."""
HIGHEST = 100_000
"""The prices of `trades` are below it."""
ROUNDS = 3
CROWDED: dict[str, Any] = {
    "kind": "matches",
    "source": "trades",
    "pattern": "SEQ(Stock a, Stock b)",
    "where": ["[company]"],
    "return": {"more": "b.price - a.price"},
    "within": "1 day",
    "limit_per_partition": 2,
}
"""Fails in the worker: there are more matches than it allows."""
HOLDS = FEW_EVENTS // 2
"""Events that a worker may hold, in the batch in which two fail."""
LARGE = {key: value for key, value in FALLING.items() if key != "group_by"} | {"where": ["S.price > NEXT(S).price"]}
"""Wants all events in one window, which are too many for a worker."""


def selective(company: int) -> dict[str, Any]:
    """The falling prices of one company."""
    return FALLING | {"where": [f"S.company = 'C{company:04d}'", "S.price > NEXT(S).price"]}


def family(companies: int) -> dict[str, Any]:
    """The falling prices of each of the companies, with its name as parameter."""
    names = [f"C{number:04d}" for number in range(companies)]
    return FALLING | {"for_each": {"name": names}, "where": ["S.company = $name", "S.price > NEXT(S).price"]}


def lake(spark: SparkSession, state: Path, events: int) -> Project:
    """A day of trades under `state`."""
    project = bench_project(state)
    run = run_of(spark, project, "any")
    path = run.warehouse.source("trades")
    create_source(run.lake, path, run.contract)
    trades(spark, events, COMPANIES).write.format("delta").mode("append").save(path)
    return project


def some(spark: SparkSession, project: Project, name: str, count: int) -> list[Run]:
    return [run_of(spark, project, f"{name}_{number}", selective(number)) for number in range(count)]


def together(runs: Sequence[Run]) -> list[str]:
    """Runs them as one batch; how each has ended."""
    members = [Member(run.name, run) for run in runs]
    list(run_batch(runs[0].lake, members))
    return [member.state for member in members]


def alone(run: Run) -> None:
    for step in STEPS.values():
        step(run)


def need_all(states: Sequence[str]) -> None:
    if set(states) != {"succeeded"}:
        raise SystemExit(f"{len(states) - states.count('succeeded')} patterns failed")


def shared_runs(spark: SparkSession, state: Path, events: int, patterns: int) -> list[Measured]:
    """T(patterns) and T(members of a family) beside T(1); a batch of one beside its pattern alone."""
    project = lake(spark, state, events)
    for number in range(ROUNDS):
        alone(run_of(spark, project, f"warm_{number}", selective(number)))
    single, batch_of_one = list[float](), list[float]()
    for number in range(ROUNDS):
        run = run_of(spark, project, f"alone_{number}", selective(number))
        single.append(timed(lambda run=run: alone(run)))  # type: ignore[misc]
        run = run_of(spark, project, f"member_{number}", selective(number))
        batch_of_one.append(timed(lambda run=run: need_all(together([run]))))  # type: ignore[misc]
    families = list[float]()
    for number in range(ROUNDS):
        run = run_of(spark, project, f"family_{number}", family(COMPANIES))
        families.append(timed(lambda run=run: alone(run)))  # type: ignore[misc]
    runs = some(spark, project, "shared", patterns)
    many, one, by_batch = timed(lambda: need_all(together(runs))), median(single), median(batch_of_one)
    note = f"{events:,} events: {many:.1f} s of {one:.1f} s; wall clock"
    return [
        Measured(f"Spark, W4, own tables: T({patterns}) / T(1)", many / one, "times", 5.0, note, at_most=True),
        Measured(
            f"the same, T({COMPANIES:,}) as one family / T(1)",
            median(families) / one,
            "times",
            3.0,
            f"{median(families):.1f} s of {one:.1f} s; wall clock",
            at_most=True,
        ),
        Measured(
            "a batch of one, of the same pattern alone",
            by_batch / one,
            "times",
            1.1,
            f"{by_batch:.2f} s of {one:.2f} s; wall clock",
            at_most=True,
        ),
    ]


def shared_revisions(spark: SparkSession, state: Path, patterns: int) -> list[Measured]:
    """Revising many for a correction that concerns few of them, beside revising one that it concerns."""
    project = lake(spark, state, FEW_EVENTS)
    runs = some(spark, project, "revised", patterns)
    need_all(together(runs))
    many, one = list[float](), list[float]()
    for seconds, chosen in ((many, runs), (one, runs[:1])):
        for number in range(ROUNDS + 1):
            correct(runs[0])
            again = [replace(run, run_id=f"revision {number} of {len(chosen)}") for run in chosen]
            seconds.append(timed(lambda again=again: revised(again)))  # type: ignore[misc]
    single, all_of = median(one[1:]), median(many[1:])
    note = f"{CORRECTED} rows that concern {CONCERNED}: {all_of:.1f} s of {single:.2f} s; wall clock"
    what = f"revise {patterns:,} patterns together, of one"
    return [Measured(what, all_of / single, "times", 20.0, note, at_most=True)]


def revised(runs: Sequence[Run]) -> None:
    attempts = revise_together(runs)
    changed = sum(bool(attempt.record.rows_updated or attempt.record.rows_deleted) for attempt in attempts)
    if any(attempt.error for attempt in attempts) or not 0 < changed <= CONCERNED:
        raise SystemExit(f"{changed} patterns were changed, of {CONCERNED} concerned")


def correct(run: Run) -> None:
    """Mirrored prices, by which other rows fall, for `CORRECTED` rows of `CONCERNED` companies."""
    path = run.warehouse.source("trades")
    table = run.lake.spark.read.format("delta").load(path)
    names = [f"C{number:04d}" for number in range(CONCERNED)]
    ids = [
        row[0]
        for name in names
        for row in table.where(sf.col("company") == name)
        .orderBy("event_id")
        .select("event_id")
        .limit(CORRECTED // CONCERNED)
        .collect()
    ]
    listed = ", ".join(f"'{identity}'" for identity in ids)
    run.lake.spark.sql(f"UPDATE delta.`{path}` SET price = {HIGHEST} - price WHERE event_id IN ({listed})")


def failing_runs(spark: SparkSession, state: Path, patterns: int) -> list[Measured]:
    """A batch in which one member fails in the worker and one is too large, beside the same without failures."""
    project = lake(spark, state, FEW_EVENTS)
    need_all(together(of_small_workers(some(spark, project, "warm", patterns))))
    runs = of_small_workers(some(spark, project, "good", patterns))
    good = timed(lambda: need_all(together(runs)))
    failing = [run_of(spark, project, "crowded", CROWDED), run_of(spark, project, "large", LARGE)]
    runs = of_small_workers([*failing, *some(spark, project, "mixed", patterns - 2)])
    states: list[str] = []
    mixed = timed(lambda: states.extend(together(runs)))
    if states.count("succeeded") != patterns - 2 or set(states[:2]) != {"failed"}:
        raise SystemExit(f"of {patterns} patterns {states.count('succeeded')} were published")
    note = f"{patterns - 2} published; {mixed:.1f} s of {good:.1f} s; wall clock"
    what = f"a batch of {patterns} in which two fail, of one without failures"
    return [Measured(what, mixed / good, "times", 2.0, note, at_most=True)]


def of_small_workers(runs: Sequence[Run]) -> list[Run]:
    limits = Limits(shard_rows=HOLDS)
    return [replace(run, profile=run.profile.model_copy(update={"limits": limits})) for run in runs]


def batches(
    state: Path, events: int = EVENTS, patterns: int = PATTERNS, revised_patterns: int = REVISED
) -> list[Measured]:
    """Wall-clock ratios within one session."""
    spark = session()
    try:
        return [
            *shared_runs(spark, state / "runs", events, patterns),
            *shared_revisions(spark, state / "revisions", revised_patterns),
            *failing_runs(spark, state / "failures", patterns),
        ]
    finally:
        spark.stop()


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(batches(folder / "bench" / "batches", *map(int, sys.argv[1:])), "batches")
