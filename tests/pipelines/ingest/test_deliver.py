"""Ingestion: every delivery once, as it came, whatever happened before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.flights import Flights, flight, table
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import SourceSchemaError
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.flights import SCHEMA, data_file, deliveries, read_flights
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import known_commits
from trendlake.pipelines.lake.lake import Lake


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
def test_twice_is_once(lake: Flights) -> None:
    """A second ingestion passes over what is there; one that stopped half-way goes on where it stopped."""
    parts = [table([flight(n, "2013-03-01T10:00:00")]) for n in range(1, 5)]
    path = lake.warehouse.source("flights")

    def bring(number: int, run_id: str) -> tuple[int | None, int | None]:
        record = ingest(lake.lake, lake.contract, parts[:number], feed="f", run_id=run_id)
        return record.rows_inserted, record.rows_out

    assert bring(2, "stopped") == (2, 2)
    assert bring(4, "went on") == (2, 4)
    assert bring(4, "again") == (0, 4)
    # Even when the table's history no longer tells of a delivery, its rows are there.
    assert ingest(lake.lake, lake.contract, parts[:1], feed="g", run_id="other").rows_inserted == 0
    assert lake.spark.read.format("delta").load(path).count() == 4
    changes = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    assert changes.load(path).count() == 4


@pytest.mark.spark
def test_rows_land_as_they_came(lake: Flights) -> None:
    """Those that break the contract too: the split is for whoever reads them."""
    record = lake.deliver([flight(1, "2013-03-01T10:00:00", origin="XXX", distance=-1.0)])
    assert (record.rows_in, record.rows_out) == (1, 1)


@pytest.mark.spark
def test_a_table_of_another_shape_is_refused(lake: Flights) -> None:
    """A source that is not as its contract says is named, column by column."""
    rows = table([flight(1, "2013-03-01T10:00:00")]).drop_columns(["tailnum"])
    frame = lake.spark.createDataFrame(rows).withColumnRenamed("distance", "miles")
    frame.write.format("delta").save(lake.warehouse.source("flights"))
    with pytest.raises(SourceSchemaError, match="tailnum is missing; distance is missing"):
        lake.deliver([flight(1, "2013-03-01T10:00:00")])


@pytest.mark.long
@pytest.mark.spark
def test_written_here_and_by_spark(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries whose files are written in this process leave the table and the history that Spark's leave."""
    old = flight(2, "1969-12-31T23:59:59", tailnum=None, dep_delay=float("nan"))
    parts = [table([flight(1, "2013-03-01T10:00:00"), old]), table([]), table([flight(3, "2013-03-01T10:00:00")])]
    left = []
    for limit in (limits.DELIVERED, -1):
        monkeypatch.setattr(limits, "DELIVERED", limit)
        warehouse = replace(lake.warehouse, root=f"{lake.warehouse.root}/{limit}")
        record = ingest(Lake.of(lake.spark, warehouse), lake.contract, parts, feed="f", run_id="r")
        path = warehouse.source("flights")
        records = [
            (commit.version, commit.operation, commit.note.get("delivery")) for commit in known_commits(lake.lake, path)
        ]
        rows = sorted(map(repr, lake.spark.read.format("delta").load(path).collect()))
        extent = (record.rows_in, record.rows_out, record.rows_inserted, record.interval_from, record.interval_to)
        left.append((records, rows, extent, [(item.name, item.observed) for item in record.checks]))
        assert lake.spark.read.format("delta").load(path).where("event_time < '2000-01-01'").count() == 1
    assert left[0] == left[1]


ODD_CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: source-odd
version: 1.0.0
name: odd
status: draft
schema:
  - name: odd
    physicalType: table
    customProperties: [{property: eventType, value: Odd}]
    properties:
      - name: id
        logicalType: integer
        physicalType: bigint
        required: true
        unique: true
        primaryKey: true
        primaryKeyPosition: 1
        customProperties: [{property: eventRole, value: event_id}]
      - {name: at, logicalType: timestamp, required: true, customProperties: [{property: eventRole, value: event_time}]}
      - {name: day, logicalType: date}
      - {name: moment, logicalType: timestamp}
      - {name: small, logicalType: integer, physicalType: tinyint}
      - {name: short, logicalType: integer, physicalType: smallint}
      - {name: single, logicalType: number, physicalType: float}
      - {name: amount, logicalType: number, physicalType: "decimal(9,2)"}
      - {name: large, logicalType: number, physicalType: "decimal(38,10)"}
      - {name: flag, logicalType: boolean}
      - {name: text, logicalType: string}
slaProperties: [{property: latency, value: 1, unit: d}]
"""
ODD_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("small", pa.int8()),
        ("short", pa.int16()),
        ("single", pa.float32()),
        ("amount", pa.decimal128(9, 2)),
        ("large", pa.decimal128(38, 10)),
        ("flag", pa.bool_()),
        ("text", pa.string()),
    ]
)


@pytest.mark.long
@pytest.mark.spark
def test_values_of_all_ages_and_types_are_written_as_by_spark(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days and moments before the Gregorian calendar, after 2262, of the last year; ends of types; NaN, -0.0."""
    folder = lake.project.state / "odd"
    folder.mkdir(parents=True)
    (folder / "odd.yaml").write_text(ODD_CONTRACT)
    contract = load_contract(folder / "odd.yaml")
    ages = [datetime(year, 1, 1, microsecond=1, tzinfo=UTC) for year in (1, 1500, 1582, 1900, 1969, 2262, 2263, 9999)]
    rows = [
        {
            "id": n,
            "at": at,
            "day": at.date(),
            "moment": at,
            "small": (-1) ** n * 127,
            "short": -32768,
            "single": 0.1,
            "amount": Decimal("-9999999.99"),
            "large": Decimal("1e27"),
            "flag": bool(n % 2),
            "text": "x" * 40,
        }
        for n, at in enumerate(ages)
    ]
    rows.append(dict.fromkeys(rows[0]) | {"id": 98, "at": ages[4], "single": float("nan")})
    rows.append(dict.fromkeys(rows[0]) | {"id": 99, "at": ages[4], "single": -0.0, "text": ""})
    read_back = []
    for limit in (limits.DELIVERED, -1):
        monkeypatch.setattr(limits, "DELIVERED", limit)
        warehouse = replace(lake.warehouse, root=f"{lake.warehouse.root}/{limit}")
        delivery = pa.Table.from_pylist(rows, ODD_SCHEMA)
        ingest(Lake.of(lake.spark, warehouse), contract, [delivery], feed="f", run_id="r")
        table = lake.spark.read.format("delta").load(warehouse.source("odd"))
        as_text = table.orderBy("id").selectExpr(*(f"CAST({name} AS string) AS {name}" for name in ODD_SCHEMA.names))
        old = table.where("day < DATE '1600-01-01' AND moment < TIMESTAMP '1600-01-01' AND small = 127").count()
        read_back.append((as_text.toArrow().to_pylist(), old, table.where("text = ''").count()))
    assert read_back[0] == read_back[1]
    texts, old, empty = read_back[0]
    assert [row["day"] for row in texts[:2]] == ["0001-01-01", "1500-01-01"]
    assert (len(texts), old, empty, texts[9]["single"]) == (10, 2, 1, "-0.0")
