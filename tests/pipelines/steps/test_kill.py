"""SIGKILL of drivers and executors, at each boundary of the write protocol and at random moments: nothing is lost,
nothing doubled, and the run record tells what has ended.

`TRENDLAKE_KILLS` says how many kills are made; `make chaos` makes hundreds.
"""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import CHAOS, PART
from tests.support.drivers import REVISE, RUN, Victim
from tests.support.flights import all_steps, renamed
from tests.support.kills import Hunt, at_file, at_random, hunting
from tests.support.promises import replayed
from tests.support.signal_patterns import KINDS, PATTERNS
from tests.support.signals import IN_WORKERS, Signals, batch, signals, tidy_batch
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Stage

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.more_in_chaos]

KILLS = int(os.environ.get("TRENDLAKE_KILLS", "0"))
FIRST_DAY, LAST_DAY = 0.5, 2.5
SMALL = ("committing results", "writing run record")
FILES, SMALL_FILES = 24, 8
"""Entries that a run adds to its tables' folders, about; and that a small revision does."""


def begun(spark: SparkSession, folder: Path, pattern: str = "plain", *, tidy: bool = False) -> tuple[Signals, Run]:
    """A lake with some signals, and the run of all its days."""
    lake = signals(spark, folder, PATTERNS[pattern], profile=IN_WORKERS)
    lake.insert((tidy_batch if tidy else batch)(random.Random(1), 40))
    return lake, lake.run(FIRST_DAY, LAST_DAY, "any")


@pytest.mark.repeats
def test_a_run_killed_around_its_commit(spark: SparkSession, tmp_path: Path) -> None:
    """Before the commit the old rows stand, after it the new ones; the retry finds them, and its record says so."""
    lake, run = begun(spark, tmp_path / "project")
    with hunting(lake, run, 1) as hunt:
        hunt.change(first=True)
        all_steps(renamed(run, "first"))
        hunt.done()
        hunt.change()
        assert not hunt.attempt(RUN, "second", "before committing results")
        assert hunt.published() == hunt.before
        assert not hunt.attempt(("publish",), "second", "after committing results", last=True)
        hunt.done()
        hunt.finish(RUN, "second")
        assert_told(hunt, "publish", "second")
    replayed(lake, run)


@pytest.mark.long
@pytest.mark.parametrize("pattern", KINDS if CHAOS else KINDS[:1])
def test_a_small_revision_killed(spark: SparkSession, tmp_path: Path, pattern: str) -> None:
    """One whose files are written by itself: after its commit, or at each boundary in turn, and as some file appears,
    in the middle of Delta's commit too (`make chaos`)."""
    lake, run = begun(spark, tmp_path / "project", pattern, tidy=True)
    with hunting(lake, run, 2, tidy=True) as hunt:
        hunt.change(first=True)
        all_steps(renamed(run, "first"))
        hunt.change()
        if KILLS:
            hunt.each_boundary(REVISE, "small")
            for turn in range(KILLS // 10 if pattern == "plain" else KILLS // 40):
                hunt.change()
                random_kills(hunt, REVISE, f"small {turn}", 2, SMALL_FILES)
        else:
            assert not hunt.attempt(REVISE, "small", "after committing results", last=True)
            hunt.done()
            hunt.finish(REVISE, "small")
            assert_told(hunt, "revise", "small")
        passed = {place for _, places in hunt.attempts["small"] for place in places}
        assert passed <= {f"{when} {what}" for when in ("before", "after") for what in SMALL}
    replayed(lake, run)


@pytest.mark.chaos
def test_a_revision_killed_after_its_commit_and_a_run_at_random(spark: SparkSession, tmp_path: Path) -> None:
    """The same of a revision; and a run that is killed as some file appears."""
    lake, run = begun(spark, tmp_path / "project")
    with hunting(lake, run, 1, by_spark=True) as hunt:
        hunt.change(first=True)
        all_steps(renamed(run, "first"))
        hunt.change()
        assert not hunt.attempt(REVISE, "revision", "after merging results")
        hunt.done()
        hunt.finish(REVISE, "revision")
        assert_told(hunt, "revise", "revision")
        hunt.change()
        assert not hunt.attempt(RUN, "at random", killer=at_file(hunt.rng.randrange(1, FILES // 2), 60.0))
        hunt.finish(RUN, "at random")
    replayed(lake, run)


def assert_told(hunt: Hunt, stage: Stage, run_id: str) -> None:
    """The record of a publication that was done again after its commit tells of that commit."""
    record = find(hunt.lake.lake, hunt.run.name, run_id, stage)
    assert record is not None
    unrecorded = [item for item in record.checks if item.name == "unrecorded_publication"]
    assert [(item.data["stage"], item.data["run_id"]) for item in unrecorded] == [(stage, run_id)]
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (0, 0, 0)


@pytest.mark.chaos
@pytest.mark.parametrize("pattern", KINDS)
def test_killed_executors(spark: SparkSession, tmp_path: Path, pattern: str) -> None:
    """An executor's JVM or a Python worker, killed in the middle of a kernel: Spark does their part again, and the
    rows are right, each once."""
    lake = signals(spark, tmp_path / "project", PATTERNS[pattern], profile=IN_WORKERS)
    lake.insert(batch(random.Random(7), 40))
    run = lake.run(FIRST_DAY, LAST_DAY, "any")
    victim = Victim(lake.project.root, 0, master="local-cluster[2,1,1024]")
    try:
        assert victim.answer() == "ready", victim.log.read_text()
        with hunting(lake, run, "executors") as hunt:
            for turn in range(max(2, KILLS * 2 // 5 if pattern == "plain" else KILLS // 10)):
                if turn % 4 < 2:  # else the same is computed once more
                    hunt.change(first=turn == 0)
                hunt.beneath(victim, REVISE if turn % 4 == 1 else RUN, f"turn_{turn}", ("executor", "worker")[turn % 2])
    finally:
        victim.kill()
    replayed(lake, run)


@pytest.mark.parametrize("number", range(len(PATTERNS)))
@pytest.mark.skipif(not KILLS, reason="make chaos")
def test_killed_drivers(spark: SparkSession, number: int, tmp_path: Path) -> None:
    """A first run, a revision or a later run killed at each boundary in turn; then both at random moments. Revisions by
    Spark, and in the victim, where rows go to quarantine too."""
    name = list(PATTERNS)[number]
    rng = random.Random(name + PART)
    lake = signals(spark, tmp_path / "project", PATTERNS[name], profile=IN_WORKERS)
    lake.insert(batch(rng, 40))
    run = lake.run(FIRST_DAY, LAST_DAY, "any")
    with hunting(lake, run, name, by_spark=number % 2 == 1) as hunt:
        hunt.change(first=True)
        if number % 3 == 0:
            hunt.each_boundary(RUN, "first")  # all tables are made
        else:
            all_steps(renamed(run, "first"))
            hunt.done()
            hunt.change()
            hunt.each_boundary(*((REVISE, "revision") if number % 3 == 1 else (RUN, "second")))
        share = KILLS * 3 // (5 * len(PATTERNS))
        for turn in itertools.count():
            if hunt.kills >= share:
                break
            hunt.change()
            random_kills(hunt, REVISE if turn % 2 else RUN, f"at random {turn}", 1 + rng.randrange(3))
        replayed(lake, run)


def random_kills(hunt: Hunt, steps: tuple[str, ...], run_id: str, most: int, files: int = FILES) -> None:
    """Killed up to `most` times while it is done again and again, then done to its end here."""
    for _ in range(most):
        chosen, seconds = hunt.rng.random(), hunt.seconds[steps]
        killer = at_random(chosen * seconds) if hunt.rng.random() < 0.5 else at_file(1 + int(chosen * files), seconds)
        survived = hunt.attempt(steps, run_id, killer=killer)
        hunt.seconds[steps] *= 0.8 if survived else 1.1
        if survived:
            break
    hunt.finish(steps, run_id)
