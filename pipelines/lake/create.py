"""Making Delta tables: by delta-rs on this machine's disk, by Spark elsewhere, while others may do the same."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from trendlake.pipelines.lake.here.log import PLAIN_PATH
from trendlake.pipelines.lake.here.write import refuse_full_disk
from trendlake.pipelines.lake.warehouse import KEPT, create, exists, on_disk

FED = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false", **KEPT}
"""Properties of tables whose changes are read. Deletion vectors and the change feed do not go well together yet. Such
tables are not clustered and have no in-commit timestamps: delta-rs writes to none that are (ADR 56)."""


def create_table(spark: SparkSession, path: str, schema: StructType, properties: Mapping[str, str], what: str) -> None:
    """Makes a table of these columns at `path`, if there is none yet. Raises as
    `warehouse.create` and `refuse_full_disk`."""
    if exists(spark, path) or created_here(spark, path, schema, properties):
        return
    builder = SparkTable.createIfNotExists(spark).location(path).addColumns(schema)
    for key, value in properties.items():
        builder = builder.property(key, value)
    create(spark, path, builder, what)


def created_here(spark: SparkSession, path: str, schema: StructType, properties: Mapping[str, str]) -> bool:
    """Whether delta-rs has made the table, or found it made by another writer. A folder that holds something else is
    left to Delta, which refuses it, and so is all that delta-rs does not make."""
    folder = on_disk(spark, path)
    if folder is None or not PLAIN_PATH.fullmatch(str(folder)) or (folder.exists() and any(folder.iterdir())):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    refuse_full_disk(folder)
    try:
        DeltaTable.create(folder, Schema.from_json(schema.json()), mode="ignore", configuration=dict(properties))
    except (DeltaError, pa.ArrowException):
        return exists(spark, path)
    return True
