"""The promise of revising: whatever happens to the source, and whenever it is revised, the results are those of a full
recomputation at that version, and their change feed, replayed from nothing, gives them again.

`TRENDLAKE_CHAOS` says how many histories are tried for each pattern; `make chaos` tries many.
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.conftest import CHAOS, DRAWS, PART
from tests.random.profile import CI
from tests.support.flights import all_steps, renamed
from tests.support.promises import HISTORIES as DONE
from tests.support.promises import REVISIONS, agree, replayed
from tests.support.signal_changes import change
from tests.support.signal_patterns import ALWAYS, PATTERNS, REPEATS
from tests.support.signals import (
    DAY_US,
    IN_DRIVER,
    IN_WORKERS,
    LEVELS,
    RATES,
    START_US,
    Signals,
    batch,
    signals,
    tidy_batch,
)
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.revision import rewrite as local_rewrite
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.more_in_chaos]

HISTORIES = DRAWS
COMPUTED_BY = (IN_WORKERS, IN_DRIVER) if CHAOS else (IN_DRIVER,)
"""Who computes what is revised later: how its rows lie in files is the same."""
FIRST_DAY, LAST_DAY = 0.5, 2.5
"""The first half day and the last are not asked for: what happens there is not published."""


@pytest.fixture(scope="module")
def hour_by_hour(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Signals:
    """Three events on the second day, published."""
    folder = tmp_path_factory.mktemp("hours") / "project"
    lake = signals(spark, folder, PATTERNS["arcs that come and go"])
    row = {"event_type": "B", "place": "n", "price": 1, "remark": ""}
    hours = (0, 1, 2)
    lake.insert([row | {"event_id": f"e{n}", "event_time": START_US + DAY_US + n * DAY_US // 24} for n in hours])
    all_steps(lake.run(FIRST_DAY, LAST_DAY, "first"))
    return lake


@pytest.mark.long
@pytest.mark.parametrize("most", [pytest.param(0, marks=pytest.mark.repeats), limits.REVISED])
def test_a_row_that_moves_in_time(hour_by_hour: Signals, tmp_path: Path, most: int, monkeypatch: Any) -> None:
    """Its key stays: it is told apart by its events, not by when they were."""
    monkeypatch.setattr(limits, "REVISED", most)
    monkeypatch.setattr(local_rewrite, "frame_of", None)  # what is computed here is committed without MERGE
    lake = hour_by_hour.copied(tmp_path / "project")
    run = lake.run(FIRST_DAY, LAST_DAY, "first")
    for step, interval in enumerate((timedelta(minutes=30), timedelta(hours=7))):
        lake.update({}, event_time=lambda time, later=interval: time + later)
        record = revise(renamed(run, f"moved {step}"))
        assert (record.staged_version is None) == (most > 0)
        assert record.rows_inserted == record.rows_deleted == 0 < (record.rows_updated or 0)
        agree(lake, run)
    replayed(lake, run)


@pytest.mark.long
@pytest.mark.parametrize("most", [0, limits.REVISED] if CHAOS else [limits.REVISED])
@pytest.mark.parametrize(
    ("pattern", "column", "values"),
    [
        ("doubles as groups", "level", LEVELS),
        ("floats, dates and texts as groups", "rate", RATES),
        ("doubles as partitions", "level", LEVELS),
        ("matches of doubles", "level", LEVELS),
    ],
)
def test_values_that_are_one_group(
    spark: SparkSession, tmp_path: Path, most: int, pattern: str, column: str, values: tuple[Any, ...], monkeypatch: Any
) -> None:
    """A NaN is a NULL and -0.0 is 0.0 to the kernels: an event of one is revised with those of the other."""
    monkeypatch.setattr(limits, "REVISED", most)
    lake = signals(spark, tmp_path / "project", PATTERNS[pattern])
    row = {"event_time": START_US + DAY_US, "place": "n", "price": 5, "remark": "", "level": None, "rate": None}
    distinct = list(dict.fromkeys(map(repr, values)))
    events = [
        row
        | {
            "event_id": f"e{kind}{n}",
            "event_type": kind,
            column: values[[*map(repr, values)].index(text)],
            "event_time": START_US + DAY_US + hour * DAY_US // 24,
        }
        for n, text in enumerate(distinct)
        for hour, kind in enumerate("AB")
    ]
    lake.insert(events[:-2])
    run = lake.run(FIRST_DAY, LAST_DAY, "first")
    all_steps(run)
    for step, value in enumerate((float("nan"), -0.0, None, 0.0)):
        hour = START_US + DAY_US + 30 * 60 * 1_000_000 * (step + 3)
        lake.insert(
            [
                row | {"event_id": f"n{step}{kind}", "event_type": kind, column: value, "event_time": hour + n}
                for n, kind in enumerate("AB")
            ]
        )
        record = revise(renamed(run, f"revision {step}"))
        assert (record.staged_version is None) == (most > 0)
        agree(lake, run)
    replayed(lake, run)


@pytest.mark.long
@pytest.mark.parametrize(
    "pattern", PATTERNS if CHAOS else [*ALWAYS, *(pytest.param(name, marks=pytest.mark.repeats) for name in REPEATS)]
)
@settings(CI, max_examples=HISTORIES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_a_revision_is_a_recomputation(spark: SparkSession, pattern: str, seed: int) -> None:
    """Random events, a run, and changes of every sort, revised after some of them, by Spark or in this process; what is
    computed here is committed by MERGE at times."""
    rng = random.Random(f"{pattern} {seed}{PART}")
    with TemporaryDirectory() as folder:
        profile = random.Random(f"who computes {seed}{PART}").choice(COMPUTED_BY)
        lake = signals(spark, Path(folder) / "project", PATTERNS[pattern], profile=profile)
        tidy, most_allowed = rng.random() < 0.6, 9
        lake.insert(tidy_batch(rng, 40) if tidy else batch(rng, 40))
        run = lake.run(FIRST_DAY, LAST_DAY, "first")
        all_steps(run)
        agree(lake, run)
        for number in range(rng.randrange(2, 4)):
            done = [change(rng, lake, tidy=tidy) for _ in range(rng.randrange(1, 4))]
            if rng.random() < 0.3:
                done.append("contract")
                lake.edit_contract(most_allowed := other(rng, most_allowed))
                run = lake.run(FIRST_DAY, LAST_DAY, f"contract {number}")
            if rng.random() < 0.15:
                done.append("contract between steps")
                most_allowed = edited_between_steps(rng, lake, most_allowed, f"between {number}")
                run = lake.run(FIRST_DAY, LAST_DAY, f"after {number}")
            revised, rewritten = rng.choice(
                [(0, 0), (limits.REVISED, -1), *[(limits.REVISED, limits.REWRITTEN_BYTES)] * 2]
            )
            with patch.multiple(limits, REVISED=revised, REWRITTEN_BYTES=rewritten):  # 0: all is left to Spark
                record = revise(renamed(run, f"revision {number}"))
            road = "here" if record.rows_out is not None and record.staged_version is None else "by Spark"
            REVISIONS[road] += 1
            note(f"{done}, {road}: {record.rows_inserted}, {record.rows_updated}, {record.rows_deleted}")
            agree(lake, run)
        replayed(lake, run)
        DONE[pattern] += 1


def other(rng: random.Random, most: int) -> int:
    return rng.choice([bound for bound in (6, 8, 9) if bound != most])


def edited_between_steps(rng: random.Random, lake: Signals, most: int, run_id: str) -> int:
    """A run whose contract is edited on its way: the next step refuses, and nothing is published. The new bound."""
    run, steps, stop = lake.run(FIRST_DAY, LAST_DAY, run_id), list(STEPS.values()), rng.randrange(1, len(STEPS))
    before = latest_version(lake.lake, lake.warehouse.results(run.name))
    for step in steps[:stop]:
        step(run)
    lake.edit_contract(most := other(rng, most))
    with pytest.raises(StepOrderError, match="contract"):
        steps[stop](lake.run(FIRST_DAY, LAST_DAY, run_id))
    assert latest_version(lake.lake, lake.warehouse.results(run.name)) == before
    return most
