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

from trendlake.pipelines.delta.parquet_scan import HARMLESS
from trendlake.pipelines.errors import LocalUnsupportedError

FEED_ON = "delta.enableChangeDataFeed"
PLAIN_FILE = re.compile(r"[\w\-./]+", re.ASCII)
"""A file in the table's folder, under the name that the log gives it."""
PLAIN_WRITES = {"appendOnly", "changeDataFeed", "clustering", "domainMetadata", "inCommitTimestamp", "invariants"}
"""Features of Delta's protocol for writers that ask nothing of the files of a table whose columns are all as they are;
that it takes no removals, and when a commit was made, Delta itself sees to."""
FEATURES = 7
"""The version of Delta's protocol for writers from which on a table names its features."""
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


def takes_changes(table: DeltaTable) -> bool:
    """Whether a writer of a commit to a table that `takes_appends` has to know only one thing more: that the feed must
    have its changes."""
    return has_feed(table) and table.protocol().min_writer_version == FEATURES


def takes_appends(table: DeltaTable) -> bool:
    """Whether rows may be added by who knows nothing else of the table. Delta's protocol, "Writer Version
    Requirements": before version 3 a writer must know `appendOnly`, which forbids no append, and the invariants of
    columns."""
    schema = table.schema()
    if any(not field.nullable for field in schema.fields) or INVARIANT in schema.to_json():
        return False
    protocol = table.protocol()
    if protocol.min_writer_version == FEATURES:
        return set(protocol.writer_features or ()) <= PLAIN_WRITES
    return bool(protocol.min_writer_version < 3)


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
