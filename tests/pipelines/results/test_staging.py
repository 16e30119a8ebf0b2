"""Rows staged by Spark and rows that the workers leave in files of their own: the same rows, of the same types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.cases import Case, load
from tests.support.engines import to_table
from tests.support.worked_cases import CHECKED, PROFILE, run_of, source_of
from trendlake.pipelines.execute.channel import Channel, Member
from trendlake.pipelines.execute.distribute import distribute
from trendlake.pipelines.execute.shard_plan import Cut
from trendlake.pipelines.execute.worker import Work, answers_of
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.results.computation import computed
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.results.staging import HIDDEN, Staged, leave_staged, read_staged, write_staged
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions

pytestmark = pytest.mark.spark

TYPES = {"n": "bigint", "x": "double", "s": "string", "yes": "boolean", "at": "timestamp"}
ODD: list[dict[str, Any]] = [
    {"id": f"e{i}", "type": "T", "time": i, "symbol": symbol, "n": n, "x": x, "s": s, "yes": yes}
    for i, (symbol, n, x, s, yes) in enumerate(
        [
            ("A", 2**63 - 1, float("nan"), "ä, \0", True),
            (None, -(2**63), -0.0, "", False),
            ("A", 0, 5e-324, "s" * 300, None),
            (None, None, None, None, True),
            ("B", 7, float("-inf"), "'", False),
        ]
    )
]
CASES = {case.name: case for file in ("trends.yaml", "matches.yaml", "automaton.yaml") for case in load(file)}
EVERY_TYPE: dict[str, Any] = {
    "kind": "automaton",
    "register": {name: {"type": kind, "init": None} for name, kind in TYPES.items()}
    | {"day": {"type": "date", "init": "1969-12-31"}},
    "start": "q0",
    "final": ["q1"],
    "arcs": [
        {
            "from": "q0",
            "to": "q1",
            "set": {**{name: f"e.{name}" for name in ("n", "x", "s", "yes")}, "at": "e.event_time"},
        }
    ],
    "partition_by": ["symbol"],
    "within": "3 seconds",
}


def varied() -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Queries and events, by what is odd about their rows."""
    trends, matches, lifetimes = (
        CASES[name]
        for name in ("down-trends-skip_till_any_match", "sase-query-3-skip_till_next_match", "afa-arc-lifetimes")
    )
    return {
        "trends": (dict(trends.query), trends.events),
        "lists of ids": (dict(matches.query), matches.events),
        "graphs": ({**matches.query, "output": "compressed"}, matches.events),
        "several hashes": ({**lifetimes.query, "within": "2 seconds"}, lifetimes.events),
        "every type": (EVERY_TYPE, ODD),
    }


def case_run(spark: SparkSession, project: Project, name: str, query: dict[str, Any], events: Any) -> Run:
    contract = source_of(project, Case(name, query, events, [], generated=False))
    times = to_table(events)["event_time"].cast(pa.int64()).to_pylist()
    return replace(run_of(spark, project, contract, query, times), profile=PROFILE)


def rows_of(run: Run, number: int) -> tuple[pa.Schema, list[str]]:
    """Where they come from too; when they were computed is not told."""
    table = read_staged(run, number).drop("computed_at").toArrow()
    return table.schema, sorted(map(repr, table.to_pylist()))


def left_by_workers(run: Run, events: DataFrame, cut: Cut, version: Versions) -> Staged:
    """By `leave_staged`: number and rows."""
    work = Work(run.plan, (Channel.of([Member(0, run.plan, cut.windows)]),), (cut,), 1000)
    left = leave_staged({0: run}, distribute(run.plan, events, work.parts), answers_of(work), version)
    assert left is not None
    assert not isinstance(left[0], Exception), left[0]
    return left[0]


@pytest.mark.long
@pytest.mark.parametrize("odd", list(varied()))
def test_both_ways_stage_the_same(spark: SparkSession, project: Project, odd: str) -> None:
    """Of events in two partitions, one of which may have no rows; values, NULLs, types and hashes."""
    run = case_run(spark, project, odd, *varied()[odd])
    events, cut = read_events(run, CHECKED), Cut(run.windows, len(run.windows), 2)
    number, rows = write_staged(run, computed(run, events, cut), Versions.one(7))
    left = left_by_workers(run, events, cut, Versions.one(7))
    assert left[1] == rows > 0
    schema, staged = rows_of(run, left[0])
    assert (schema, staged) == rows_of(run, number)
    if odd == "several hashes":
        assert len({row.split("'plan_hash': ")[1] for row in staged}) > 1


def test_half_written_files_are_not_read(spark: SparkSession, project: Project) -> None:
    """What a worker left that was not heard of: it may be half a file, or rows that another left as well."""
    run = case_run(spark, project, "hidden", *varied()["several hashes"])
    events, cut = read_events(run, CHECKED), Cut(run.windows, len(run.windows), 1)
    number, rows = left_by_workers(run, events, cut, Versions.one(0))
    folder = Path(run.warehouse.staging(run.name, run.run_id)) / str(number)
    (file,) = folder.glob("*.parquet")
    (folder / f"{HIDDEN}twice.parquet").write_bytes(file.read_bytes())
    (folder / f"{HIDDEN}half.parquet").write_bytes(file.read_bytes()[:100])
    assert read_staged(run, number).count() == rows > 0


def test_what_lies_elsewhere_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    assert bare_lake(spark).on_disk(str(tmp_path / "a b")) == tmp_path / "a b"
    assert bare_lake(spark).on_disk((tmp_path / "a").as_uri()) == tmp_path / "a"
    assert bare_lake(spark).on_disk("http://127.0.0.1/warehouse") is None
