"""A change of `idColumns` of a source with rows is refused before a row is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipelines.ingest.test_event_ids import FLIGHTS, contract_of
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import SourceSchemaError
from trendlake.pipelines.ingest.deliver import Taken, ingest
from trendlake.pipelines.ingest.readers.files import feed_of, read_file
from trendlake.pipelines.ingest.replay import read_repaired, replay
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.warehouse import Warehouse

pytestmark = pytest.mark.spark

REPAIRED = "carrier,flight,hour\nUA,1546,2013-01-01 10:00:00Z\n"


class Flights:
    """A source `ev`, whose ids are made of three columns."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.warehouse = Warehouse(str(folder / "warehouse"))
        self.lake = Lake.of(spark, self.warehouse)
        self.path = self.warehouse.source("ev")

    def file(self, text: str = FLIGHTS) -> Path:
        path = self.folder / "flights.csv"
        header, *lines = text.splitlines()
        path.write_text("\n".join([f"{header},delay", *(f"{line},1" for line in lines)]) + "\n")
        return path

    def bring(self, contract: Contract, file: Path, run_id: str) -> Taken:
        deliveries: list[Taken] = []
        ingest(
            self.lake,
            contract,
            [read_file(file, contract)],
            feed=f"{feed_of(file)} {run_id}",
            run_id=run_id,
            progress=lambda _, taken: deliveries.append(taken),
        )
        return deliveries[0]

    def changed(self, columns: list[str]) -> Contract:
        return contract_of(self.folder, idColumns=columns)


@pytest.fixture
def flights(spark: SparkSession, tmp_path: Path) -> Flights:
    flights = Flights(spark, tmp_path)
    assert flights.bring(contract_of(tmp_path), flights.file(), "first").new == 3
    return flights


@pytest.mark.long
@pytest.mark.parametrize(
    "columns",
    [
        ["carrier", "hour"],
        *(
            pytest.param(one, marks=pytest.mark.repeats)
            for one in (["flight", "carrier", "hour"], ["carrier", "flight"])
        ),
    ],
)
def test_another_choice_of_columns(flights: Flights, columns: list[str]) -> None:
    """Fewer, or others, or in another order: a delivery of the same file would bring every event again."""
    before, other = latest_version(flights.lake, flights.path), flights.changed(columns)
    with pytest.raises(SourceSchemaError, match="has other ids than") as refused:
        flights.bring(other, flights.file(), "second")
    assert "UA|1545|2013-01-01 10:00:00.000000Z" in str(refused.value)
    assert "set idColumns back" in str(refused.value.hint)
    with pytest.raises(SourceSchemaError, match="has other ids than"):
        replay(flights.lake, other, read_repaired(flights.file(REPAIRED), other), "third")
    assert latest_version(flights.lake, flights.path) == before


@pytest.mark.long
def test_the_same_columns(flights: Flights) -> None:
    """They stay as they are; so does a row that another program has updated."""
    contract: Any = contract_of(flights.folder)
    assert flights.bring(contract, flights.file(), "again").there == 3
    flights.spark.sql(f"UPDATE delta.`{flights.path}` SET flight = 8 WHERE flight = 7")
    more = flights.file("carrier,flight,hour\nB6,1,01/02/2013 05:00\n")
    assert flights.bring(contract, more, "more").new == 1
