"""The forms of tables that are read and written in this process, by what delta-rs says of a version: its protocol, its
properties, its columns.

All other forms are left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from trendlake.pipelines.lake.here.parquet_scan import HARMLESS
from trendlake.pipelines.lake.road import refuse

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


def other_forms(table: DeltaTable) -> dict[str, bool]:
    """For `refuse`: the files do not hold the rows as they are, with partitions, deletion vectors, column mapping and
    the like."""
    about, features = table.metadata(), set(table.protocol().reader_features or ())
    mapping = about.configuration.get("delta.columnMapping.mode", "none")
    return {
        f"partitioned by {about.partition_columns}": bool(about.partition_columns),
        f"column mapping: {mapping}": mapping != "none",
        f"features of its own: {sorted(features)}": bool(features - HARMLESS),
    }


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
    """Arrow's types of the columns. Raises NotHereError if only Spark can read one, such as a padded text, or
    there is no such column."""
    fields = [schema[name] for name in names if name in schema.names]
    types = pa.schema(list(to_arrow_schema(StructType(fields), timezone="UTC")))
    refuse({f"no column {name}": name not in schema.names for name in names})
    refuse({f"a column with more to it than its type: {field.name}": _has_more(field) for field in fields})
    refuse({f"a column of {kind}": pa.types.is_nested(kind) and not _is_texts(kind) for kind in types.types})
    return types


def _has_more(field: StructField) -> bool:
    return bool(field.metadata.keys() - {"comment"})


def _is_texts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_string(kind.value_type))
