"""Histories of a source whose events have intervals: results are those of a recomputation, whatever has changed, also
where an event ends long after the windows that it is in."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.support import plain_writer
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_changes import change
from tests.support.signals import CONTRACT, DAY_US, IN_DRIVER, IN_WORKERS, START_US, Signals, batch, signals, tidy_batch
from trendlake.pipelines.lake import limits
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.results.next_windows import next_windows
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.more_in_chaos]

OF_INTERVALS = CONTRACT.replace(
    "      - {name: place, logicalType: string}\n",
    "      - {name: place, logicalType: string}\n      - {name: began, logicalType: timestamp}\n",
)
HEAD = "kind: trends\ninterval_start: began\n"
PATTERNS = {
    "time in a state": """\
pattern: A a
where: ["[place]"]
return: {lasted: SUM(a.duration), n: COUNT(*), most: MAX(a.duration)}
group_by: [place]
origin: 2026-01-01T03:00:00Z
within: 8 hours
""",
    "windows that overlap": """\
pattern: A a+
where: ["a.price < NEXT(a).price", "a.duration >= 1 hour"]
return: {lasted: SUM(a.duration), mean: AVG(a.duration), n: COUNT(*)}
having: ["n > 1"]
within: 2 days
slide: 8 hours
""",
    "a NOT": """\
for_each: {least: [2, 5]}
pattern: SEQ(A a, NOT C c, B b?)
where: ["a.price >= $least"]
return: {n: COUNT(*), first: FIRST(a.remark)}
within: 12 hours
""",
    "days of New York": """\
time_zone: America/New_York
pattern: (A a OR B b)+
where: ["[place]"]
select: partition_contiguous
output: maximal
return: {n: COUNT(*), lasted: MAX(a.duration)}
group_by: [place]
within: 1 day
""",
}
ALWAYS = ("windows that overlap",)


def in_intervals(rng: random.Random, lake: Signals) -> None:
    """Some events begin up to two days before they end, some of the others with it; none begins later."""

    def begun(row: plain_writer.Row) -> plain_writer.Row:
        began, time = row["began"], row["event_time"]
        if time is not None and (rng.random() < 0.2 if began is None else began > time):
            return row | {"began": time - timedelta(minutes=rng.choice([0, 30, 60, 300, 480, 1440, 2880]))}
        return row

    plain_writer.change(lake.spark, lake.source, begun)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12 if CHAOS else 1))
@pytest.mark.parametrize(
    "pattern", [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.repeats) for name in PATTERNS]
)
def test_a_revision_is_a_recomputation(spark: SparkSession, tmp_path: Path, pattern: str, seed: int) -> None:
    """As `test_random_histories`. Events end up to three days after the last window that is published."""
    rng = random.Random(f"{pattern} {seed}")
    profile = rng.choice([IN_DRIVER, IN_WORKERS])
    lake = signals(spark, tmp_path / "project", HEAD + PATTERNS[pattern], OF_INTERVALS, profile)
    tidy = rng.random() < 0.6
    lake.insert(tidy_batch(rng, 40) if tidy else batch(rng, 40, 0.0, 5.5))
    in_intervals(rng, lake)
    in_intervals(rng, lake)
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    agree(lake, run)
    for number in range(3):
        for _ in range(rng.randrange(1, 4)):
            change(rng, lake, tidy=tidy)
            in_intervals(rng, lake)
        with patch.object(limits, "REVISED", rng.choice([0, limits.REVISED])):  # 0: all is left to Spark
            revise(renamed(run, f"revision {number}"))
        agree(lake, run)
    replayed(lake, run)


@pytest.mark.long
@pytest.mark.parametrize("most", [0, limits.REVISED])
def test_a_late_end(spark: SparkSession, tmp_path: Path, most: int, monkeypatch: Any) -> None:
    """A state that ends five days later is in all windows from its start on, and only there."""
    monkeypatch.setattr(limits, "REVISED", most)
    lake = signals(spark, tmp_path / "project", HEAD + PATTERNS["time in a state"], OF_INTERVALS)
    row = {"event_type": "A", "place": "n", "price": 1, "remark": ""}
    times = [START_US + DAY_US * hour // 24 for hour in (13, 16, 160)]
    lake.insert([row | {"event_id": f"e{n}", "event_time": time} for n, time in enumerate(times[:2])])
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    lake.insert([row | {"event_id": "late", "event_time": times[2]}])
    lake.update({"event_id": "late"}, began=lambda _: None)
    lake.update({"event_id": "late"}, event_time=lambda time: time, began=lambda _: _moment(30))
    record = revise(renamed(run, "revision"))
    # windows of 8 hours from 03:00: those of the hours 27, 35, 43 and 51, of the last of which the run has published
    assert record.windows == len([hour for hour in range(3, 60, 8) if hour + 8 > 30 and hour + 8 <= 60])
    agree(lake, run)
    replayed(lake, run)


def _moment(hour: int) -> Any:
    return datetime.fromtimestamp(START_US // 1_000_000 + 3600 * hour, UTC)


def test_the_oldest_window(spark: SparkSession, tmp_path: Path) -> None:
    """The first windows are those in which the first event begins."""
    lake = signals(spark, tmp_path / "project", HEAD + PATTERNS["time in a state"], OF_INTERVALS)
    row = {"event_type": "A", "place": "n", "price": 1, "remark": "", "event_id": "e0"}
    lake.insert([row | {"event_time": START_US + 2 * DAY_US}])
    lake.update({}, began=lambda _: _moment(4))
    run = lake.run(0.0, 3.0, "first")
    ledger = read_ledger(run.lake, run.name, run.plan, run.contract.name)
    following = next_windows(run, ledger, Versions.one(lake.version()))
    assert run.plan.windows.start(following.before[0]) == START_US + DAY_US * 3 // 24
