"""The rows of a source, judged once for the ranges of several runs: each run is told what it would be told alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from great_expectations import ValidationDefinition

from tests.support.flights import Flights, flight, renamed
from tests.support.reading import stored
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import exists, latest_version
from trendlake.pipelines.lake.road import On
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import TableAt
from trendlake.pipelines.steps import judge_source as judging
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source, check_source_together
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.judge_source import Judgement, judge_source

pytestmark = pytest.mark.spark

DAYS = [(1, 3), (2, 4), (2, 3), (4, 5)]
"""Ranges that overlap, lie in each other, touch and lie apart; of the source's days some are in none."""
ODD: list[dict[str, Any]] = [{"flight": -3}, {"tailnum": "X"}, {"event_time": None}, {"arr_time": None}]


def drawn(odd: Sequence[int], repeats: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """120 flights of six days. Those numbered in `odd` break a rule; of two numbers in `repeats`, the first takes the
    key of the second."""
    rng = random.Random(f"{odd} {repeats}")
    rows = {n: flight(n, f"2013-03-{1 + n % 6:02d}T{rng.randrange(24):02d}:{n % 60:02d}:00") for n in range(1, 121)}
    for place, number in enumerate(odd):
        rows[number] |= ODD[place % len(ODD)]
    for number, other in repeats:
        rows[number]["event_id"] = rows[other]["event_id"]
    return list(rows.values())


def runs_of(lake: Flights, on: On | None = None) -> list[Run]:
    """A run for each of `DAYS`."""
    pattern = lake.pattern()
    return [replace(lake.run(pattern, f"2013-03-0{a}", f"2013-03-0{b}", f"{a} to {b}"), on=on) for a, b in DAYS]


def judged(lake: Flights, runs: Sequence[Run]) -> dict[str, tuple[Judgement, list[Any]]]:
    """By run, what its judgement says and what the quarantine has of it."""
    path = lake.warehouse.source("flights")
    version = latest_version(lake.lake, path)
    judgements = {run.run_id: judgement for run, judgement in judge_source(runs, TableAt("", version, "a table"))}
    assert len(judgements) == len(runs)
    columns = [item.name for item in lake.contract.columns] + ["rule", "reason", "source_version"]
    set_apart: dict[str, list[Any]] = {run.run_id: [] for run in runs}
    if exists(lake.lake, quarantine := lake.warehouse.quarantine("flights")):
        for row in stored(quarantine).to_pylist():
            if row["run_id"] in set_apart:
                set_apart[row["run_id"]].append([row[name] for name in columns])
    return {name: (judgements[name], sorted(set_apart[name], key=str)) for name in set_apart}


FAULTS: dict[str, tuple[Sequence[int], Sequence[tuple[int, int]]]] = {
    "bad rows in one range": ([3, 33], []),
    "bad rows, some without a time, and repeated keys": (
        range(3, 120, 11),
        [(3, 9), (8, 3), (14, 4), (20, 4), (26, 4)],
    ),
}
"""What `drawn` is given. Keys are repeated within a range, across two, and by rows of no range."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("faults", "way"),
    [
        *(pytest.param(name, "spark", marks=pytest.mark.repeats) for name in FAULTS if name != "bad rows in one range"),
        ("bad rows in one range", "spark"),
        ("bad rows, some without a time, and repeated keys", "few"),
        pytest.param("bad rows, some without a time, and repeated keys", "many", marks=pytest.mark.repeats),
    ],
)
def test_together_as_alone(lake: Flights, faults: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, checks and quarantined rows of each range: by Spark, and in this process of few and of many rows."""
    if way == "many":
        monkeypatch.setattr(limits, "JUDGED_WHOLE", -1)
    lake.append(drawn(*FAULTS[faults]))
    runs = runs_of(lake, "spark" if way == "spark" else "here")
    together = judged(lake, runs)
    alone: dict[str, Any] = {}
    for run in runs:
        ((judgement, quarantined),) = judged(lake, [renamed(run, f"{run.run_id}, alone")]).values()
        alone[run.run_id] = judgement, quarantined
    assert together == alone
    faulty = [judgement.quarantined for judgement, _ in together.values()]
    assert all(faulty) == (faults != "bad rows in one range")
    assert all(judgement.quarantined == len(quarantined) for judgement, quarantined in together.values())


@pytest.mark.long
def test_each_row_is_judged_once(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """One scan for all ranges; those with a bad row are judged by one table of rows with their reasons."""
    lake.append(drawn([3], []))  # on the fourth day
    asked: list[str] = []

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            asked.append(name)
            return real(*args, **named)

        return call

    for module, name in ((judging, "scan"), (q, "annotate"), (judging, "_held")):
        monkeypatch.setattr(module, name, noted(name, getattr(module, name)))
    outcomes = judged(lake, runs_of(lake, "spark"))
    assert asked == ["scan", "annotate", "_held"]
    assert [judgement.quarantined for judgement, _ in outcomes.values()] == [0, 0, 0, 1]


@pytest.mark.parametrize("road", ["here", "spark"])
def test_great_expectations_judges_source_and_results(lake: Flights, road: On, monkeypatch: pytest.MonkeyPatch) -> None:
    """A validation of each at least, of all of their rows."""
    lake.append(drawn([], []))
    run = replace(lake.run(lake.pattern(), "2013-03-02", "2013-03-04", "validated"), on=road)
    validated: list[int] = []
    real = ValidationDefinition.run

    def validate(definition: ValidationDefinition, *args: Any, **named: Any) -> Any:
        answer = real(definition, *args, **named)
        validated.append(max(one.result.get("element_count", 0) for one in answer.results))
        return answer

    monkeypatch.setattr(ValidationDefinition, "run", validate)
    assert check_source(run).rows_in == validated[-1] == 40
    count = len(validated)
    compute(run)
    assert check_results(run).rows_in == validated[-1] > 0
    assert len(validated) > count > 0


@pytest.mark.long
def test_an_error_is_its_own_runs(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rows of one range cannot be written to the quarantine, the runs of the others are judged."""
    lake.append(drawn([1, 3], []))
    runs = runs_of(lake)[1:]
    real = judging._quarantine

    def refuses(run: Run, *args: Any) -> None:
        if run.span == runs[1].span:
            raise OSError("no room")
        real(run, *args)

    monkeypatch.setattr(judging, "_quarantine", refuses)
    attempts = check_source_together([*runs, renamed(runs[0], "again"), renamed(runs[1], "again")])
    assert [str(attempt.error) for attempt in attempts] == ["None", "no room", "None", "None", "no room"]
    rows = [attempt.record.rows_quarantined for attempt in attempts if attempt.error is None]
    assert rows == [1, 1, 1]
