"""Where results wait to be checked and published: the rows of one attempt, as Parquet files in a folder of their own.

The folder's name is drawn by lot and told in the run record, so what a record names was written whole, by one attempt,
and does not change: that is all the pinning that a check and a publication need, and a table with a log of its own
would take three times as long to make. Folders of attempts that were killed are named by no record.
"""

from __future__ import annotations

import secrets

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from cep_core import AnyPlan
from pipelines.steps.run import Run
from pipelines.stretches import hash_column
from pipelines.worker_errors import told_by_workers

ORIGIN = (
    StructField("plan_hash", StringType()),
    StructField("source_version", LongType()),
    StructField("run_id", StringType()),
    StructField("computed_at", TimestampType()),
)
"""Columns that say where a row comes from."""


def write_staged(run: Run, results: DataFrame, source_version: int) -> tuple[int, int]:
    """Write the rows with their origin; the number of the attempt, by which they are read, and how many they are.
    Raises what a kernel raised for the user."""
    number = secrets.randbits(62)
    told = results.withColumns(
        {
            "plan_hash": hash_column(run),
            "source_version": sf.lit(source_version).cast("bigint"),
            "run_id": sf.lit(run.run_id),
            "computed_at": sf.current_timestamp(),
        }
    )
    with told_by_workers():
        told.write.format("parquet").save(_folder(run, number))
    return number, read_staged(run, number).count()


def read_staged(run: Run, number: int, spark: SparkSession | None = None) -> DataFrame:
    """The rows of an attempt, in the run's session or another."""
    return read_folder(spark or run.spark, _folder(run, number), run.plan)


def read_folder(spark: SparkSession, folder: str, plan: AnyPlan) -> DataFrame:
    """The rows staged in `folder` by a run of the plan."""
    return spark.read.schema(StructType([*from_arrow_schema(plan.result_schema).fields, *ORIGIN])).parquet(folder)


def _folder(run: Run, number: int) -> str:
    return f"{run.warehouse.staging(run.name, run.run_id)}/{number}"
