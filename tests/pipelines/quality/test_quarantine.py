"""Rows that break the contract are set apart with a reason; good and quarantined rows together are the input."""

from __future__ import annotations

import shutil

import pytest

from tests.support.flights import Flights, flight, renamed
from tests.support.roads import only_spark
from trendlake.jobs.actions.quarantine import _not_judged
from trendlake.pipelines.errors import SourceMissingError, SourceSchemaError, ToleranceError
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.runs import judged_version as judgements
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.check_source import check_source

pytestmark = pytest.mark.spark

DAY = ("2013-03-01", "2013-03-02")
GOOD = [flight(number, f"2013-03-01T{number % 24:02d}:10:00") for number in range(1, 101)]
BAD = [
    flight(201, "2013-03-01T06:00:00", arr_time=None),
    flight(202, "2013-03-01T06:00:00", tailnum="D942DN", dep_delay=-43.0),
    flight(203, "2013-03-01T06:00:00", event_type=None),
    flight(7, "2013-03-01T06:00:00"),
]


def a_run(lake: Flights, run_id: str = "r1") -> Run:
    return lake.run(lake.pattern(), *DAY, run_id)


def test_good_and_quarantined_are_the_input(lake: Flights) -> None:
    """Nothing is dropped: 104 rows in, 5 quarantined (of two that share an id neither counts), 99 are computed."""
    lake.append(GOOD + BAD)
    run = a_run(lake)
    record = check_source(run)
    assert (record.rows_in, record.rows_quarantined, record.rows_out) == (104, 5, 99)
    assert lake.quarantined().count() == 5
    checked = find(lake.lake, run.name, run.run_id, "check_source")
    assert checked is not None
    assert read_events(run, checked).count() == 99


def test_each_row_says_why(lake: Flights) -> None:
    """`rule` is the first rule broken, `reason` tells of all; the row is kept as it came."""
    lake.append(GOOD + BAD)
    run = a_run(lake)
    check_source(run)
    rows = {row["event_id"]: row for row in lake.quarantined().collect()}
    assert {name: row["rule"] for name, row in rows.items()} == {
        "UA-201": "flight_has_landed",
        "UA-202": "tailnum_pattern",
        "UA-203": "event_type_required",
        "UA-7": "event_id_unique",
    }
    assert "dep_delay is not in [-30, 1440]" in rows["UA-202"]["reason"]
    assert "tailnum does not match" in rows["UA-202"]["reason"]
    assert rows["UA-202"]["dep_delay"] == -43.0
    assert {row["run_id"] for row in rows.values()} == {"r1"}
    assert {row["source_version"] for row in rows.values()} == {1}


def test_a_row_without_a_time_is_not_lost(lake: Flights) -> None:
    """It lies in no range, so every run sets it apart."""
    lake.deliver([*GOOD, flight(300, "2013-03-01T06:00:00", event_time=None)])
    record = check_source(a_run(lake))
    assert (record.rows_in, record.rows_quarantined) == (101, 1)
    assert lake.quarantined().collect()[0]["rule"] == "event_time_required"


def test_a_good_copy_survives_a_bad_one(lake: Flights) -> None:
    """Uniqueness is judged among rows that break nothing else."""
    lake.append([*GOOD, flight(5, "2013-03-01T06:00:00", arr_time=None)])
    record = check_source(a_run(lake))
    assert (record.rows_in, record.rows_quarantined) == (101, 1)
    assert lake.quarantined().collect()[0]["rule"] == "flight_has_landed"


@pytest.mark.long
def test_a_retry_doubles_nothing(lake: Flights) -> None:
    """The same run at the same version writes its quarantine once; another run writes its own."""
    lake.append(GOOD + BAD)
    for _ in range(3):
        check_source(a_run(lake))
    assert lake.quarantined().count() == 5
    check_source(renamed(a_run(lake), "r2"))
    assert sorted(lake.quarantined().groupBy("run_id").count().collect()) == [("r1", 5), ("r2", 5)]


def test_above_the_tolerance_nothing_is_computed(lake: Flights) -> None:
    """The run fails by name, its quarantine stays to be looked at, and the record says so."""
    lake.deliver([*GOOD, *(flight(400 + n, "2013-03-01T08:00:00", arr_time=None) for n in range(6))])
    with pytest.raises(ToleranceError, match="6 of 106 rows of 'flights' break its contract"):
        check_source(a_run(lake))
    assert lake.quarantined().count() == 6
    assert find(lake.lake, "test_pattern", "r1", "check_source") is None
    runs = lake.spark.read.format("delta").load(lake.warehouse.runs).where("stage = 'check_source'").collect()
    assert [(row["status"], row["rows_in"], row["rows_quarantined"]) for row in runs] == [("failed", 106, 6)]
    assert runs[0]["error"].startswith("[TOLERANCE]")


def test_verdicts_are_recorded(lake: Flights) -> None:
    """Great Expectations judges every rule of the contract; a warning is told but sets nothing apart."""
    lake.append([*GOOD, *BAD, flight(500, "2013-03-01T06:00:00", arr_delay=None)])
    record = check_source(a_run(lake))
    verdicts = {item.name: item for item in record.checks}
    assert {rule.name for rule in lake.contract.rules} < set(verdicts)
    assert verdicts["flight_has_landed"].observed == "1 of 105 rows break it"
    assert not verdicts["flight_has_landed"].success
    assert not verdicts["mostly_arrivals"].success
    assert not verdicts["event_id_unique"].success
    assert verdicts["carrier_required"].success
    assert verdicts["quarantine_tolerance"].observed == "5 of 105 rows"
    assert record.rows_quarantined == 5


def test_no_source_is_said_so(lake: Flights) -> None:
    with pytest.raises(SourceMissingError, match="is not in the warehouse"):
        check_source(a_run(lake))


@pytest.mark.long
def test_a_key_is_unique_in_the_whole_table(lake: Flights) -> None:
    """Whether a row repeats an id does not depend on the range a run reads: neither of two days keeps it."""
    lake.append([flight(100 + n, f"2013-03-02T{n:02d}:30:00") for n in range(20)])
    lake.append([flight(200 + n, f"2013-03-01T{n:02d}:30:00") for n in range(20)])
    lake.append([flight(1, "2013-03-01T06:00:00"), flight(1, "2013-03-02T06:00:00")])
    pattern = lake.pattern()
    for day in (1, 2):
        run = lake.run(pattern, f"2013-03-{day:02d}", f"2013-03-{day + 1:02d}", f"day {day}")
        record = check_source(run)
        assert (record.rows_in, record.rows_quarantined, record.rows_out) == (21, 1, 20)
        checked = find(lake.lake, run.name, run.run_id, "check_source")
        assert checked is not None
        assert read_events(run, checked).count() == 20


@pytest.mark.long
def test_equal_repeats_never_count_against_the_tolerance(lake: Flights) -> None:
    """The same export twice, as an older `ingest` appended it: half of the rows are set apart, and none is lost."""
    lake.append(GOOD)
    lake.append(GOOD)
    record = check_source(a_run(lake))
    assert (record.rows_in, record.rows_quarantined, record.rows_out) == (200, 100, 100)
    verdicts = {item.name: item for item in record.checks}
    assert verdicts["set_apart"].observed == "100 quarantined (event_id_unique), 100 of them repeats"
    assert verdicts["quarantine_tolerance"].observed == "0 of 200 rows"
    assert {row["reason"] for row in lake.quarantined().collect()} == {
        "event_id_unique: another row has the same event_id and equal values"
    }
    assert judged(lake) == 2


@pytest.mark.long
def test_versions_that_nobody_has_judged(lake: Flights) -> None:
    """Those of another table under the source's name count for nothing; ingestion judges what it takes."""
    lake.append(GOOD)
    assert judged(lake) == -1
    check_source(a_run(lake))
    lake.append([flight(900, "2013-03-01T12:00:00")])
    assert judged(lake) == 1
    assert _not_judged("flights", 1, 2).startswith("version 2 is not judged yet: the next run or revision")
    assert _not_judged("flights", -1, 2).startswith("versions 0 to 2 are not judged yet")

    shutil.rmtree(lake.warehouse.source("flights"))
    read_log_anew(lake.lake, lake.warehouse.source("flights"))
    lake.append(GOOD[:5])
    assert judged(lake) == -1
    lake.deliver([flight(901, "2013-03-01T13:00:00")])
    assert judged(lake) == 2


def test_columns_that_the_quarantine_needs(lake: Flights) -> None:
    """A source that has one of them is refused by name, also where its contract leaves it out."""
    lake.append(GOOD)
    lake.spark.sql(f"ALTER TABLE delta.`{lake.warehouse.source('flights')}` ADD COLUMN (Quarantine_Runs INT)")
    with pytest.raises(SourceSchemaError, match="quarantine_runs is a name the quarantine table needs"):
        check_source(a_run(lake))


def judged(lake: Flights) -> int:
    """By this process, as by Spark."""
    version = judgements.judged_version(lake.lake, "flights")
    with only_spark():
        assert judgements.judged_version(lake.lake, "flights") == version
    return version
