"""A pattern that is edited between runs: what the old form has published stays as it is, until runs of the new one
replace it; revisions go on with what the new form has published."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.conftest import DRAWS, PART
from tests.random.profile import CI
from tests.support.flights import all_steps, renamed
from tests.support.promises import HISTORIES as DONE
from tests.support.promises import agree, replayed
from tests.support.recomputation import in_order, recomputed
from tests.support.signal_changes import change
from tests.support.signal_patterns import EDITS, PATTERNS
from tests.support.signals import Signals, batch, signals, tidy_batch
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HISTORIES = DRAWS
FIRST_DAY, MIDDLE, LAST_DAY = 0.5, 1.25, 2.5


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.chaos
@settings(CI, max_examples=HISTORIES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_old_rows_stay_until_they_are_replaced(spark: SparkSession, edit: str, seed: int) -> None:
    """Run, edited, run in part: revisions speak of that part, old rows beside it stay; run in whole, all is new."""
    rng = random.Random(f"{edit} {seed}{PART}")
    name, old, new = EDITS[edit]
    with TemporaryDirectory() as folder:
        lake = signals(spark, Path(folder) / "project", PATTERNS[name])
        lake.insert(batch(rng, 40))
        first = lake.run(FIRST_DAY, LAST_DAY, "first form")
        all_steps(first)
        assert old in PATTERNS[name]
        lake.edit(PATTERNS[name].replace(old, new))
        part = lake.run(FIRST_DAY, MIDDLE, "in part")
        assert part.plan.hash != first.plan.hash
        with pytest.raises(StepOrderError, match="has published nothing in this form"):
            revise(renamed(part, "too early"))
        stays = beside(lake, part)
        if rng.random() < 0.5:
            change(rng, lake)
        all_steps(part)
        for number in range(2):
            for _ in range(rng.randrange(1, 3)):
                change(rng, lake)
            record = revise(renamed(part, f"revision {number}"))
            assert broken(record) == ["stale_rows"]
            assert inside(lake, part) == recomputed(part, lake.version(), part.windows)
            assert beside(lake, part) == stays
        whole = lake.run(FIRST_DAY, LAST_DAY, "in whole")
        all_steps(whole)
        agree(lake, whole)
        change(rng, lake)
        record = revise(renamed(whole, "last revision"))
        assert broken(record) == []
        agree(lake, whole)
        replayed(lake, whole)
        DONE[f"edited: {edit}"] += 1


def broken(record: Record) -> list[str]:
    """The checks that a revision did not pass, but for rows that a change has spoilt."""
    return [check.name for check in record.checks if check.success is False and check.name != "set_apart"]


def inside(lake: Signals, run: Run) -> list[dict[str, Any]]:
    owner, low, high = run.owned
    time = sf.unix_micros(owner)
    rows = lake.spark.read.format("delta").load(lake.warehouse.results(run.name)).where((time >= low) & (time < high))
    return in_order(rows.select(*run.plan.result_schema.names).toArrow().to_pylist(), run)


def beside(lake: Signals, run: Run) -> set[str]:
    """The published rows of other windows than the run's, as text; columns that a new form has brought are no part."""
    owner, low, high = run.owned
    rows = lake.spark.read.format("delta").load(lake.warehouse.results(run.name))
    rows = rows.where((sf.unix_micros(owner) < low) | (sf.unix_micros(owner) >= high))
    return {
        str(sorted((key, str(value)) for key, value in row.asDict().items() if value is not None))
        for row in rows.collect()
    }


@pytest.mark.chaos
@pytest.mark.parametrize("quiet", [True, False])
def test_a_revision_tells_the_next_form_what_it_has_made(spark: SparkSession, tmp_path: Path, quiet: bool) -> None:
    """Revised to the newest version, edited in one arc's lifetime: only the windows it touches are computed."""
    name, old, new = EDITS["another lifetime"]
    lake = signals(spark, tmp_path / "project", PATTERNS[name])
    lake.insert(tidy_batch(random.Random(3), 60))
    run = lake.run(FIRST_DAY, LAST_DAY, "first")
    all_steps(run)
    lake.sql(
        "UPDATE signals SET remark = 'other'" if quiet else "UPDATE signals SET price = 9 - price WHERE price < 10"
    )
    record = revise(renamed(run, "revision"))
    assert bool(record.note and record.note.get("quiet")) is quiet
    lake.edit(PATTERNS[name].replace(old, new))
    edited = lake.run(FIRST_DAY, LAST_DAY, "edited")
    all_steps(edited)
    windows = edited.records["compute"].windows
    assert windows is not None
    assert 0 < windows < len(edited.windows) // 2
    agree(lake, edited)


@pytest.mark.chaos
def test_windows_that_change_while_they_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    """The old form is revised between the new one's steps: what the new one would claim is not so any more."""
    name, old, new = EDITS["another lifetime"]
    lake = signals(spark, tmp_path / "project", PATTERNS[name])
    lake.insert(tidy_batch(random.Random(3), 60))
    run = lake.run(FIRST_DAY, LAST_DAY, "first")
    all_steps(run)
    lake.edit(PATTERNS[name].replace(old, new))
    edited = lake.run(FIRST_DAY, LAST_DAY, "edited")
    for step in (check_source, compute, check_results):
        step(edited)
    lake.sql("UPDATE signals SET price = 9 - price WHERE price < 10")
    revise(renamed(run, "revision"))
    with pytest.raises(StepOrderError, match="left alone have changed"):
        publish(edited)
