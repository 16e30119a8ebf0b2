"""A source whose table other programs write, wherever it lies: read, revised, never changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.support.bare_lake import bare_lake
from tests.support.flights import Flights, all_steps, answers, flight, snowball, table
from trendlake.pipelines.authoring.existing_table import adopt
from trendlake.pipelines.authoring.scaffold import Roles
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import NotOursError, SourceMissingError, SourceSchemaError
from trendlake.pipelines.ingest.replay import replay
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import exists, latest_version
from trendlake.pipelines.lake.maintain import tables
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

WEEK = ("2013-03-01", "2013-03-08")
ROWS = [
    *snowball(1, 4),
    *snowball(3, 3, "AA"),
    *snowball(5, 13, "B6"),
    *(flight(700 + n, f"2013-03-06T{n:02d}:00:00", carrier="DL", tailnum=f"N{700 + n}DL") for n in range(19)),
    flight(900, "2013-03-02T12:00:00", tailnum="broken"),
]
LATE = snowball(3, 5, "AA")[3:]
TWICE = snowball(3, 1, "AA")[0] | {"dep_delay": 500.0}
"""Of the key of a row that is there, with another value: nothing says which counts, and both are set apart."""
THEIRS = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture
def others(spark: SparkSession, project: Project, tmp_path: Path) -> Flights:
    """A lake beside a table that somebody else has made in their own way: in partitions, with columns that the
    contract does not know, one of them a map, which has no order, the others in another order, and deletion vectors."""
    place = tmp_path / "their lake" / "flights"
    builder = DeltaTable.create(spark).location(str(place)).addColumn("loaded_by", "STRING")
    builder = builder.addColumn("tags", "MAP<STRING, STRING>")
    frame = spark.createDataFrame(table(ROWS))
    for field in reversed(frame.schema.fields):
        builder = builder.addColumn(field.name, field.dataType)
    for key, value in THEIRS.items():
        builder = builder.property(key, value)
    builder.partitionedBy("carrier").execute()
    lake = Flights(spark, project, Profile(master="local[2]", sources={"flights": str(place)}))
    write(lake, ROWS)
    return lake


def write(lake: Flights, rows: list[dict[str, object]]) -> None:
    frame = lake.spark.createDataFrame(table(rows)).withColumn("loaded_by", sf.lit("them"))
    frame = frame.withColumn("tags", sf.create_map(sf.lit("row"), "event_id"))
    frame.write.format("delta").mode("append").save(lake.warehouse.source("flights"))


def counts(lake: Flights, run: Run) -> dict[str, int]:
    return {row["carrier"]: int(row["snowballs"]) for row in answers(lake.results(run), run)}


@pytest.mark.repeats
def test_it_is_read_and_revised_where_it_lies(others: Flights) -> None:
    """n flights in a row make 2^n - 1 snowballs; then some come late, one leaves the row and one is gone. Their table's
    history is all theirs."""
    theirs = others.warehouse.source("flights")
    assert "their lake" in theirs
    run = others.run(others.pattern(), *WEEK, "first")
    all_steps(run)
    assert counts(others, run) == {"UA": 15, "AA": 7, "B6": 8191, "DL": 19}
    assert [row["event_id"] for row in others.quarantined().collect()] == ["UA-900"]

    write(others, [*LATE, TWICE])
    flights = DeltaTable.forPath(others.spark, theirs)
    flights.update("event_id = 'UA-1-3'", {"dep_delay": sf.lit(-5.0)})
    flights.delete("event_id = 'UA-1-0'")
    record = revise(others.run(others.pattern(), *WEEK, "revision"))
    changes = record.checks[0].data
    assert (changes["from_version"], changes["to_version"]) == (1, 4)
    assert (record.rows_updated, record.rows_quarantined, record.source_version) == (2, 2, 4)
    assert counts(others, run) == {"UA": 4, "AA": 15, "B6": 8191, "DL": 19}
    commits = recent_commits(others.lake, theirs)
    assert [commit.operation for commit in commits] == ["DELETE", "UPDATE", "WRITE", "WRITE", "CREATE TABLE"]
    assert not any(commit.note for commit in commits)


@pytest.mark.long
def test_nothing_is_written_to_it(others: Flights) -> None:
    """Not by an ingestion, a replay or the daily maintenance; nor is a table made where theirs is not."""
    before = latest_version(others.lake, others.warehouse.source("flights"))
    with pytest.raises(NotOursError, match=r"'flights' is written by other programs.*their lake"):
        others.deliver(LATE)
    with pytest.raises(NotOursError):
        replay(others.lake, others.contract, table(LATE), "replay")
    check_source(others.run(others.pattern(), *WEEK, "first"))
    maintained = tables(others.lake, ["flights"], [])
    assert set(maintained) == {"sources/flights_quarantine", "trendlake_runs"}
    assert latest_version(others.lake, others.warehouse.source("flights")) == before
    part = str(next(Path(others.warehouse.source("flights")).glob("*=*")))
    for place in ("not/there", part):  # a partition would be read as a part of the table, and revised as the whole
        gone = replace(others, profile=Profile(master="local[2]", sources={"flights": place}))
        with pytest.raises(SourceMissingError, match=f"the table of the source 'flights' is not at .*{place}"):
            check_source(gone.run(gone.pattern(), *WEEK, "first"))
        assert not exists(gone.lake, gone.warehouse.source("flights"))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["STRING", "BIGINT"])
def test_a_contract_is_written_from_a_table(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """With its columns, but those of types or names that no contract has; it is one that the table keeps."""
    project = Project(tmp_path / "mine", tmp_path / "state")
    columns = f"number {kind}, at TIMESTAMP, paid DOUBLE, notes ARRAY<STRING>, owed DECIMAL(9,2), `a b` STRING"
    place = orders(spark, tmp_path, columns)
    path, left_out = adopt(bare_lake(spark), project, "orders", place, Roles("number", "at", constant="Order"))
    contract = load_contract(path)
    assert left_out == ["notes", "a b"]
    assert [item.name for item in contract.columns] == ["number", "at", "paid", "owed"]
    assert [item.type for item in contract.columns] == [kind.lower(), "timestamp", "double", "decimal(9,2)"]
    assert (contract.key, contract.roles["event_id"], contract.types) == (("number",), "number", ("Order",))
    project.contract_path("orders").unlink()
    path, _ = adopt(bare_lake(spark), project, "orders", place, Roles(key=("number", "at")))
    contract = load_contract(path)
    assert (contract.is_reference, contract.key) == (True, ("number", "at"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ("number DOUBLE, at TIMESTAMP", "number is double, not string"),
        ("number STRING, at DATE", "at is date, not timestamp"),
        ("number STRING, at TIMESTAMP_NTZ", "at is timestamp_ntz, not timestamp"),
    ],
)
def test_a_table_that_cannot_be_a_source(spark: SparkSession, tmp_path: Path, columns: str, fault: str) -> None:
    """Says why at once, and leaves no contract behind."""
    project = Project(tmp_path / "mine", tmp_path / "state")
    place = orders(spark, tmp_path, columns)
    with pytest.raises(SourceSchemaError, match=fault):
        adopt(bare_lake(spark), project, "orders", place, Roles("number", "at", constant="Order"))
    assert not list(project.contracts.iterdir())
    with pytest.raises(SourceMissingError, match="there is no Delta table at"):
        adopt(bare_lake(spark), project, "orders", f"{place}/none", Roles("number", "at", constant="Order"))


def orders(spark: SparkSession, folder: Path, columns: str) -> str:
    """An empty table of somebody else's."""
    place = folder / "theirs"
    spark.createDataFrame([], columns).write.format("delta").option("delta.columnMapping.mode", "name").save(str(place))
    return str(place)
