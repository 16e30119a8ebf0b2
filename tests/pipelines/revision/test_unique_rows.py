"""Sources in which mostly no key comes twice: there a revision looks at the rows that changed only. It agrees with a
recomputation all the same: where windows show several versions, where rows go and come again as they were, and where a
key does come twice after all."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_random_histories import HISTORIES
from tests.random.profile import CI
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import DAY_US, START_US, Signals, signals
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.quality import scan as scans
from trendlake.pipelines.quality.quarantine import repeated
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = (0.5, 2.5)


def row(number: int, hour: int, **other: Any) -> dict[str, Any]:
    """A good event with an id of its own."""
    event = {"event_id": f"e{number}", "event_time": START_US + hour * DAY_US // 24, "event_type": "A"}
    return {**event, "place": "n", "price": number % 10, "remark": "", **other}


ROWS = [row(n, 20 + n) for n in range(4)] + [row(n, 40 + n) for n in range(4, 8)]


def some(rng: random.Random, first: int, rows: int) -> list[dict[str, Any]]:
    return [
        row(first + i, rng.randrange(72), event_type=rng.choice("AAB"), place=rng.choice("ns"), price=rng.randrange(12))
        for i in range(rows)
    ]


@pytest.mark.chaos
@settings(CI, max_examples=HISTORIES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_a_revision_is_a_recomputation(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        lake = signals(spark, Path(folder) / "project", PATTERNS["plain"])
        there = some(rng, 0, 40)
        lake.insert(there)
        run = lake.run(*DAYS, "first")
        all_steps(run)
        gone: list[dict[str, Any]] = []
        for number in range(2):
            changes = [happening(rng, lake, there, gone, 100 * number + at) for at in range(rng.randrange(2, 5))]
            record = revise(renamed(run, f"revision {number}"))
            note(f"{changes}: {record.rows_inserted}, {record.rows_updated}, {record.rows_deleted}, {record.note}")
            agree(lake, run)
        replayed(lake, run)


def happening(
    rng: random.Random, lake: Signals, there: list[dict[str, Any]], gone: list[dict[str, Any]], number: int
) -> str:
    """One thing that happens to the source, or a run of some of its windows; its word."""
    what = rng.choice(["late", "delete", "delete", "restore", "restore", "reprice", "twice", "run", "run"])
    event = rng.choice(there)
    ident = event["event_id"]
    if what == "late":
        new = some(rng, 1000 + number * 10, rng.randrange(1, 4))
        there.extend(new)
        lake.insert(new)
    elif what == "delete" and event not in gone:
        gone.append(event)
        lake.delete(event_id=ident)
    elif what == "restore" and gone:
        lake.insert([gone.pop(rng.randrange(len(gone)))])
    elif what == "reprice" and event not in gone:
        event["price"] = rng.randrange(12)
        lake.update({"event_id": ident}, price=event["price"])
    elif what == "twice" and rng.random() < 0.3:
        lake.insert([{**event, "price": rng.randrange(9)}])
    elif what == "run":
        first = rng.randrange(1, 4) / 2
        all_steps(lake.run(first, first + 0.5, f"run {number}"))
    return what


@pytest.fixture(scope="module")
def original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Signals:
    """Eight events of two days, published."""
    lake = signals(spark, tmp_path_factory.mktemp("original") / "project", PATTERNS["plain"])
    lake.insert(ROWS)
    all_steps(lake.run(*DAYS, "first"))
    return lake


@pytest.mark.long
def test_a_row_that_went_and_came_again(original: Signals, tmp_path: Path) -> None:
    """It is as it was in the oldest version that a window shows; its own window shows a newer one, without it."""
    lake = original.copied(tmp_path / "project")
    run = lake.run(*DAYS, "first")
    lake.delete(event_id="e2")
    all_steps(lake.run(0.5, 1.5, "without it"))
    lake.insert([ROWS[2]])
    record = revise(renamed(run, "with it again"))
    assert record.rows_updated
    agree(lake, run)


@pytest.mark.long
def test_that_no_key_comes_twice_is_known_from_revision_to_revision(original: Signals, tmp_path: Path) -> None:
    """Until one does, anywhere in the table."""
    lake = original.copied(tmp_path / "project")
    run = lake.run(*DAYS, "first")
    lake.insert([row(10, 30)])
    assert says_unique(run, "one more")
    lake.update({"event_id": "e3"}, price=lambda price: 9 - price)
    assert says_unique(run, "changed")
    lake.update({"event_id": "e3"}, remark="x")
    assert says_unique(run, "changed where the pattern does not look")
    agree(lake, run)
    lake.insert([row(1, 2)])  # long before the windows
    assert not says_unique(run, "twice")
    agree(lake, run)
    all_steps(lake.run(*DAYS, "whole"))
    lake.insert([row(11, 31)])
    assert not says_unique(run, "twice all the same")
    agree(lake, run)
    replayed(lake, run)


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ({"price": 1}, {"event_time": lambda time: time + timedelta(days=1)}),
        pytest.param({"price": 99}, {"price": 5}, marks=pytest.mark.chaos),
    ],
)
def test_a_key_that_was_there_already_is_repeated_all_the_same(
    spark: SparkSession, tmp_path: Path, where: dict[str, Any], change: dict[str, Any]
) -> None:
    """No key comes that was not there: one of two rows before the windows moves in, a bad row of a good one's key is
    repaired."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    inside = [row(n, 20 + n) for n in range(2, 8)]
    lake.insert([*inside, row(20, 1, price=1), row(20, 2, price=2), row(3, 25, price=99)])
    run = lake.run(*DAYS, "first")
    all_steps(run)
    lake.update({"event_id": "e5"}, remark="seen")
    assert says_unique(run, "no other key")
    lake.update(where, **change)
    assert not says_unique(run, "repeated")
    agree(lake, run)


def says_unique(run: Run, name: str) -> bool:
    record = revise(renamed(run, name))
    assert record.note is not None
    return bool(record.note["unique"])


@pytest.mark.long
@pytest.mark.parametrize(
    "again", [None, pytest.param(199_999, marks=pytest.mark.repeats), pytest.param(-(2**63), marks=pytest.mark.repeats)]
)
@pytest.mark.parametrize("small", [0, pytest.param(1 << 40, marks=pytest.mark.repeats)])
def test_a_number_that_is_there_twice(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, small: int, again: int | None
) -> None:
    """Wherever its two places are, in one block or in several, among numbers of either sign."""
    monkeypatch.setattr(scans, "SMALL", small)
    every = spark.range(-200_000, 200_000, 1, 3).unionByName(spark.createDataFrame([(2**63 - 1,), (-(2**63),)], ["id"]))
    if again is not None:
        every = every.unionByName(spark.createDataFrame([(again,)], ["id"]))
    rules = [Rule("key", "unique", ("id",))]
    assert repeated(every, rules, None) == (again is not None)
    assert repeated(every.where("id < 0"), rules, every.where("id >= 0")) == (again == -(2**63))
    assert repeated(every.where("id < 1000"), rules, every.where("id >= 199000")) == (again == -(2**63))
    assert not repeated(every.limit(0), rules, every)
