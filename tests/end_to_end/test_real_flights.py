"""A year of real flights through ingestion, quarantine, Spark and Delta, against an enumeration of every trend."""

from __future__ import annotations

from fractions import Fraction

import pytest
from pyspark.sql import SparkSession

from cep_core.events.windows import moment
from jobs.terminal.times import micros_of
from pipelines.contracts.contract import load_contract
from pipelines.delta.tables import Warehouse
from pipelines.ingest import flights
from pipelines.ingest.deliver import ingest
from pipelines.project.paths import find_project
from pipelines.project.profile import Profile
from pipelines.runs.run import Run, prepare
from pipelines.runs.stage import Record
from pipelines.steps.sequence import STEPS
from tests.conftest import ROOT
from tests.support import flights_by_enumeration
from tests.support.flights_by_enumeration import Answer, Key, Leg

pytestmark = [pytest.mark.spark, pytest.mark.slow]

YEAR = ("2013-01-01T00:00:00Z", "2014-01-02T00:00:00Z")
ROWS = 336_776
BROKEN = 467


@pytest.fixture(scope="module")
def lake(spark: SparkSession, many_rows: None, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """All flights, in their deliveries."""
    warehouse = Warehouse(str(tmp_path_factory.mktemp("year") / "warehouse"))
    contract = load_contract(find_project(ROOT).contract_path("flights"))
    deliveries = flights.deliveries(flights.read_flights(flights.data_file()))
    record = ingest(spark, warehouse, contract, deliveries, feed=flights.FEED, run_id="ingest")
    assert (record.rows_in, record.rows_out) == (ROWS, ROWS)
    return warehouse


@pytest.fixture(scope="module")
def legs() -> list[Leg]:
    return list(flights_by_enumeration.read_legs(flights.data_file()))


def published(spark: SparkSession, lake: Warehouse, pattern: str) -> tuple[Run, list[Record], dict[Key, Answer]]:
    """The run, its records, and its published rows; a mean is given as the fraction it must be the nearest to."""
    profile = Profile(master="local[2]", warehouse=lake.root)
    start, end = (micros_of(time, "interval") for time in YEAR)
    run = prepare(spark, find_project(ROOT), profile, pattern, "year", start, end)
    records = [step(run) for step in STEPS.values()]
    count, legs, worst, mean = (measure.name for measure in run.plan.measures)
    table = spark.read.format("delta").load(lake.results(pattern)).toArrow()
    rows = {
        (row[run.plan.group_by[0]], row["window_start"]): Answer(
            int(row[count]), int(row[legs]), int(row[worst]), Fraction(row[mean])
        )
        for row in table.to_pylist()
    }
    assert len(rows) == table.num_rows
    return run, records, rows


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
    spark: SparkSession, lake: Warehouse, legs: list[Leg], pattern: str, groups: int
) -> None:
    """Every (carrier, day) and (airport, day) of 2013, published by Spark, is what enumeration finds."""
    wanted = getattr(flights_by_enumeration, pattern)(legs)
    run, records, actual = published(spark, lake, pattern)
    assert differences(actual, wanted) == []
    assert len(actual) == groups
    checked, computed, judged, merged = records
    assert (checked.rows_in, checked.rows_quarantined, checked.rows_out) == (ROWS, BROKEN, ROWS - BROKEN)
    assert len(legs) == ROWS - BROKEN
    assert computed.rows_out == judged.rows_in == merged.rows_inserted == groups
    assert all(item.success for item in judged.checks)
    starts = {window for _, window in actual}
    assert min(starts) >= moment(run.plan.windows.start(run.windows[0]))
    quarantine = spark.read.format("delta").load(lake.quarantine("flights"))
    mine = quarantine.where((quarantine["run_id"] == "year") & quarantine["reason"].isNotNull())
    assert mine.select("event_id").distinct().count() == BROKEN


def test_every_match_of_the_year(spark: SparkSession, lake: Warehouse, legs: list[Leg]) -> None:
    """Kind matches: every three departures, with their flights in order; made again, nothing changes."""
    wanted = flights_by_enumeration.three_legs_later(legs)
    run, records = done(spark, lake, "examples/flights/three_legs_later.yaml")
    table = spark.read.format("delta").load(lake.results(run.name)).toArrow()
    rows = {(*row["a"], *row["b"], *row["c"]) for row in table.to_pylist()}
    assert rows == wanted
    assert len(rows) == table.num_rows == records[-1].rows_inserted == 574
    delays = {leg.id: leg.delay for leg in legs}
    assert all(row["last_delay"] == delays[row["c"][0]] for row in table.to_pylist())


def test_every_absence_of_the_year(spark: SparkSession, lake: Warehouse, legs: list[Leg]) -> None:
    """Kind automaton: what was late and not seen again, as far as the flights of the year can tell."""
    wanted = flights_by_enumeration.late_and_gone(legs)
    run, records = done(spark, lake, "examples/flights/late_and_gone.yaml")
    table = spark.read.format("delta").load(lake.results(run.name)).toArrow()
    assert {(row["first"], int(row["delay"])) for row in table.to_pylist()} == wanted
    assert len(wanted) == table.num_rows == records[-1].rows_inserted == 1627
    assert all(row["first"] == row["last"] for row in table.to_pylist())


def done(spark: SparkSession, lake: Warehouse, pattern: str) -> tuple[Run, list[Record]]:
    """A run of the year, with the records of its steps."""
    profile = Profile(master="local[2]", warehouse=lake.root)
    start, end = (micros_of(time, "interval") for time in YEAR)
    run = prepare(spark, find_project(ROOT), profile, str(ROOT / pattern), "year", start, end)
    return run, [step(run) for step in STEPS.values()]
