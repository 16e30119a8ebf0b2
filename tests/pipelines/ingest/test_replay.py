"""Quarantined rows that are repaired: back in the source once, open no longer, and followed by the next revision."""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.flights import Flights, all_steps, answers, flight, renamed
from trendlake.jobs.actions.quarantine import _write
from trendlake.pipelines.contracts.column_names import ID
from trendlake.pipelines.errors import RepairError
from trendlake.pipelines.ingest.open_rows import open_rows
from trendlake.pipelines.ingest.replay import Replayed, newest, read_repaired, replay
from trendlake.pipelines.ingest.row_ids import former_row_ids
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAY = ("2013-03-01", "2013-03-02")
GOOD = [flight(number, f"2013-03-01T{number % 24:02d}:10:00") for number in range(1, 81)]
ODD = datetime(2013, 3, 1, 6, 0, 0, 123457, UTC)
BAD = [
    flight(201, "2013-03-01T06:00:00", event_time=ODD, arr_time=None, carrier="AA", dep_delay=0.1 + 0.2),
    flight(202, "2013-03-01T07:00:00", tailnum="D942DN", carrier="AA"),
    flight(7, "2013-03-01T07:30:00", carrier="AA"),
]
TEXTS = ["NA", "", "null", "=cmd|'/c calc'!A1", "'tis"]
UNTOUCHED = [
    flight(301 + number, "2013-03-01T08:00:00", arr_time=None, carrier=text) for number, text in enumerate(TEXTS)
]
MORE = [flight(number, "2013-03-01T09:10:00", dep_delay=-1.0) for number in range(1001, 1101)]
"""So that no more than a twentieth of the rows is broken, which the contract tolerates."""


def opened(lake: Flights) -> pa.Table:
    version = newest(lake.lake, lake.contract)
    return open_rows(lake.lake, lake.contract, version).sort_by([("event_id", "ascending"), (ID, "ascending")])


def put_back(lake: Flights, file: pa.Table, run_id: str = "replay") -> Replayed:
    return replay(lake.lake, lake.contract, file, run_id)


def changed(table: pa.Table, column: str, values: list[object]) -> pa.Table:
    place = table.schema.get_field_index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(place).type))


@pytest.mark.chaos
def test_a_repaired_row_goes_all_the_way(lake: Flights, tmp_path: Path) -> None:
    """Set apart, written to a file, mended, put back, and in the results after the next revision; doing it again
    changes nothing, and no row of the quarantine is lost."""
    lake.append(GOOD + MORE + BAD + UNTOUCHED)
    assert opened(lake).num_rows == 0  # no run has looked yet
    run = lake.run(lake.pattern(), *DAY, "first")
    all_steps(run)
    check_source(renamed(run, "second"))
    quarantined = opened(lake)
    rules = dict(zip(quarantined["event_id"].to_pylist(), quarantined["rule"].to_pylist(), strict=True))
    untouched = {row["event_id"]: rules.pop(row["event_id"]) for row in UNTOUCHED}
    assert list(untouched.values()) == ["flight_has_landed", *["carrier_pattern"] * 4]
    assert rules == {"UA-201": "flight_has_landed", "UA-202": "tailnum_pattern", "UA-7": "event_id_unique"}
    assert set(quarantined["quarantine_runs"].to_pylist()) == {2}

    file = tmp_path / "broken.csv"
    _write(quarantined, file)
    before = newest(lake.lake, lake.contract)
    as_it_is = put_back(lake, read_repaired(file, lake.contract))
    assert as_it_is == Replayed(0, 0, 9, before)
    assert '"=' not in file.read_text()  # a spreadsheet runs none of it

    lines = file.read_text().splitlines()
    mended = [line.replace("D942DN", "N942DN") for line in lines]
    mended = [line.replace('"UA-7"', '"UA-207"') if '"AA"' in line else line for line in mended]
    file.write_text("\n".join(mended) + "\n")
    assert put_back(lake, read_repaired(file, lake.contract)) == Replayed(2, 0, 7, before + 1)
    assert put_back(lake, read_repaired(file, lake.contract)) == Replayed(0, 2, 7, before + 1)
    left = opened(lake)
    assert left["event_id"].to_pylist() == ["UA-201", *untouched]
    assert left["carrier"].to_pylist() == ["AA", *TEXTS]  # what nobody edited is as it came
    assert lake.quarantined().count() == 18

    record = revise(lake.run(lake.pattern(), *DAY, "revision"))
    assert (record.rows_inserted, record.rows_updated) == (1, 1)
    same = all_steps(lake.run(lake.pattern(), *DAY, "again"))
    assert (same.rows_inserted, same.rows_updated, same.rows_deleted) == (0, 0, 0)
    rows = {row["carrier"]: row for row in answers(lake.results(run), run)}
    assert rows["AA"]["legs"] == 2
    assert lake.quarantined().count() == 24  # the last run has set apart those that are left


@pytest.mark.long
def test_all_of_a_file_or_nothing(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is still broken, one that takes another's key, one that replaces none: each is told by name. What is
    put back is so whether this process writes it or Spark."""
    lake.append(GOOD + BAD)
    check_source(lake.run(lake.pattern(), *DAY, "first"))
    quarantined = opened(lake)
    before = newest(lake.lake, lake.contract)
    mended = changed(
        changed(quarantined.slice(0, 3), "arr_time", [1200, 1200, 1200]), "distance", [101.0, 102.0, 103.0]
    )
    with pytest.raises(RepairError, match=r"UA-202: tailnum_pattern.*UA-7: event_id_unique: a row of the source"):
        put_back(lake, mended)
    unknown = changed(mended.slice(0, 1), "event_id", ["UA-999"]).drop_columns([ID])
    with pytest.raises(RepairError, match=r"row 1 \(UA-999\): there is no open row that it replaces"):
        put_back(lake, unknown)
    repeated = changed(pa.concat_tables([mended.slice(0, 1)] * 2), "distance", [100.0, 200.0])
    with pytest.raises(RepairError, match="another row of the file replaces the same"):
        put_back(lake, repeated)
    alike = changed(changed(mended.slice(0, 2), "tailnum", ["N10UA", "N942DN"]), "event_id", ["UA-5000", "UA-5000"])
    with pytest.raises(RepairError, match="event_id_unique"):
        put_back(lake, alike)
    assert newest(lake.lake, lake.contract) == before
    assert opened(lake) == quarantined
    # by the event's id, where the file does not name the row
    assert put_back(lake, mended.slice(0, 1).drop_columns([ID])).repaired == 1
    monkeypatch.setattr(limits, "DELIVERED", -1)
    other = changed(mended.slice(1, 1), "tailnum", ["N942DN"])
    assert put_back(lake, other) == Replayed(1, 0, 0, before + 2)
    reader = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", before + 1)
    changes = reader.load(lake.warehouse.source("flights")).select("_commit_version", "_change_type", "event_id")
    assert Counter(map(tuple, changes.collect())) == Counter(
        (version, f"update_{image}", name)
        for version, name in ((before + 1, "UA-201"), (before + 2, "UA-202"))
        for image in ("preimage", "postimage")
    )


def test_a_file_with_the_ids_of_0_2(lake: Flights) -> None:
    """Each names the row that it named; of several open rows with one event id, too."""
    lake.append([*GOOD, *BAD])
    check_source(lake.run(lake.pattern(), *DAY, "first"))
    broken = opened(lake)
    names = [item.name for item in lake.contract.columns]
    file = broken.select([ID, *names]).set_column(0, ID, pa.array(former_row_ids(broken, names), pa.string()))
    assert set(file[ID].to_pylist()).isdisjoint(broken[ID].to_pylist())
    (place,) = [at for at, row in enumerate(broken.to_pylist()) if row["event_id"] == "UA-7" and row["carrier"] == "AA"]
    repaired = changed(file.slice(place, 1), "event_id", ["UA-700"])
    assert put_back(lake, repaired).repaired == 1
    assert [row["event_id"] for row in opened(lake).to_pylist()] == ["UA-201", "UA-202"]


def test_the_source_made_anew(lake: Flights) -> None:
    """What was set apart of the table of before is open if the new one has it, and is put back there; what it lacks is
    not, though the file names it."""
    lake.append(GOOD + MORE + BAD[:2])
    check_source(lake.run(lake.pattern(), *DAY, "first"))
    mended = changed(changed(opened(lake), "arr_time", [1200, 1200]), "tailnum", ["N10UA", "N942DN"])

    shutil.rmtree(lake.warehouse.source("flights"))
    read_log_anew(lake.lake, lake.warehouse.source("flights"))
    lake.append(MORE)
    lake.append([BAD[1]])
    assert opened(lake)["event_id"].to_pylist() == ["UA-202"]
    with pytest.raises(RepairError, match=r"row 1 \(UA-201\): there is no open row that it replaces"):
        put_back(lake, mended)
    assert put_back(lake, mended.slice(1)) == Replayed(1, 0, 0, 3)
    assert opened(lake).num_rows == 0


@pytest.mark.chaos
def test_two_at_once_write_it_once(lake: Flights) -> None:
    """The same file by two processes: each row is in the source once, whoever came first."""
    lake.append(GOOD + BAD)
    check_source(lake.run(lake.pattern(), *DAY, "first"))
    mended = changed(changed(opened(lake).slice(0, 2), "arr_time", [1200, 1200]), "tailnum", ["N10UA", "N942DN"])
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda name: put_back(lake, mended, name), ("one", "other")))
    assert sorted((done.repaired, done.there) for done in both) == [(0, 2), (2, 0)]
    source = lake.spark.read.format("delta").load(lake.warehouse.source("flights"))
    assert source.count() == len(GOOD) + len(BAD)
    assert opened(lake)["event_id"].to_pylist() == ["UA-7", "UA-7"]
