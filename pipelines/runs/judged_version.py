"""The newest version of a source whose rows some step has judged by the contract."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from trendlake.pipelines.errors import LocalUnsupportedError, RecordDamagedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log import local_errors
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.lake.warehouse import Warehouse, exists
from trendlake.pipelines.runs.record import BASIS
from trendlake.pipelines.runs.stored_record import basis_in

JUDGES = ("ingest", "check_source", "revise")
"""Stages that judge the rows of a source."""


def judged_version(spark: SparkSession, warehouse: Warehouse, source: str) -> int:
    """The newest version of a source's present table whose rows some step has checked by the contract; -1 where none
    has. Records that do not name their table count too."""
    if not exists(spark, warehouse.runs):
        return -1
    table = table_id(spark, warehouse.source(source))
    try:
        return _judged_version_here(spark, warehouse, source, table)
    except LocalUnsupportedError:
        return _judged_version_by_spark(spark, warehouse, source, table)


def _judged_version_here(spark: SparkSession, warehouse: Warehouse, source: str, table: str | None) -> int:
    runs = table_here(spark, warehouse.runs)
    columns = ["source", "run_id", "stage", "status", "source_version", "rows_quarantined"]
    columns += [BASIS] if BASIS in runs.schema.names else []
    rows = runs.rows_with(columns, pa.array([source], pa.string()), limits.RECORDS).to_pylist()
    with local_errors():
        versions = [
            row["source_version"]
            for row in rows
            if row["stage"] in JUDGES
            and row["source_version"] is not None
            and (row["status"] == "succeeded" or row["rows_quarantined"] is not None)
            and _is_of(row, table)
        ]
    return max(versions, default=-1)


def _is_of(row: Mapping[str, Any], table: str | None) -> bool:
    """Whether the record is of this source's table, or names no table; False for a damaged one."""
    try:
        basis = basis_in(row)
    except RecordDamagedError:
        return False
    return basis is None or basis.source_table in (None, table)


def _judged_version_by_spark(spark: SparkSession, warehouse: Warehouse, source: str, table: str | None) -> int:
    mine = spark.read.format("delta").load(warehouse.runs).where(sf.col("source") == source)
    if BASIS in mine.columns:
        recorded_table = sf.get_json_object(BASIS, "$.source_table")
        needed = (sf.get_json_object(BASIS, f"$.{name}").isNotNull() for name in ("contract", "lateness"))
        whole = sf.col(BASIS).isNull() | reduce(and_, needed)
        mine = mine.where(whole & (recorded_table.isNull() | (recorded_table == sf.lit(table))))
    judged = mine.where(sf.col("stage").isin(*JUDGES) & sf.col("source_version").isNotNull())
    # a run that the contract's tolerance stopped has set its rows apart before
    judged = judged.where((sf.col("status") == "succeeded") | sf.col("rows_quarantined").isNotNull())
    return int(judged.agg(sf.coalesce(sf.max("source_version"), sf.lit(-1))).collect()[0][0])
