"""Making Delta tables: by delta-rs on this machine's disk, by Spark elsewhere, while others may do the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
from delta.tables import DeltaTable as SparkTable
from delta.tables import DeltaTableBuilder
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from trendlake.pipelines.lake.here.log import PLAIN_PATH
from trendlake.pipelines.lake.here.write import refuse_full_disk
from trendlake.pipelines.lake.lake import Lake, exists, folder_of
from trendlake.pipelines.lake.warehouse import KEPT, with_retries

FED = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false", **KEPT}
"""Properties of tables whose changes are read. Deletion vectors and the change feed do not go well together yet. Such
tables are not clustered and have no in-commit timestamps: delta-rs writes to none that are (ADR 56)."""


def create_table(lake: Lake, path: str, schema: StructType, properties: Mapping[str, str], what: str) -> None:
    """Makes a table of these columns at `path`, if there is none yet. Raises as `create` and `refuse_full_disk`."""
    if exists(lake, path) or created_here(lake, path, schema, properties):
        return
    builder = SparkTable.createIfNotExists(lake.spark).location(path).addColumns(schema)
    for key, value in properties.items():
        builder = builder.property(key, value)
    create(lake, path, builder, what)


def created_here(lake: Lake, path: str, schema: StructType, properties: Mapping[str, str]) -> bool:
    """Whether delta-rs has made the table, or found it made by another writer. A folder that holds something else is
    left to Delta, which refuses it, and so is all that delta-rs does not make."""
    folder = lake.on_disk(path)
    if folder is None or not PLAIN_PATH.fullmatch(str(folder)) or (folder.exists() and any(folder.iterdir())):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    refuse_full_disk(folder)
    try:
        DeltaTable.create(folder, Schema.from_json(schema.json()), mode="ignore", configuration=dict(properties))
    except (DeltaError, pa.ArrowException):
        return exists(lake, path)
    return True


def create(lake: Lake, path: str, builder: DeltaTableBuilder, what: str) -> None:
    """Make a table at `path`, if there is none yet, while others may do the same.

    Delta makes the folder of the log first and then refuses folders that are not empty: whoever is killed between the
    two leaves a folder in which no table can be made. It is cleared away once its first commit has been waited for
    in vain. Raises as `with_retries`.
    """
    try:
        with_retries(builder.execute, what)
    except AnalysisException:
        if not _begun_and_left(lake, path):
            raise
        files, folder = folder_of(lake, path)
        files.delete(folder, True)
        with_retries(builder.execute, what)


def _begun_and_left(lake: Lake, path: str) -> bool:
    """Whether there is nothing but a log without a commit in it."""
    files, folder = folder_of(lake, path)
    if not files.exists(folder) or [item.getPath().getName() for item in files.listStatus(folder)] != ["_delta_log"]:
        return False
    names = [item.getPath().getName() for item in files.listStatus(folder.suffix("/_delta_log"))]
    return not any(re.fullmatch(r"\d{20}\..*", name) for name in names)
