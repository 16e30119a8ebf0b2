"""Where steps work: in this process or on Spark, by the rows, by the profile or by the user's word; the run record
says it, and the results are the same."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.support.flights import renamed
from tests.support.signal_patterns import KEYS, PATTERNS
from tests.support.signals import IN_DRIVER, SCHEMA, Signals, signals, tidy_batch
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import RoadClosedError
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.lake.road import On, Roads, road_of
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.record import pattern_records
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps import check_results as checking
from trendlake.pipelines.steps import compute as computing
from trendlake.pipelines.steps import judge_source as judging
from trendlake.pipelines.steps import publish as publishing
from trendlake.pipelines.steps.check_results import check_results_together
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]

BY_SPARK = Profile(master="local[2]", limits=Limits(driver_rows=0))
FORMS = {**PATTERNS, "a family": KEYS["a family"]}
KINDS = ("plain", "matches", "automaton", "algebra", "documents", "a family") if CHAOS else ("documents", "a family")


def steps_of(run: Run) -> list[tuple[On | None, str | None]]:
    """The roads that the records of all steps tell of."""
    return [(record.road, record.road_reason) for record in (step(run) for step in STEPS.values())]


def rows_of(lake: Signals, run: Run) -> list[dict[str, Any]]:
    """The results without where they come from, in an order of their own."""
    columns = list(run.plan.result_schema.names)
    table = DeltaTable(lake.warehouse.results(run.name)).to_pyarrow_table(columns=columns)
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.long) if k == "documents" else k for k in KINDS])
def test_both_roads_lead_to_the_same_rows(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """`driver_rows: 0` does every step and the revision on Spark; without it this process does, and the rows agree."""
    rng = random.Random(f"roads {kind}")
    lakes = {
        on: signals(spark, tmp_path / on, FORMS[kind], profile=profile)
        for on, profile in (("here", IN_DRIVER), ("spark", BY_SPARK))
    }
    first, second = tidy_batch(rng, 20), tidy_batch(rng, 6)
    reasons = {"here": None, "spark": "`limits.driver_rows` is 0"}
    rows = {}
    for on, lake in lakes.items():
        lake.insert(first)
        run = lake.run(0, 3, "run")
        assert steps_of(run) == [(on, reasons[on])] * 4
        lake.delete(event_id=first[0]["event_id"])
        lake.insert([row | {"event_id": f"late {row['event_id']}"} for row in second])
        record = revise(lake.run(0, 3, "revision"))
        assert (record.road, record.road_reason) == (on, reasons[on])
        rows[on] = rows_of(lake, run)
    assert rows["here"]
    assert rows["here"] == rows["spark"]


@pytest.mark.long
def test_the_user_may_ask_for_a_road(spark: SparkSession, tmp_path: Path) -> None:
    """`--on spark` is done, whatever the rows; `--on here` is an error with the reason where only Spark can."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"], profile=BY_SPARK)
    lake.insert(tidy_batch(random.Random("asked"), 20))
    mine = replace(lake.run(0, 3, "here"), on="here")
    assert steps_of(mine) == [("here", None)] * 4  # the user's word goes before the profile's 0
    small = replace(mine, profile=Profile(master="local[2]", limits=Limits(shard_rows=3)))
    with pytest.raises(RoadClosedError, match=r"compute cannot be done in this process: \d+ events, more than 3"):
        steps_of(renamed(small, "small"))
    asked = replace(mine, on="spark", profile=IN_DRIVER)
    assert steps_of(renamed(asked, "asked")) == [("spark", "asked for by --on spark")] * 4
    stored = pattern_records(lake.lake, [mine.name], ("run_id", "stage", "status", "road", "road_reason"))
    words = {(row["run_id"], row["stage"]): road_of(row) for row in stored}
    assert words["here", "publish"] == "in this process"
    assert words["asked", "publish"] == "on Spark: asked for by --on spark"
    assert words["small", "compute"] == ""  # it did not begin


@pytest.mark.parametrize(("limits", "on"), [(Limits(), "here"), (Limits(driver_rows=0), "spark")], ids=["few", "none"])
def test_a_delivery_says_where_it_was_written(spark: SparkSession, tmp_path: Path, limits: Limits, on: On) -> None:
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    contract = load_contract(lake.project.contract_path("signals"))
    rows = tidy_batch(random.Random("delivered"), 9)
    delivery = pa.Table.from_pylist(rows, SCHEMA)
    record = ingest(lake.lake, contract, [delivery], feed="f", run_id="i", roads=Roads(limits))
    assert (record.road, record.rows_inserted) == (on, 9)


BROKEN = {
    "check_source": (judging, "judge_of"),
    "compute": (computing, "answers_here"),
    "check_results": (checking, "judged_here"),
    "publish": (publishing, "differing"),
}
"""Of each step a function that only its work in this process calls."""


@pytest.mark.parametrize("mistake", [KeyError, TypeError])
def test_a_mistake_of_ours_is_no_reason_for_spark(
    spark: SparkSession, tmp_path: Path, mistake: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the step: were it done on Spark, nobody would see that this process no longer does it."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    lake.insert(tidy_batch(random.Random("broken"), 20))
    run = lake.run(0, 3, "run")

    def broken(*_: Any, **__: Any) -> Any:
        raise mistake("ours")

    for name, step in STEPS.items():
        with monkeypatch.context() as patched:
            patched.setattr(*BROKEN[name], broken)
            with pytest.raises(mistake, match="ours"):
                step(run)
        assert step(run).road == "here"


def test_a_mistake_in_judging_together_is_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the runs could be judged by itself."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    lake.insert(tidy_batch(random.Random("together"), 20))
    runs = [lake.run(0, 1, "first"), lake.run(1, 3, "second")]
    for run in runs:
        check_source(run), compute(run)
    judged_here = checking.judged_here

    def alone_only(staged: dict[int, Any]) -> Any:
        if len(staged) > 1:
            raise KeyError("together")
        return judged_here(staged)

    monkeypatch.setattr(checking, "judged_here", alone_only)
    with pytest.raises(KeyError, match="together"):
        check_results_together(runs)
