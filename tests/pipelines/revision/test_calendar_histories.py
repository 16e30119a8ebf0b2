"""Histories of a source while clocks are set: results in calendar windows are those of a recomputation, whatever has
changed and wherever the runs were cut. After an edit of the zone database exactly the touched windows are computed
again."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pyspark.sql import SparkSession

import tests.support.signals as support
from tests.conftest import CHAOS
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_changes import change
from tests.support.signals import IN_DRIVER, IN_WORKERS, batch, signals, tidy_batch
from trendlake.cep_core.events import zones
from trendlake.cep_core.events.windows import CalendarWindows
from trendlake.cep_core.events.zones import Clock
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.revision.scope import gaps_of, older_versions
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.backfill import Chunk, backfill, stale_chunks
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.more_in_chaos]

SEEDS = range(12 if CHAOS else 1)
PATTERN = """\
kind: trends
time_zone: {zone}
pattern: SEQ(A a+, B b?)
where: ["[place]", "hour(a.event_time) <= hour(NEXT(a).event_time)"]
return: {{trends: COUNT(*), most: MAX(a.price)}}
group_by: [place]
{windows}
"""
CASES = {
    "days of New York in spring": ("America/New_York", "2013-03-09", "within: 1 day"),
    "days of New York in autumn": ("America/New_York", "2013-11-02", "within: 1 day\norigin: 2013-01-01T04:00"),
    "seven days by one": ("America/New_York", "2013-03-09", "within: 7 days\nslide: 1 day"),
    "the day that Apia skipped": ("Pacific/Apia", "2011-12-29", "within: 1 day"),
    "seven days by one around it": ("Pacific/Apia", "2011-12-29", "within: 7 days\nslide: 1 day"),
    "weeks of Berlin": ("Europe/Berlin", "2024-03-30", "within: 1 week"),
    "months of Sydney": ("Australia/Sydney", "2026-09-29", "within: 1 month\norigin: 2026-01-01T02:30"),
    "days without midnight": ("America/Sao_Paulo", "2018-11-03", "within: 1 day"),
    "days of half an hour less": ("Australia/Lord_Howe", "2026-10-03", "within: 2 days\nslide: 1 day"),
}

ALWAYS = ("days of New York in autumn", "seven days by one around it")

DRAWN = [case if case in ALWAYS else pytest.param(case, marks=pytest.mark.repeats) for case in CASES]


def micros(day: str) -> int:
    return (datetime.fromisoformat(day).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", DRAWN)
def test_a_revision_is_a_recomputation(
    spark: SparkSession, tmp_path: Path, monkeypatch: Any, case: str, seed: int
) -> None:
    """As `test_random_histories`, over a change of clocks."""
    zone, day, windows = CASES[case]
    monkeypatch.setattr(support, "START_US", micros(day))
    rng = random.Random(f"{case} {seed}")
    workers = CHAOS and rng.random() < 0.5
    profile = IN_WORKERS if workers else IN_DRIVER
    text = PATTERN.format(zone=zone, windows=windows)
    lake = signals(spark, tmp_path / "project", text, profile=profile)
    tidy = rng.random() < 0.6
    lake.insert(tidy_batch(rng, 40) if tidy else batch(rng, 40))
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    agree(lake, run)
    for number in range(3):
        for _ in range(rng.randrange(1, 4)):
            change(rng, lake, tidy=tidy)
        with patch.object(limits, "REVISED", rng.choice([0, limits.REVISED])):  # 0: all is left to Spark
            revise(renamed(run, f"revision {number}"))
        agree(lake, run)
    replayed(lake, run)


@pytest.mark.long
@pytest.mark.parametrize("windows", ["within: 1 day", "within: 7 days\nslide: 1 day"])
def test_runs_that_follow_one_another_leave_no_gap(
    spark: SparkSession, tmp_path: Path, monkeypatch: Any, windows: str
) -> None:
    """The day that Apia skipped is none, though its windows have a number."""
    monkeypatch.setattr(support, "START_US", micros("2011-12-29"))
    lake = signals(spark, tmp_path / "project", PATTERN.format(zone="Pacific/Apia", windows=windows))
    lake.insert(tidy_batch(random.Random(1), 40))
    edges = [0, 0.6, 1.1, 1.7, 2.2, 2.8]
    for number, (start, end) in enumerate(pairwise(edges)):
        all_steps(lake.run(start, end, f"part {number}"))
    run = lake.run(edges[0], edges[-1], "whole")
    ledger = read_ledger(run.lake, run.name, run.plan, run.contract.name)
    assert gaps_of(ledger.segments) == []
    agree(lake, run)
    owned = [j for item in ledger.segments for j in range(item.first, item.last + 1)]
    assert [j for j in owned if run.plan.windows.exists(j)] == [j for j in run.windows if run.plan.windows.exists(j)]


MOVED = 30
"""Minutes by which a fake database sets the clocks later."""


@pytest.fixture
def other_database(monkeypatch: Any) -> Any:
    """From when it is called, New York's clocks are set half an hour later in the spring of 2013."""
    real = zones._clock

    def moved(name: str) -> Clock:
        clock = real(name)
        late = np.where(clock.moments == 1_362_898_800_000_000, clock.moments + MOVED * 60_000_000, clock.moments)
        return Clock(late, clock.offsets) if name == "America/New_York" else clock

    return lambda: monkeypatch.setattr(zones, "_clock", moved)


@pytest.mark.long
@pytest.mark.parametrize(
    ("windows", "touched"),
    [
        ("within: 1 day", ["2013-03-09", "2013-03-10", "2013-03-11"]),
        ("within: 1 day\norigin: 2013-01-01T02:30", ["2013-03-08", "2013-03-09", "2013-03-10"]),
    ],
)
def test_windows_of_another_database(
    spark: SparkSession, tmp_path: Path, monkeypatch: Any, other_database: Any, windows: str, touched: list[str]
) -> None:
    """The windows that touch the difference, and one at each side, are stale: they are named and computed again."""
    monkeypatch.setattr(support, "START_US", micros("2013-03-07"))
    lake = signals(spark, tmp_path / "project", PATTERN.format(zone="America/New_York", windows=windows))
    for since in (0.0, 3.0):
        rows = batch(random.Random(since), 30, since, since + 3.0)
        lake.insert([row | {"event_id": f"{since}{n}"} for n, row in enumerate(rows)])
    run = lake.run(0.3, 5.5, "first")
    all_steps(run)
    assert stale(run) is None
    other_database()
    run = lake.run(0.3, 5.5, "first")
    old = stale(run)
    assert old is not None
    assert old.clocks == old.windows
    assert dates(run, old.clocks) == touched
    before = latest_version(lake.lake, lake.warehouse.results(run.name))
    checks = {check.name: check for check in revise(renamed(run, "revision")).checks}
    assert checks["stale_zone"].data is not None
    assert [tuple(stretch) for stretch in checks["stale_zone"].data["windows"]] == list(old.clocks)
    todo = stale_chunks(run.plan.windows, old, None, newest_first=False)
    assert [j for chunk in todo for j in run.plan.windows.ending_in(chunk.start_us, chunk.end_us)] == [
        j for first, last in old.windows for j in range(first, last + 1)
    ]
    done = list(backfill(lake.lake, lambda chunk: of_chunk(run, chunk), todo, stale=True))
    assert all(record is not None for _, record in done)
    assert stale(run) is None
    agree(lake, run)
    replayed(lake, run)
    assert latest_version(lake.lake, lake.warehouse.results(run.name)) >= before


def stale(run: Run) -> Any:
    return older_versions(run, read_ledger(run.lake, run.name, run.plan, run.contract.name))


def of_chunk(run: Run, chunk: Chunk) -> Run:
    return replace(run, run_id=chunk.run_id, start_us=chunk.start_us, end_us=chunk.end_us)


def dates(run: Run, stretches: Any) -> list[str]:
    windows = run.plan.windows
    assert isinstance(windows, CalendarWindows)
    numbers = np.array([j for first, last in stretches for j in range(first, last + 1)])
    return [str(np.datetime64(day, "D")) for day in windows.dates(numbers).tolist()]
