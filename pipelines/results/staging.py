"""Where results wait to be checked and published: the rows of one attempt, as Parquet files in a folder of their own.

The folder's name is drawn by lot and told in the run record, so what a record names was written whole, by one attempt,
and does not change: that is all the pinning that a check and a publication need, and a table with a log of its own
would take three times as long to make. Folders of attempts that were killed are named by no record.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from cep_core import AnyPlan
from cep_core.events.arrays import arrow, numbers, repeated
from pipelines.delta.local_reader import all_groups, at_most, local_errors
from pipelines.delta.parquet_scan import plain_batches
from pipelines.delta.tables import on_disk
from pipelines.errors import LocalUnsupportedError
from pipelines.results.reuse import hash_column, hashes
from pipelines.runs.run import Run
from pipelines.spark.worker_errors import told_by_workers

Batches = Iterator[pa.RecordBatch]

ORIGIN = (
    StructField("plan_hash", StringType()),
    StructField("source_version", LongType()),
    StructField("run_id", StringType()),
    StructField("computed_at", TimestampType()),
)
"""Columns that say where a row comes from."""
LEFT = pa.schema({"file": pa.string(), "rows": pa.int64()})
HIDDEN = "_"
"""How the name of a file begins that Spark is not to read."""


def write_staged(run: Run, results: DataFrame, source_version: int) -> tuple[int, int]:
    """Write the rows with their origin; the number of the attempt, by which they are read, and how many they are.
    Raises what a kernel raised for the user."""
    number = secrets.randbits(62)
    rows = results.withColumns(
        {
            "plan_hash": hash_column(run),
            "source_version": sf.lit(source_version).cast("bigint"),
            "run_id": sf.lit(run.run_id),
            "computed_at": sf.current_timestamp(),
        }
    )
    with told_by_workers():
        rows.write.format("parquet").save(staged_folder(run, number))
    return number, read_staged(run, number).count()


def leave_staged(
    run: Run, packed: DataFrame, kernel: Callable[[Batches], Batches], source_version: int
) -> tuple[int, int] | None:  # fmt: skip
    """As `write_staged` of the rows that `kernel` makes of `packed`, where the workers are processes of this machine:
    each writes a file of its own, as columns. Spark would make rows of them, and columns again, for a third of the
    step's time. None where the warehouse is not on this machine's disk.

    What a worker that fails has written, or one whose work Spark does again, stays hidden from who reads."""
    number = secrets.randbits(62)
    folder = on_disk(run.spark, staged_folder(run, number))
    if folder is None:
        return None
    folder.mkdir(parents=True)
    work = _leaver(run, kernel, folder, source_version)
    with told_by_workers():
        left = packed.mapInArrow(work, from_arrow_schema(LEFT)).collect()
    for name, _ in left:
        (folder / name).rename(folder / name.removeprefix(HIDDEN))
    return number, sum(rows for _, rows in left)


def _leaver(
    run: Run, kernel: Callable[[Batches], Batches], folder: Path, source_version: int
) -> Callable[[Batches], Batches]:  # fmt: skip
    """The function for `mapInArrow`: a row of `LEFT` for the rows of each partition."""
    originated, schema = _originator(run, source_version)

    def leave(batches: Batches) -> Batches:
        from pyarrow.parquet import ParquetWriter  # 50 ms of a worker's start, for those that write only

        name, rows = f"{HIDDEN}{uuid4().hex}.parquet", 0
        # no statistics: to pyarrow a NaN is in no range, to Spark it is greater than all
        with ParquetWriter(f"{folder}/{name}", schema, write_statistics=False) as file:
            for batch in kernel(batches):
                file.write_batch(originated(batch))
                rows += batch.num_rows
        yield pa.RecordBatch.from_arrays([repeated(name, 1), arrow(np.array([rows]))], schema=LEFT)

    return leave


def with_origin(run: Run, results: pa.Table, source_version: int) -> pa.Table:
    """The rows with their origin, as `write_staged` leaves them."""
    originated, schema = _originator(run, source_version)
    return pa.Table.from_batches([originated(batch) for batch in results.to_batches()], schema)


def _originator(run: Run, source_version: int) -> tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]:
    """The function that puts the origin beside result rows of the run, and the schema it gives. It can be sent to
    workers."""
    origin = _origin_schema()
    schema = pa.schema([*run.plan.result_schema, *origin])
    owner, known = run.plan.owned(range(1))[0], hashes(run)
    run_id, moment = run.run_id, time.time_ns() // 1000

    def originated(batch: pa.RecordBatch) -> pa.RecordBatch:
        rest = (repeated(value, batch.num_rows) for value in (source_version, run_id, moment))
        values = (_known(batch.column(owner), known), *rest)
        origin_values = (array.cast(field.type) for array, field in zip(values, origin, strict=True))
        return pa.RecordBatch.from_arrays([*batch.columns, *origin_values], schema=schema)

    return originated, schema


def _known(owner: Any, hashes: Sequence[tuple[int, str]]) -> Any:
    """By which of the `hashes` each row is known."""
    number = np.searchsorted([before for before, _ in hashes[:-1]], numbers(owner), side="right")
    names = pa.concat_arrays([repeated(known, 1) for _, known in hashes])
    return pa.DictionaryArray.from_arrays(arrow(number.astype(np.int32)), names)


def read_staged(run: Run, number: int, spark: SparkSession | None = None) -> DataFrame:
    """The rows of an attempt, in the run's session or another."""
    return read_folder(spark or run.spark, staged_folder(run, number), run.plan)


def read_folder(spark: SparkSession, folder: str, plan: AnyPlan) -> DataFrame:
    """The rows staged in `folder` by a run of the plan."""
    return spark.read.schema(StructType([*from_arrow_schema(plan.result_schema).fields, *ORIGIN])).parquet(folder)


def staged_here(run: Run, number: int, most: int) -> pa.Table:
    """The rows of an attempt in this process. Raises LocalUnsupportedError if they are more than `most`, or not
    on this machine's disk."""
    folder = on_disk(run.spark, staged_folder(run, number))
    if folder is None:
        raise LocalUnsupportedError("staged rows elsewhere")
    with local_errors():
        schema = pa.schema([*run.plan.result_schema, *_origin_schema()])
        files = [file for file in sorted(folder.glob("*.parquet")) if not file.name.startswith((HIDDEN, "."))]
        batches = (batch for file in files for batch in plain_batches(str(file), schema, all_groups, threads=True))
        return pa.Table.from_batches(at_most(batches, most), schema)


def _origin_schema() -> pa.Schema:
    return to_arrow_schema(StructType(list(ORIGIN)), timezone="UTC")


def staged_folder(run: Run, number: int) -> str:
    """The path of the rows of an attempt."""
    return f"{run.warehouse.staging(run.name, run.run_id)}/{number}"
