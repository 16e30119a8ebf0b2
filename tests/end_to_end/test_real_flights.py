"""A year of real flights through ingestion, quarantine, Spark and Delta, against an enumeration of every trend."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support import flights_by_enumeration
from tests.support.bare_lake import bare_lake
from tests.support.flights_by_enumeration import Answer, Key, Leg
from trendlake.cep_core.events.windows import moment
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest import flights
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.batch import Member, run_batch

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.repeats]

YEAR = ("2013-01-01T00:00:00Z", "2014-01-02T00:00:00Z")
ROWS = 336_776
BROKEN = 467


@pytest.fixture(scope="module")
def lake(spark: SparkSession, many_rows: None, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """All flights, in their deliveries."""
    warehouse = Warehouse(str(tmp_path_factory.mktemp("year") / "warehouse"))
    contract = load_contract(find_project(ROOT).contract_path("flights"))
    deliveries = flights.deliveries(flights.read_flights(flights.data_file()))
    record = ingest(Lake.of(spark, warehouse), contract, deliveries, feed=flights.FEED, run_id="ingest")
    assert (record.rows_in, record.rows_out) == (ROWS, ROWS)
    return warehouse


@pytest.fixture(scope="module")
def legs() -> list[Leg]:
    return list(flights_by_enumeration.read_legs(flights.data_file()))


@dataclass(frozen=True)
class Published:
    """What a run of a pattern over the year has published, with the records of its steps."""

    run: Run
    records: list[Record]
    rows: pa.Table


PATTERNS = {
    "delay_snowball": "delay_snowball",
    "recovery_without_cancellation": "recovery_without_cancellation",
    "three_legs_later": str(ROOT / "examples/flights/three_legs_later.yaml"),
    "late_and_gone": str(ROOT / "examples/flights/late_and_gone.yaml"),
}


@pytest.fixture(scope="module")
def year(spark: SparkSession, lake: Warehouse) -> dict[str, Published]:
    """All patterns over the year, in one batch."""
    profile = Profile(master="local[2]", warehouse=lake.root)
    start, end = (micros_of(time, "interval") for time in YEAR)
    project = find_project(ROOT)
    runs = {
        name: prepare(Lake.of(spark, Warehouse.of(profile, project)), project, profile, place, "year", start, end)
        for name, place in PATTERNS.items()
    }
    members = [Member(name, run) for name, run in runs.items()]
    for step, member in run_batch(bare_lake(spark), members):
        assert member.error is None, (step, member.name)
    tables = {name: spark.read.format("delta").load(lake.results(name)).toArrow() for name in runs}
    return {member.name: Published(runs[member.name], member.records, tables[member.name]) for member in members}


def answers(year: Published) -> dict[Key, Answer]:
    """The rows of a pattern of kind trends; a mean is given as the fraction it must be the nearest to."""
    plan = year.run.plan
    count, legs, worst, mean = (measure.name for measure in plan.measures)
    rows = {
        (row[plan.group_by[0]], row["window_start"]): Answer(
            int(row[count]), int(row[legs]), int(row[worst]), Fraction(row[mean])
        )
        for row in year.rows.to_pylist()
    }
    assert len(rows) == year.rows.num_rows
    return rows


def differences(actual: dict[Key, Answer], wanted: dict[Key, Answer]) -> list[str]:
    """Groups and days on which the two disagree: counts and extremes exactly, means to the last bits of a double."""
    said = [f"{key} only published" for key in actual.keys() - wanted.keys()]
    said += [f"{key} not published" for key in wanted.keys() - actual.keys()]
    for key in actual.keys() & wanted.keys():
        a, b = actual[key], wanted[key]
        exact = (a.trends, a.legs, a.worst) == (b.trends, b.legs, b.worst)
        if not exact or abs(a.mean - b.mean) > abs(b.mean) * Fraction(1, 10**14):
            said.append(f"{key}: published {a}, enumerated {b}")
    return said


@pytest.mark.parametrize(("pattern", "groups"), [("delay_snowball", 4682), ("recovery_without_cancellation", 1089)])
def test_every_group_and_day_of_the_year(
    spark: SparkSession, lake: Warehouse, year: dict[str, Published], legs: list[Leg], pattern: str, groups: int
) -> None:
    """Every (carrier, day) and (airport, day) of 2013, published by Spark, is what enumeration finds."""
    wanted = getattr(flights_by_enumeration, pattern)(legs)
    actual = answers(year[pattern])
    assert differences(actual, wanted) == []
    assert len(actual) == groups
    run, (checked, computed, judged, merged) = year[pattern].run, year[pattern].records
    assert (checked.rows_in, checked.rows_quarantined, checked.rows_out) == (ROWS, BROKEN, ROWS - BROKEN)
    assert len(legs) == ROWS - BROKEN
    assert computed.rows_out == judged.rows_in == merged.rows_inserted == groups
    assert all(item.success for item in judged.checks)
    starts = {window for _, window in actual}
    assert min(starts) >= moment(run.plan.windows.start(run.windows[0]))
    quarantine = spark.read.format("delta").load(lake.quarantine("flights"))
    mine = quarantine.where((quarantine["run_id"] == "year") & quarantine["reason"].isNotNull())
    assert mine.select("event_id").distinct().count() == BROKEN


def test_every_match_of_the_year(year: dict[str, Published], legs: list[Leg]) -> None:
    """Kind matches: every three departures, with their flights in order."""
    wanted = flights_by_enumeration.three_legs_later(legs)
    table = year["three_legs_later"].rows
    rows = {(*row["a"], *row["b"], *row["c"]) for row in table.to_pylist()}
    assert rows == wanted
    assert len(rows) == table.num_rows == year["three_legs_later"].records[-1].rows_inserted == 574
    delays = {leg.id: leg.delay for leg in legs}
    assert all(row["last_delay"] == delays[row["c"][0]] for row in table.to_pylist())


def test_every_absence_of_the_year(year: dict[str, Published], legs: list[Leg]) -> None:
    """Kind automaton: what was late and not seen again, as far as the flights of the year can tell."""
    wanted = flights_by_enumeration.late_and_gone(legs)
    table = year["late_and_gone"].rows
    assert {(row["first"], int(row["delay"])) for row in table.to_pylist()} == wanted
    assert len(wanted) == table.num_rows == year["late_and_gone"].records[-1].rows_inserted == 1627
    assert all(row["first"] == row["last"] for row in table.to_pylist())
