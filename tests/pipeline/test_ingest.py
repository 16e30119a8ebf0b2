"""Ingestion: every delivery once, as it came, whatever happened before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines import ingest as ingestion
from pipelines.commits import known_commits
from pipelines.delta_here import ROWS
from pipelines.errors import SourceSchemaError
from pipelines.ingest import ingest
from pipelines.sources.flights import SCHEMA, data_file, deliveries, read_flights
from tests.pipeline.flights import Lake, flight, table


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    return read_flights(data_file())


def test_every_row_is_an_event_with_an_id_of_its_own(flights: pa.Table) -> None:
    """336,776 rows, 8,255 of them cancellations."""
    assert flights.num_rows == 336_776
    assert pc.count_distinct(flights["event_id"]).as_py() == 336_776
    kinds = {row["values"]: row["counts"] for row in pc.value_counts(flights["event_type"]).to_pylist()}
    assert kinds == {"Flight": 328_521, "Cancellation": 8_255}
    assert flights.schema.equals(SCHEMA)


def test_scheduled_departures_are_utc(flights: pa.Table) -> None:
    """New York is five hours behind in winter and four in summer: the file's own UTC hours agree."""
    times = dict(zip(flights["event_id"].to_pylist(), flights["event_time"].to_pylist(), strict=True))
    assert times["UA-1545-20130101-EWR"] == datetime(2013, 1, 1, 10, 15, tzinfo=UTC)
    summer = min(time for time in times.values() if time >= datetime(2013, 7, 1, 8, tzinfo=UTC))
    assert summer == datetime(2013, 7, 1, 9, 0, tzinfo=UTC)


def test_deliveries_are_the_rows_again(flights: pa.Table) -> None:
    """The same way each time; none lost, none twice; out of order, and some a delivery late."""
    parts, again = list(deliveries(flights)), list(deliveries(flights))
    assert [part.num_rows for part in parts] == [part.num_rows for part in again]
    assert all(part.equals(other) for part, other in zip(parts, again, strict=True))
    ids = pa.concat_tables(parts)["event_id"]
    assert sorted(ids.to_pylist()) == sorted(flights["event_id"].to_pylist())
    assert len(parts) == 13
    assert parts[0]["event_time"].to_pylist() != sorted(parts[0]["event_time"].to_pylist())
    march_first = pa.scalar(datetime(2013, 3, 1, 5, tzinfo=UTC), SCHEMA.field("event_time").type)
    late = pc.sum(pc.less(parts[2]["event_time"], march_first)).as_py()
    assert 50 < late < 1000


@pytest.mark.spark
def test_twice_is_once(lake: Lake) -> None:
    """A second ingestion passes over what is there; one that stopped half-way goes on where it stopped."""
    parts = [table([flight(n, "2013-03-01T10:00:00")]) for n in range(1, 5)]
    path = lake.warehouse.source("flights")

    def bring(number: int, run_id: str) -> tuple[int | None, int | None]:
        record = ingest(lake.spark, lake.warehouse, lake.contract, parts[:number], feed="f", run_id=run_id)
        return record.rows_inserted, record.rows_out

    assert bring(2, "stopped") == (2, 2)
    assert bring(4, "went on") == (2, 4)
    assert bring(4, "again") == (0, 4)
    # Even when the table's history no longer tells of a delivery, its rows are there.
    assert ingest(lake.spark, lake.warehouse, lake.contract, parts[:1], feed="g", run_id="other").rows_inserted == 0
    assert lake.spark.read.format("delta").load(path).count() == 4
    changes = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    assert changes.load(path).count() == 4


@pytest.mark.spark
def test_rows_land_as_they_came(lake: Lake) -> None:
    """Those that break the contract too: the split is for whoever reads them."""
    record = lake.deliver([flight(1, "2013-03-01T10:00:00", origin="XXX", distance=-1.0)])
    assert (record.rows_in, record.rows_out) == (1, 1)


@pytest.mark.spark
def test_a_table_of_another_shape_is_refused(lake: Lake) -> None:
    """A source that is not as its contract says is named, column by column."""
    rows = table([flight(1, "2013-03-01T10:00:00")]).drop_columns(["tailnum"])
    frame = lake.spark.createDataFrame(rows).withColumnRenamed("distance", "miles")
    frame.write.format("delta").save(lake.warehouse.source("flights"))
    with pytest.raises(SourceSchemaError, match="tailnum is missing; distance is missing"):
        lake.deliver([flight(1, "2013-03-01T10:00:00")])


@pytest.mark.spark
def test_written_here_and_by_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries whose files are written in this process leave the table and the history that Spark's leave."""
    old = flight(2, "1969-12-31T23:59:59", tailnum=None, dep_delay=float("nan"))
    parts = [
        table([flight(1, "2013-03-01T10:00:00"), old]),
        table([]),
        table([flight(3, "2013-03-01T10:00:00")]),
    ]
    left = []
    for limit in (ROWS, -1):
        monkeypatch.setattr(ingestion, "ROWS", limit)
        warehouse = replace(lake.warehouse, root=f"{lake.warehouse.root}/{limit}")
        record = ingest(lake.spark, warehouse, lake.contract, parts, feed="f", run_id="r")
        path = warehouse.source("flights")
        told = [
            (commit.version, commit.operation, commit.note.get("delivery"))
            for commit in known_commits(lake.spark, path)
        ]
        rows = sorted(map(repr, lake.spark.read.format("delta").load(path).collect()))
        extent = (record.rows_in, record.rows_out, record.rows_inserted, record.interval_from, record.interval_to)
        left.append((told, rows, extent, [(item["check"], item["observed"]) for item in record.checks]))
        assert lake.spark.read.format("delta").load(path).where("event_time < '2000-01-01'").count() == 1
    assert left[0] == left[1]
