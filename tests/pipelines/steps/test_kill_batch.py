"""SIGKILL of the driver of a batch, at each boundary of what it writes: of a shared run and of a shared revision. Each
pattern's rows are those of before or those of a recomputation, and each is published once.

Each boundary in `make chaos` with KILLS; every seventh without.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import PART
from tests.support import delta_files
from tests.support.drivers import Victim
from tests.support.promises import replayed
from tests.support.recomputation import in_order, recomputed
from tests.support.signal_changes import change
from tests.support.signal_patterns import HEAD, PATTERNS
from tests.support.signals import IN_WORKERS, Signals, batch, signals
from tests.support.victim import BATCH, REVISE_BATCH, Order
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.runs.run import Run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

STEP = 1 if int(os.environ.get("TRENDLAKE_KILLS", "0")) else 7
FIRST_DAY, LAST_DAY = 0.5, 2.5
MEMBERS = {"watched": "plain", "paired": "matches", "without": "a NOT of its own place"}
JOINS = {"watched": "documents", "forever": "documents of all history"}
COMMITS = 100
Rows = list[dict[str, Any]]


def published(run: Run) -> Rows:
    schema, rows = run.plan.result_schema, delta_files.table(run.warehouse.results(run.name))
    return [] if rows is None else in_order(rows.select(schema.names).cast(schema).to_pylist(), run)


def killed_at_each(
    lake: Signals, runs: Sequence[Run], steps: tuple[str, ...], run_id: str, named: Sequence[str] = ()
) -> list[str]:
    """Kills a driver at each of the boundaries `named`, then at a boundary by its number, begins anew, kills that one
    further on, and so on, until one comes to its end. Returns where they were killed."""
    before = {run.name: published(run) for run in runs}
    wanted = {run.name: recomputed(run, lake.version(), run.windows) for run in runs}
    files, places = os.pathsep.join(str(lake.project.root / f"{run.name}.yaml") for run in runs), []
    for number, place in enumerate(itertools.chain(named, itertools.count(STEP, STEP))):
        victim, passed = Victim(lake.project.root, number), lake.project.root / f"places {steps[0]} {number}"
        try:
            victim.order(Order(files, steps, run_id, runs[0].start_us, runs[0].end_us, str(passed), place))
            survived = victim.survived()
        finally:
            victim.kill()
        for run in runs:
            assert published(run) in (before[run.name], wanted[run.name]), run.name
        if survived:
            break
        places.append(passed.read_text().splitlines()[-1])
    assert {run.name: published(run) for run in runs} == wanted
    for run in runs:
        commits = recent_commits(run.lake, run.warehouse.results(run.name), COMMITS)
        assert sum(any(commit.changed) for commit in commits if commit.note.get("run_id") == run_id) <= 1
        replayed(lake, run)
    return places


@pytest.mark.parametrize("members", [MEMBERS, JOINS], ids=["events", "documents"])
def test_a_batch_killed_at_each_boundary(spark: SparkSession, tmp_path: Path, members: dict[str, str]) -> None:
    rng = random.Random(f"batch {PART}")
    lake = signals(spark, tmp_path / "project", PATTERNS[members["watched"]], profile=IN_WORKERS)
    for name, kind in members.items():
        (lake.project.root / f"{name}.yaml").write_text(HEAD.replace("watched", name) + PATTERNS[kind])
    lake.insert(batch(rng, 40))
    runs = [
        Signals(spark, lake.project, str(lake.project.root / f"{name}.yaml")).run(FIRST_DAY, LAST_DAY, "any")
        for name in members
    ]
    staging = [f"{when} writing staging" for when in ("before", "after")]
    places = killed_at_each(lake, runs, BATCH, "run", staging)
    assert places[:2] == staging
    assert "results" in {place.split()[-1] for place in places} or STEP > 1
    for _ in range(3):
        change(rng, lake)
    killed_at_each(lake, runs, REVISE_BATCH, "revision")
