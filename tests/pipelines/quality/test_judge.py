"""check_source of a small table, in this process and by Spark: the same record, whatever is in the table."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import CHAOS, DRAWS
from tests.support.flights import Flights, flight
from trendlake.pipelines.errors import ToleranceError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import exists, latest_version
from trendlake.pipelines.lake.road import NotHere, answer_of
from trendlake.pipelines.quality.judge import judge_small
from trendlake.pipelines.results.source_events import SourceEvents
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_source import check_source

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]

DAYS = ("2013-03-02", "2013-03-04")
ODD: list[dict[str, Any]] = [
    {"event_time": None},
    {"origin": None},
    {"flight": -3},
    {"dep_delay": float("nan")},
    {"distance": -0.0},
]


SHARES = [(0.0, 0.0, 0.0), (0.1, 0.1, 0.1), *([(0.02, 0.0, 0.0), (0.0, 0.03, 0.0), (0.0, 0.0, 0.2)] if CHAOS else [])]


def rows(rng: random.Random, odd: float, repeats: float, copies: float) -> list[dict[str, Any]]:
    """Flights of four days; the share `odd` of them with a value of `ODD`, the share `repeats` with another's id, the
    share `copies` once more."""
    drawn = [
        flight(number, f"2013-03-{rng.randrange(1, 5):02d}T{rng.randrange(24):02d}:00:00") for number in range(1, 41)
    ]
    for row in drawn:
        if rng.random() < odd:
            row |= rng.choice(ODD)
        if rng.random() < repeats:
            row["event_id"] = rng.choice(drawn)["event_id"]
    return drawn + [row for row in drawn if rng.random() < copies]


def checked(run: Run, monkeypatch: pytest.MonkeyPatch, limit: int) -> tuple[Any, ...]:
    """What check_source records where `limit` rows are few."""
    with monkeypatch.context() as patch:
        patch.setattr(limits, "JUDGED_WHOLE", limit)
        patch.setattr(limits, "JUDGED", limit)
        record: Record = run.record("check_source")
        try:
            record = check_source(replace(run, run_id=f"{run.run_id}, up to {limit}"))
        except ToleranceError as error:
            return (str(error),)
    return record.rows_in, record.rows_out, record.rows_quarantined, record.checks


def set_apart(run: Run) -> dict[str, Counter[tuple[Any, ...]]]:
    """What is in the quarantine, by the run that wrote it, without the moment."""
    path = run.warehouse.quarantine(run.contract.name)
    if not exists(run.lake, path):
        return {}
    by_run: dict[str, Counter[tuple[Any, ...]]] = {}
    for row in run.lake.spark.read.format("delta").load(path).drop("quarantined_at").toArrow().to_pylist():
        by_run.setdefault(row.pop("run_id"), Counter())[tuple(map(str, row.values()))] += 1
    return by_run


@pytest.mark.parametrize("shares", SHARES)
def test_as_by_spark(lake: Flights, shares: tuple[float, float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and keys that break the contract inside of the run's windows and outside; the good events, which the next
    steps read, are the same too."""
    rng = random.Random(f"{shares}")
    for _ in range(DRAWS):
        lake.append(rows(rng, *shares))
    run = lake.run(lake.pattern(), *DAYS, "r")
    mine, theirs = (checked(run, monkeypatch, limit) for limit in (limits.JUDGED_WHOLE, -1))
    assert mine == theirs
    written = set_apart(run)
    assert written.get(f"r, up to {limits.JUDGED_WHOLE}") == written.get("r, up to -1")
    if len(mine) > 1:
        version = latest_version(lake.lake, run.warehouse.source("flights"))
        record = Record("r", None, "check_source", source_version=version, rows_quarantined=mine[2], checks=mine[3])
        events = SourceEvents.of([(run, record)], run.plan)
        good = answer_of(events.here(limits.JUDGED_WHOLE)).select(list(run.plan.columns)).to_pylist()
        assert Counter(map(str, good)) == Counter(map(str, events.frame().toArrow().to_pylist()))


def test_who_judges(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small table is judged here, whatever is wrong with it. A large one unless a row that is not read may repeat a
    key of the run's windows."""
    inside = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append(inside)
    run = lake.run(lake.pattern(), *DAYS, "r")

    def judged(most: int = 30) -> tuple[int, int] | None:
        monkeypatch.setattr(limits, "JUDGED_WHOLE", most)
        table = table_here(lake.lake, lake.warehouse.source("flights"))
        judgement = judge_small(table, run.contract, run.span, run.project.state)
        return None if isinstance(judgement, NotHere) else (judgement.rows, judgement.bad.num_rows)

    assert judged() == judged(20) == (20, 0)
    lake.append([flight(50, "2013-03-20T10:00:00", flight=-1), flight(51, "2013-03-20T10:00:00")])
    lake.append([flight(51, "2013-03-21T10:00:00")])  # a key that is there twice, elsewhere
    assert judged() == judged(20) == (20, 0)
    lake.append([flight(3, "2013-03-22T10:00:00", flight=-1)])  # breaks a rule: its key does not count
    assert judged() == (20, 0)
    assert judged(20) is None
    lake.append([flight(3, "2013-03-23T10:00:00")])
    assert judged() == (20, 1)
    assert judged(20) is None


def test_broken_rows_are_quarantined_as_by_spark(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows with the same reasons, once; a row that breaks two rules is one row, under the first."""
    rows = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append([*rows, flight(30, "2013-03-02T10:00:00", flight=-1, tailnum="X"), flight(31, "2013-03-20T10:00:00")])
    run = lake.run(lake.pattern(), *DAYS, "r")
    written = []
    for limit in (limits.JUDGED_WHOLE, limits.JUDGED_WHOLE, -1):
        assert checked(run, monkeypatch, limit)[:3] == (21, 20, 1)
        table = lake.spark.read.format("delta").load(lake.warehouse.quarantine("flights"))
        written.append([tuple(row) for row in table.drop("run_id", "quarantined_at").collect()])
    assert written[0] == written[1]
    assert set(written[2]) == set(written[0])
    assert len(written[0]) == 1
