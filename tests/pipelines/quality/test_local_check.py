"""check_source of a small table, in this process and by Spark: the same record, whatever is in the table."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pipelines.delta.local_reader import table_here
from pipelines.errors import LocalUnsupportedError, ToleranceError
from pipelines.quality import local_check
from pipelines.quality.local_check import judge_small
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.steps.check_source import check_source
from tests.conftest import CHAOS
from tests.support.flights import Lake, flight

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]

DAYS = ("2013-03-02", "2013-03-04")
ODD: list[dict[str, Any]] = [
    {"event_time": None}, {"origin": None}, {"flight": -3}, {"dep_delay": float("nan")}, {"distance": -0.0},
]  # fmt: skip


SHARES = [(0.0, 0.0), (0.1, 0.1), *([(0.02, 0.0), (0.0, 0.03)] if CHAOS else [])]


def rows(rng: random.Random, odd: float, repeats: float) -> list[dict[str, Any]]:
    """Flights of four days; the share `odd` of them with a value of `ODD`, the share `repeats` with another's id."""
    drawn = [
        flight(number, f"2013-03-{rng.randrange(1, 5):02d}T{rng.randrange(24):02d}:00:00") for number in range(1, 41)
    ]
    for row in drawn:
        if rng.random() < odd:
            row |= rng.choice(ODD)
        if rng.random() < repeats:
            row["event_id"] = rng.choice(drawn)["event_id"]
    return drawn


def checked(run: Run, monkeypatch: pytest.MonkeyPatch, limit: int) -> tuple[Any, ...]:
    """What check_source records where `limit` rows are few."""
    with monkeypatch.context() as patch:
        patch.setattr(local_check, "ROWS", limit)
        record: Record = run.record("check_source")
        try:
            record = check_source(replace(run, run_id=f"{run.run_id}, up to {limit}"))
        except ToleranceError as error:
            return (str(error),)
    return record.rows_in, record.rows_out, record.rows_quarantined, record.checks


@pytest.mark.parametrize(("odd", "repeats"), [(0.0, 0.0), (0.1, 0.1), *([(0.02, 0.0), (0.0, 0.03)] if CHAOS else [])])
def test_as_by_spark(lake: Lake, odd: float, repeats: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and keys that break the contract inside of the run's windows and outside."""
    rng = random.Random(f"{odd} {repeats}")
    lake.append(rows(rng, odd, repeats))
    run = lake.run(lake.pattern(), *DAYS, "r")
    assert checked(run, monkeypatch, local_check.ROWS) == checked(run, monkeypatch, -1)


def test_who_judges(lake: Lake) -> None:
    """A table without a fault is judged here; also where what is wrong lies outside of the run's windows, unless it
    repeats a key of theirs."""
    inside = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append(inside)
    run = lake.run(lake.pattern(), *DAYS, "r")

    def judged() -> int | None:
        try:
            table = table_here(lake.spark, lake.warehouse.source("flights"))
            return judge_small(table, run.contract, run.span, run.project.state).rows
        except LocalUnsupportedError:
            return None

    assert judged() == 20
    lake.append([flight(50, "2013-03-20T10:00:00", flight=-1), flight(51, "2013-03-20T10:00:00")])
    lake.append([flight(51, "2013-03-21T10:00:00")])  # a key that is there twice, elsewhere
    assert judged() == 20
    lake.append([flight(3, "2013-03-22T10:00:00", flight=-1)])  # breaks a rule: its key does not count
    assert judged() == 20
    lake.append([flight(3, "2013-03-23T10:00:00")])
    assert judged() is None


def test_broken_rows_are_quarantined_as_by_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows with the same reasons, once; a row that breaks two rules is one row, under the first."""
    rows = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append([*rows, flight(30, "2013-03-02T10:00:00", flight=-1, tailnum="X"), flight(31, "2013-03-20T10:00:00")])
    run = lake.run(lake.pattern(), *DAYS, "r")
    written = []
    for limit in (local_check.ROWS, local_check.ROWS, -1):
        assert checked(run, monkeypatch, limit)[:3] == (21, 20, 1)
        table = lake.spark.read.format("delta").load(lake.warehouse.quarantine("flights"))
        written.append([tuple(row) for row in table.drop("run_id", "quarantined_at").collect()])
    assert written[0] == written[1]
    assert set(written[2]) == set(written[0])
    assert len(written[0]) == 1
