"""check_source of few and of many rows in this process, and by Spark: the same record, whatever is in the table."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHAOS, DRAWS
from tests.support.flights import Flights, flight
from trendlake.pipelines.errors import ToleranceError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import exists, latest_version
from trendlake.pipelines.lake.road import answer_of
from trendlake.pipelines.quality import judge
from trendlake.pipelines.quality.judge import judge_of
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


SHARES = [
    pytest.param((0.0, 0.0, 0.0), marks=pytest.mark.repeats),
    (0.1, 0.1, 0.1),
    *([(0.02, 0.0, 0.0), (0.0, 0.03, 0.0), (0.0, 0.0, 0.2)] if CHAOS else []),
]


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


WAYS = ("few", "many", "spark")
"""All rows are read; by the verdicts on files; by Spark."""


def checked(run: Run, monkeypatch: pytest.MonkeyPatch, way: str) -> tuple[Any, ...]:
    """What check_source records where it works in one of the `WAYS`."""
    with monkeypatch.context() as patch:
        if way == "many":
            patch.setattr(limits, "JUDGED_WHOLE", -1)
            patch.setattr(limits, "HASHES_SORTED", 30)
        record: Record = run.record("check_source")
        try:
            record = check_source(replace(run, run_id=f"{run.run_id}, {way}", on="spark" if way == "spark" else "here"))
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
    mine, many, theirs = (checked(run, monkeypatch, way) for way in WAYS)
    assert mine == theirs
    assert many == theirs
    written = set_apart(run)
    assert written.get("r, few") == written.get("r, spark")
    assert written.get("r, many") == written.get("r, spark")
    if len(mine) > 1:
        version = latest_version(lake.lake, run.warehouse.source("flights"))
        record = Record("r", None, "check_source", source_version=version, rows_quarantined=mine[2], checks=mine[3])
        events = SourceEvents.of([(run, record)], run.plan)
        good = answer_of(events.here(limits.JUDGED_WHOLE)).select(list(run.plan.columns)).to_pylist()
        assert Counter(map(str, good)) == Counter(map(str, events.frame().toArrow().to_pylist()))


def test_repeated_keys_elsewhere(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row outside of the run's windows decides about one inside that has its key, if it breaks no other rule."""
    inside = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append(inside)
    run = lake.run(lake.pattern(), *DAYS, "r")

    def judged(most: int) -> tuple[int, int]:
        monkeypatch.setattr(limits, "JUDGED_WHOLE", most)
        table = table_here(lake.lake, lake.warehouse.source("flights"))
        judgement = answer_of(judge_of(table, run.contract, run.project.state / "kept").judged(run.span))
        return judgement.rows, judgement.bad.num_rows

    for rows, bad in (
        ([], 0),
        ([flight(50, "2013-03-20T10:00:00", flight=-1), flight(51, "2013-03-20T10:00:00")], 0),
        ([flight(51, "2013-03-21T10:00:00")], 0),  # a key that is there twice, elsewhere
        ([flight(3, "2013-03-22T10:00:00", flight=-1)], 0),  # breaks a rule: its key does not count
        ([flight(3, "2013-03-23T10:00:00")], 1),
    ):
        lake.append(rows)
        assert judged(100) == judged(-1) == (20, bad)


@pytest.mark.long
def test_broken_rows_are_quarantined_as_by_spark(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows with the same reasons, once; a row that breaks two rules is one row, under the first."""
    rows = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append([*rows, flight(30, "2013-03-02T10:00:00", flight=-1, tailnum="X"), flight(31, "2013-03-20T10:00:00")])
    run = lake.run(lake.pattern(), *DAYS, "r")
    written = []
    for way in ("few", "few", "many", "spark"):
        assert checked(run, monkeypatch, way)[:3] == (21, 20, 1)
        table = lake.spark.read.format("delta").load(lake.warehouse.quarantine("flights"))
        written.append([tuple(row) for row in table.drop("run_id", "quarantined_at").collect()])
    assert written[0] == written[1]
    assert set(written[2]) == set(written[3]) == set(written[0])
    assert len(written[0]) == 1


def test_verdicts_are_kept_in_the_warehouse(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run judges new files only; its record is that of a run which judges all."""
    lake.append(rows(random.Random("kept"), 0.1, 0.1, 0.1))
    run = lake.run(lake.pattern(), *DAYS, "r")
    read: list[str] = []
    real = judge._judged_files

    def noted(folder: Path, files: Any, *more: Any) -> Any:
        read.extend(name for name, _ in files)
        return real(folder, files, *more)

    monkeypatch.setattr(judge, "_judged_files", noted)
    first = checked(run, monkeypatch, "many")
    judge.many_rows.cache_clear()  # as a new process
    again = checked(run, monkeypatch, "many")
    assert first == again == checked(run, monkeypatch, "few")
    files = set(table_here(lake.lake, lake.warehouse.source("flights")).files)
    assert set(read) == files
    assert len(read) == len(files) == len([file for file in Path(lake.warehouse.verdicts).rglob("*") if file.is_file()])
    lake.append([flight(90, "2013-03-02T10:00:00")])
    read.clear()
    assert checked(run, monkeypatch, "many") == checked(run, monkeypatch, "few")
    assert len(read) == 1


@pytest.mark.long
def test_a_deletion_vector(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that has them is Spark's; a verdict on the file as it was says nothing of the rows that are gone."""
    hours = [flight(number, f"2013-03-02T{number:02d}:00:00") for number in range(1, 21)]
    lake.append([*hours, flight(3, "2013-03-02T03:00:00", tailnum="N1")])
    run, path = lake.run(lake.pattern(), *DAYS, "r"), lake.warehouse.source("flights")
    assert "repeats" in str(checked(run, monkeypatch, "many"))
    lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    lake.spark.sql(f"DELETE FROM delta.`{path}` WHERE tailnum = 'N1'")
    assert "deletionVector" in max(Path(path, "_delta_log").glob("*.json")).read_text()
    monkeypatch.setattr(limits, "JUDGED_WHOLE", -1)
    record = check_source(replace(run, run_id="after"))
    assert record.road == "spark"
    assert (record.rows_in, record.rows_quarantined) == (20, 0)
