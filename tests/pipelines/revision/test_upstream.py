"""A pattern over another pattern's results: what is revised upstream is revised below, as if all were computed anew."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.flights import Flights, all_steps, flight
from tests.support.lineage_events import LINEAGE, events, version
from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAYS = """\
name: days
source: flights
pattern: Flight F+
where: ["[tailnum]", F.dep_delay < NEXT(F).dep_delay]
return: {snowballs: COUNT(*), worst: MAX(F.dep_delay)}
group_by: [carrier]
within: 1 day
"""
RISING = """\
name: rising
source: results/days
pattern: days D+
where: ["[carrier]", D.worst < NEXT(D).worst]
return: {rises: COUNT(*), days: COUNT(D), most: MAX(D.snowballs)}
within: 3 days
slide: 1 day
"""
PAIRS = """\
name: pairs
kind: matches
source: results/rising
pattern: SEQ(rising a, rising b)
where: [a.rises < b.rises]
return: {more: b.rises}
select: skip_till_next_match
within: 2 days
"""
SPANS = """\
name: spans
kind: algebra
source: results/pairs
pattern: |
  SELECT more_1 AS first, more AS second, span FROM (SELECT more, DUR AS span FROM pairs) NEXT pairs
within: 6 days
"""
"""Pairs last from `start` to `end`: those that overlap are not before one another."""
SINCE, UNTIL = "2013-07-01", "2013-07-12"
NAMES = ("days", "rising", "pairs", "spans")


@pytest.fixture
def lake(spark: SparkSession, project: Project, tmp_path: Path) -> Flights:
    """Seven days of two airlines, three legs a day, the delays in no order."""
    root = tmp_path / "project"
    (root / "conf" / "patterns").mkdir(parents=True)
    (root / "data_contracts").symlink_to(project.contracts)
    for name, text in zip(NAMES, (DAYS, RISING, PAIRS, SPANS), strict=True):
        (root / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    lake = Flights(spark, replace(project, root=root), Profile(warehouse=str(tmp_path / "kept"), lineage=LINEAGE))
    lake.deliver(leg(day, number, carrier) for day in range(1, 8) for carrier in ("UA", "AA") for number in range(3))
    return lake


def leg(day: int, number: int, carrier: str, delay: float | None = None) -> dict[str, Any]:
    identity = 100 * day + 10 * number + (carrier == "UA")
    late = float((identity * 7) % 61) if delay is None else delay
    at = f"2013-07-0{day}T{9 + 3 * number:02}:00"
    return flight(identity, at, carrier=carrier, tailnum=f"N1{carrier}", dep_delay=late)


def run_of(lake: Flights, name: str, run_id: str) -> Run:
    start, end = micros_of(SINCE, "--from"), micros_of(UNTIL, "--to")
    return prepare(
        Lake.of(lake.spark, Warehouse.of(lake.profile, lake.project)),
        lake.project,
        lake.profile,
        name,
        f"{name} {run_id}",
        start,
        end,
    )


def published(lake: Flights, name: str) -> list[tuple[str, ...]]:
    """The rows without their origin, in order."""
    run = run_of(lake, name, "read")
    rows = rows_of(lake.warehouse.results(name), *run.plan.result_schema.names)
    return sorted(tuple(str(value) for value in row.values()) for row in rows)


def rows_of(path: str, *names: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table(columns=list(names) or None).to_pylist()
    return rows


@pytest.mark.long
def test_a_revision_flows_down(lake: Flights, tmp_path: Path) -> None:
    """Three patterns, one upon the other. A late leg, a corrected one and one deleted: each pattern's revision, by the
    change feed, makes its table what a computation of everything anew makes it."""
    for name in NAMES:
        all_steps(run_of(lake, name, "first"))
    before = {name: published(lake, name) for name in NAMES}
    assert all(before.values())
    named_by_keys(lake)

    lake.deliver([leg(3, 4, "UA", 900.0)], feed="late")
    correct(lake)
    shutil.copytree(tmp_path / "kept", tmp_path / "anew")
    anew = replace(lake, profile=Profile(warehouse=str(tmp_path / "anew")))
    shutil.rmtree(tmp_path / "anew" / "results")
    shutil.rmtree(tmp_path / "anew" / "trendlake_runs")
    for name in NAMES:
        record = revise(run_of(lake, name, "late"))
        assert record.succeeded
        assert "reason" not in next(item.data for item in record.checks if item.name == "revision")
        all_steps(run_of(anew, name, "anew"))
        assert published(lake, name) == published(anew, name)
        assert published(lake, name) != before[name]
    quiet = revise(run_of(lake, "spans", "again"))
    assert (quiet.rows_inserted, quiet.rows_updated, quiet.rows_deleted) == (0, 0, 0)
    lineage_links_up(lake)


@pytest.mark.chaos
def test_results_made_anew(lake: Flights) -> None:
    """A pattern's results are dropped, and made again with as many versions: who reads them computes all anew."""
    for name in NAMES[:2]:
        all_steps(run_of(lake, name, "first"))
    lower = NAMES[1]
    before = published(lake, lower)
    place = lake.warehouse.results(NAMES[0])
    versions = latest_version(lake.lake, place)
    shutil.rmtree(place)
    read_log_anew(lake.lake, place)
    correct(lake)
    for number in range(versions):
        all_steps(run_of(lake, NAMES[0], f"second {number}"))
    record = revise(run_of(lake, lower, "revision"))
    said = next(item.observed for item in record.checks if item.name == "revision")
    assert said.endswith(f"the table of 'results/{NAMES[0]}' was made anew since the results were computed"), said
    again = published(lake, lower)
    assert again != before
    done = all_steps(run_of(lake, lower, "anew"))
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 0, 0)
    assert published(lake, lower) == again


def lineage_links_up(lake: Flights) -> None:
    """Runs and revisions told of the tables that they read and wrote, with the versions of the run record: what one
    pattern writes the next one reads."""
    ends = [event for event in events(lake.project.state) if event["eventType"] == "COMPLETE"]
    ends = [event for event in ends if event["job"]["name"].endswith((".publish", ".revise"))]
    edges = {
        (event["job"]["name"], event["run"]["facets"]["trendlake_run"]["run_id"]): (
            *(event[side][0]["name"].removeprefix(f"{lake.warehouse.root}/") for side in ("inputs", "outputs")),
            *(version(event[side][0]) for side in ("inputs", "outputs")),
        )
        for event in ends
    }
    tables = ("sources/flights", *(f"results/{name}" for name in NAMES))
    rows = [row for row in rows_of(lake.warehouse.runs) if row["stage"] in ("publish", "revise")]
    assert edges == {
        (f"{row['pattern']}.{row['stage']}", row["run_id"]): (
            tables[NAMES.index(row["pattern"])],
            tables[NAMES.index(row["pattern"]) + 1],
            row["source_version"],
            row["results_version"],
        )
        for row in rows
    }
    assert len(edges) == 2 * len(NAMES) + 1


def correct(lake: Flights) -> None:
    """One flight with another delay, one that never was."""
    lake.change(lambda row: row | {"dep_delay": 700.0} if row["event_id"] == "UA-511" else row)
    lake.change(lambda row: None if row["event_id"] == "UA-220" else row)


def named_by_keys(lake: Flights) -> None:
    """A match over results names them by their keys."""
    windows = rows_of(lake.warehouse.results("rising"))
    known = {f'["{row["window_start"].astimezone(UTC):%Y-%m-%d %H:%M:%S}"]' for row in windows}
    rows = rows_of(lake.warehouse.results("pairs"))
    assert {event for row in rows for event in (*row["a"], *row["b"])} <= known


def test_results_that_are_not_there_yet(lake: Flights) -> None:
    """Whoever asks too early is told what comes first."""
    with pytest.raises(TrendlakeError) as caught:
        all_steps(run_of(lake, "rising", "early"))
    assert "[SOURCE_MISSING]" in str(caught.value)
    assert "run `trendlake run days` first" in str(caught.value)
