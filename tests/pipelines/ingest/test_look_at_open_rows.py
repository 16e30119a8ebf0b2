"""Open rows of the quarantine that are read in this process are those that Spark reads, in their order."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.random.profile import examples
from tests.support.flights import Flights, flight, renamed
from trendlake.pipelines.ingest.look_at_open_rows import _by_spark, look
from trendlake.pipelines.ingest.open_rows import open_rows_here
from trendlake.pipelines.ingest.replay import newest
from trendlake.pipelines.ingest.row_ids import former_row_ids, row_id_column, row_ids
from trendlake.pipelines.steps.check_source import check_source

pytestmark = pytest.mark.spark

DAY = ("2013-03-01", "2013-03-02")
GOOD = [flight(number, f"2013-03-01T{number % 24:02d}:10:00") for number in range(1, 120)]
BAD = [
    flight(
        201,
        "2013-03-01T06:00:00",
        event_time=datetime(2013, 3, 1, 6, 0, 0, 120, UTC),
        arr_time=None,
        dep_delay=0.1 + 0.2,
    ),
    flight(202, "2013-03-01T07:00:00", tailnum="D942DN", carrier="AA", arr_time=None),
    flight(203, "2013-03-01T08:00:00", tailnum=""),
]
LATER = flight(204, "2013-03-01T09:00:00", tailnum="X")
"""Broken, but no run has seen it when it is looked for."""


def version_of(lake: Flights) -> int:
    return newest(lake.lake, lake.contract)


def judged(lake: Flights) -> None:
    """Two runs have set the same rows apart."""
    lake.append(GOOD + BAD)
    run = lake.run(lake.pattern(), *DAY, "first")
    check_source(run)
    check_source(renamed(run, "second"))


def same(lake: Flights, *, run_id: str | None = None, rule: str | None = None, limit: int | None = None) -> list[Any]:
    asked = lake.lake, lake.contract, version_of(lake), run_id, rule, limit
    mine, theirs = look(*asked), _by_spark(*asked)
    assert mine.counts == theirs.counts
    assert list(mine.counts) == list(theirs.counts)
    assert mine.rows.to_pylist() == theirs.rows.to_pylist()
    assert mine.rows.schema.names == theirs.rows.schema.names
    assert mine.rows.schema.types == theirs.rows.schema.types
    return [row["event_id"] for row in mine.rows.to_pylist()]


@pytest.mark.repeats
def test_as_spark_reads_them(lake: Flights) -> None:
    """Before any run, of any run or one, of a rule, the first of them; rows corrected since are open no longer."""
    lake.append([flight(900, "2013-03-01T06:30:00")])
    assert same(lake) == []
    judged(lake)
    lake.append([LATER])
    open_rows_here(lake.lake, lake.contract, version_of(lake))
    assert sorted(same(lake)) == ["UA-201", "UA-202", "UA-203"]
    assert same(lake, run_id="second", rule="flight_has_landed", limit=1) == ["UA-201"]
    assert open_rows_here(lake.lake, lake.contract, version_of(lake), "third").num_rows == 0
    path = lake.warehouse.source("flights")
    lake.spark.sql(f"UPDATE delta.`{path}` SET tailnum = 'N1UA' WHERE event_id = 'UA-203'")
    lake.spark.sql(f"DELETE FROM delta.`{path}` WHERE event_id = 'UA-201'")
    assert same(lake) == ["UA-202"]


@pytest.mark.long
def test_rows_that_repeat_a_key(lake: Flights) -> None:
    """Both of two that differ, all but one of equal ones; also where the other has come since."""
    again = [flight(7, "2013-03-01T07:30:00"), flight(4, "2013-03-01T04:10:00"), flight(4, "2013-03-01T04:10:00")]
    lake.append([*GOOD, *BAD[:1], *again])
    check_source(lake.run(lake.pattern(), *DAY, "first"))
    open_rows_here(lake.lake, lake.contract, version_of(lake))
    assert sorted(same(lake)) == ["UA-201", "UA-4", "UA-4", "UA-7", "UA-7"]
    lake.append([flight(7, "2013-03-02T07:30:00"), flight(4, "2013-03-02T04:10:00")])
    assert sorted(same(lake)) == ["UA-201", "UA-4", "UA-4", "UA-4", "UA-7", "UA-7"]


def test_the_command_starts_no_java(lake: Flights) -> None:
    judged(lake)
    places = {"TRENDLAKE_PROJECT": str(lake.project.root), "TRENDLAKE_STATE": str(lake.project.state)}
    command = [sys.executable, "-m", "trendlake.command", "quarantine", "show", "flights"]
    environment = os.environ | places | {"JAVA_HOME": "/nowhere"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "3 quarantined rows are open" in ended.stdout


MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda value: value.replace(tzinfo=UTC))
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.text(max_size=5)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "short": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "truth": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "double": (pa.float64(), st.floats()),
    "float": (pa.float32(), st.floats(width=32)),
    "price": (pa.decimal128(9, 6), st.decimals(-999, 999, places=6)),
    "cents": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "texts": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=2), max_size=3)),
    "moment": (pa.timestamp("us", "UTC"), MOMENTS | MOMENTS.map(lambda value: value.replace(microsecond=120_000))),
}
FORMER = ["1384b27c5d003f6b", "095d20fbc2e00fb6"]
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}), max_size=40)


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(ROWS)
def test_ids_are_the_same_in_workers(spark: SparkSession, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=pa.schema({name: kind for name, (kind, _) in COLUMNS.items()}))
    in_workers = spark.createDataFrame(table).select(row_id_column(list(COLUMNS)).alias("id"))
    assert row_ids(table, list(COLUMNS)).to_pylist() == [row["id"] for row in in_workers.collect()]


def test_the_ids_of_0_2() -> None:
    """As the code of that version gave them, to rows of every type."""
    moment = datetime(2013, 3, 1, 6, 0, 0, 120_000, UTC)
    row = {
        "text": "straße",
        "long": -(2**63),
        "short": 7,
        "truth": True,
        "day": date(1500, 2, 28),
        "double": -0.0,
        "float": 0.1,
        "price": Decimal("1.500000"),
        "cents": Decimal(10),
        "texts": ["a", None],
        "moment": moment,
    }
    schema = pa.schema({name: kind for name, (kind, _) in COLUMNS.items()})
    table = pa.Table.from_pylist([row, dict.fromkeys(row)], schema)
    assert former_row_ids(table, list(COLUMNS)) == FORMER
