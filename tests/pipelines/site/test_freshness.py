"""How far a source has come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support.flights import Flights, flight
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.runs.consistency import watermark_of
from trendlake.pipelines.site.freshness import read_source

pytestmark = pytest.mark.spark

START = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("rows", [0, 1, limits.READ + 1])
def test_files_say_the_last_event_time(spark: SparkSession, tmp_path: Path, rows: int) -> None:
    """Also of a table with more rows than this process reads: no Spark job, which took 3.4 s after each run."""
    contract = load_contract(ROOT / "data_contracts" / "flights.yaml")
    warehouse = Warehouse(str(tmp_path))
    times = [START + timedelta(seconds=row) for row in range(rows)]
    table = pa.table({contract.event_time: pa.array([None, *times], pa.timestamp("us", "UTC"))})
    write_deltalake(warehouse.source("flights"), table)
    before = spark.sparkContext.statusTracker().getJobIdsForGroup()
    facts = read_source(Lake.of(spark, warehouse), "flights", contract)
    assert facts.version == 0
    assert facts.newest_event == (times[-1] if times else None)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == before


def test_the_newest_event_is_that_of_a_run(lake: Flights) -> None:
    """Not one that breaks the contract, nor one of a wrong clock: `trendlake run` has nothing to do for these."""
    lake.deliver(
        [
            flight(1, "2013-03-01T07:00:00"),
            flight(2, "2013-03-05T07:00:00", arr_time=None),
            flight(3, "2190-03-05T07:00:00"),
        ]
    )
    contract = load_contract(lake.project.contract_path("flights"))
    facts = read_source(lake.lake, "flights", contract)
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "look")
    assert facts.newest_event == moment(watermark_of(run, facts.version or 0) + run.lateness)
    assert facts.newest_event == datetime(2013, 3, 1, 7, tzinfo=UTC)
