"""The bench's lake: a day of trades as a Delta table, and runs of a pattern over it by the pipelines' own steps."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from trendlake.cep_core import compile_plan, load_pattern
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.sources import Sources
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.session import start_session

DAY = 86_400_000_000
FALLING: dict[str, Any] = {
    "kind": "trends",
    "source": "trades",
    "pattern": "Stock S+",
    "where": ["[company]", "S.price > NEXT(S).price"],
    "return": {"trends": "COUNT(*)"},
    "group_by": ["company"],
    "within": "1 day",
}
TRADES = Path(__file__).with_name("trades.yaml")

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def session(master: str = "local[*]") -> SparkSession:
    """A session for jobs of many seconds: Java's own choice of compiler and collector."""
    return start_session(find_project(), Profile(master=master, spark=SETTINGS), "trendlake bench")


def timed(work: Callable[[], object]) -> float:
    """Wall-clock seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bench_project(state: Path) -> Project:
    """This project with a state folder of the bench's own, emptied; jars and Java are those of the set-up."""
    shutil.rmtree(state, ignore_errors=True)
    return replace(find_project(), state=state)


def trades(spark: SparkSession, events: int, companies: int) -> DataFrame:
    """`events` trades in order of time through one day, company and price random (seeded)."""
    number = sf.col("id")
    return spark.range(0, events, 1, 8).select(
        sf.concat(sf.lit("trade-"), number).alias("event_id"),
        sf.timestamp_micros(number * (DAY // events)).alias("event_time"),
        sf.lit("Stock").alias("event_type"),
        sf.format_string("C%04d", sf.floor(sf.rand(1) * companies)).alias("company"),
        (sf.floor(sf.rand(2) * 10_000_000) / 100).alias("price"),
    )


def write_trades(spark: SparkSession, path: str, events: int, companies: int) -> None:
    """Those trades as a Delta table."""
    trades(spark, events, companies).write.format("delta").save(path)


def add_trades(spark: SparkSession, path: str, after: int, events: int, companies: int, number: int) -> None:
    """One more file with `events` trades of that day, the `number`-th (from 0) beside a table of `after` trades."""
    more = trades(spark, events, companies).coalesce(1)
    renamed = more.withColumn("event_id", sf.concat(sf.lit(f"trade-{after}-{number}-"), "event_id"))
    renamed.write.format("delta").mode("append").save(path)


def run_of(
    spark: SparkSession,
    project: Project,
    name: str,
    query: dict[str, Any] | None = None,
    limit: int = 4_000_000,
    contract_path: Path = TRADES,
) -> Run:
    """The run `name` of the falling prices of that day, or of `query`; results go to a table of its own."""
    pattern = load_pattern({"name": name, **(query or FALLING)})
    contract: Contract = load_contract(contract_path)
    plan = compile_plan(pattern, contract.event_schema())
    profile = Profile(limits=Limits(shard_rows=limit))
    warehouse = Warehouse(profile.warehouse_of(project))
    return Run(
        Lake.of(spark, warehouse), project, profile, pattern, Sources.of(contract), plan, f"bench {name}", 0, DAY
    )
