"""Ingestion: deliveries of raw events into a source's Delta table, each one commit, each once.

Rows land as they came, those that break the contract too: the split is made by every run that reads them, so that
a row is judged by the contract in force and never lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipelines.basis import Basis
from pipelines.contract import Contract
from pipelines.frames import frame_of
from pipelines.quarantine import check_columns, column
from pipelines.runs import Record, recorded
from pipelines.table_versions import table_id
from pipelines.warehouse import FED, Warehouse, create, exists, latest_version

Progress = Callable[[int, int, bool], None]
"""Called after a delivery with its number from 1, its rows, and whether it was new."""


def create_source(spark: SparkSession, path: str, contract: Contract) -> None:
    """The source's table by its contract, where it is not there: change feed on, clustered by event time."""
    if exists(spark, path):
        return
    builder = DeltaTable.createIfNotExists(spark).location(path)
    for item in contract.columns:
        builder = builder.addColumn(item.name, item.type, comment=item.description or None)
    for key, value in FED.items():
        builder = builder.property(key, value)
    create(spark, path, builder.clusterBy(contract.event_time), f"creating source {contract.name}")


def ingest(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, deliveries: Iterable[pa.Table], *, feed: str,
    run_id: str, progress: Progress | None = None,
) -> Record:  # fmt: skip
    """Append the deliveries in their order; one that is there already, from a run before, is passed over.

    `feed` names the sequence of deliveries: number n of a feed is written once, whatever becomes of the process that
    writes it (Delta keeps the last number with the commit). `feed` must change when the deliveries do.
    Raises SourceSchemaError; NotOursError for a table that other programs write.
    """
    warehouse.refuse_foreign(contract.name)
    path = warehouse.source(contract.name)
    record = Record(run_id, None, "ingest", source=contract.name)
    with recorded(spark, warehouse, record):
        create_source(spark, path, contract)
        check_columns(spark.read.format("delta").load(path).schema, contract)
        there = delivered(spark, path, feed)
        rows = written = 0
        for number, delivery in enumerate(deliveries, start=1):
            new = number not in there
            if new:
                _append(typed(frame_of(spark, delivery), contract), path, feed, number)
            rows += delivery.num_rows
            written += delivery.num_rows if new else 0
            if progress:
                progress(number, delivery.num_rows, new)
        record.rows_in = rows
        record.rows_inserted = written
        record.source_version = latest_version(spark, path)
        record.basis = Basis(
            contract.fingerprint, contract.lateness_us or 0, source_version=record.source_version,
            source_table=table_id(spark, path, record.source_version),
        )  # fmt: skip
        _note_extent(spark, path, contract, record)
    return record


def delivered(spark: SparkSession, path: str, feed: str) -> set[int]:
    """The numbers of a feed's deliveries that the table's history tells of."""
    notes = DeltaTable.forPath(spark, path).history().select("userMetadata").collect()
    mark = f"{feed} delivery "
    return {int(row[0].removeprefix(mark)) for row in notes if row[0] and row[0].startswith(mark)}


def feeds(spark: SparkSession, path: str) -> set[str]:
    """The feeds whose deliveries the table's history tells of; none where there is no table."""
    if not exists(spark, path):
        return set()
    notes = DeltaTable.forPath(spark, path).history().select("userMetadata").collect()
    return {match[1] for row in notes if row[0] and (match := re.fullmatch(r"(.*) delivery \d+", row[0]))}


def typed(frame: DataFrame, contract: Contract) -> DataFrame:
    """The contract's columns in its order and types; other columns are kept behind them."""
    wanted = {item.name: item.type for item in contract.columns}
    others = [column(name) for name in frame.columns if name not in wanted]
    return frame.select(*[column(name).cast(kind).alias(name) for name, kind in wanted.items()], *others)


def _append(frame: DataFrame, path: str, feed: str, number: int) -> None:
    """One commit. Should the history no longer tell of it, the transaction's number still keeps it single."""
    writer = frame.coalesce(1).write.format("delta").mode("append")
    writer = writer.option("txnAppId", f"ingest {feed}").option("txnVersion", number)
    writer.option("userMetadata", f"{feed} delivery {number}").save(path)


def _note_extent(spark: SparkSession, path: str, contract: Contract, record: Record) -> None:
    time = sf.unix_micros(column(contract.event_time))
    extent = spark.read.format("delta").load(path).agg(sf.count(sf.lit(1)), sf.min(time), sf.max(time))
    record.rows_out, record.interval_from, record.interval_to = extent.collect()[0]
