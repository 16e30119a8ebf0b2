"""Empty tables for many tests: each is made once in a session, and copied. To make one takes Spark a second."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.runs.record import create_runs

_USED: set[str] = set()
"""Places that had a table once: one that is made there again is another table, with an id of its own."""


def empty_tables(spark: SparkSession, warehouse: Warehouse, contract: Contract) -> None:
    """The source's table and the run record, where they are not there yet and are ours to make."""
    if contract.name in warehouse.elsewhere:
        return
    columns = "-".join(f"{item.name} {item.type} {item.description}" for item in contract.columns)
    name = f"source_{hash((contract.event_time, columns)):x}"
    source = warehouse.source(contract.name)
    copied(spark, source, name, lambda: create_source(bare_lake(spark), source, contract))
    copied(spark, warehouse.runs, "runs", lambda: create_runs(Lake.of(spark, warehouse)))


def copied(spark: SparkSession, place: str, name: str, make: Callable[[], None]) -> None:
    """A table at `place`, a path on this machine's disk: a copy of the first of this `name`, which `make` makes."""
    tables = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
    template = tables.parent / "empty_tables" / name
    if Path(place).exists() or place in _USED or not place.startswith("/"):
        make()
    elif template.exists():
        shutil.copytree(template, place)
    else:
        make()
        shutil.copytree(place, template)
    _USED.add(place)
