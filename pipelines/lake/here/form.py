"""The forms of tables that are read and written in this process, by what delta-rs says of a version: its protocol, its
properties, its columns.

All other forms are left to Spark: `LocalUnsupportedError` says why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.lake.here.parquet_scan import HARMLESS

FEED_ON = "delta.enableChangeDataFeed"
PLAIN_FILE = re.compile(r"[\w\-./]+", re.ASCII)
"""A file in the table's folder, under the name that the log gives it."""
PLAIN_WRITES = {"appendOnly", "changeDataFeed", "invariants"}
"""Features of Delta's protocol for writers that delta-rs has, and that ask nothing of the rows where no column states
an invariant."""
FEATURES = 7
"""The version of Delta's protocol for writers from which on a table names its features."""
COMPUTED, CONSTRAINT = "delta.generationExpression", "delta.constraints."
INVARIANT = "delta.invariants"


def refuse_other_forms(table: DeltaTable) -> None:
    """Raises LocalUnsupportedError where the files do not hold the rows as they are: partitions, deletion vectors,
    column mapping and the like."""
    about, features = table.metadata(), set(table.protocol().reader_features or ())
    mapping = about.configuration.get("delta.columnMapping.mode", "none")
    if about.partition_columns or features - HARMLESS or mapping != "none":
        raise LocalUnsupportedError(f"partitioned, or with features of its own: {sorted(features)}, {mapping}")


def has_feed(table: DeltaTable) -> bool:
    """Whether the change feed has the changes that a commit makes."""
    return bool(table.metadata().configuration.get(FEED_ON) == "true")


def takes_writes(table: DeltaTable) -> bool:
    """Whether delta-rs writes to the table, and it asks nothing of its rows: it has no constraints, no columns that
    are computed, none that must not be NULL. Delta's protocol, "Writer Version Requirements"."""
    schema, about, protocol = table.schema(), table.metadata(), table.protocol()
    words = schema.to_json()
    if any(not field.nullable for field in schema.fields) or INVARIANT in words or COMPUTED in words:
        return False
    if any(name.startswith(CONSTRAINT) for name in about.configuration):
        return False
    if protocol.min_writer_version == FEATURES:
        return set(protocol.writer_features or ()) <= PLAIN_WRITES
    return bool(protocol.min_writer_version <= 4)


def arrow_schema(schema: StructType, names: Sequence[str]) -> pa.Schema:
    """Arrow's types of the columns. Raises LocalUnsupportedError if only Spark can read one, such as a padded text, or
    there is no such column."""
    if absent := [name for name in names if name not in schema.names]:
        raise LocalUnsupportedError(f"no column {absent[0]}")
    fields = [schema[name] for name in names]
    if any(field.metadata.keys() - {"comment"} for field in fields):
        raise LocalUnsupportedError("a column with more to it than its type")
    types = pa.schema(list(to_arrow_schema(StructType(fields), timezone="UTC")))
    for kind in types.types:
        if pa.types.is_nested(kind) and not (pa.types.is_list(kind) and pa.types.is_string(kind.value_type)):
            raise LocalUnsupportedError(f"a column of {kind}")
    return types
