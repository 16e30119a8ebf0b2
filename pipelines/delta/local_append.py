"""Appends to Delta tables on this machine's disk by delta-rs, of rows that nobody else writes: no commit of Spark's is
planned for one row."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql import SparkSession

from pipelines.delta.local_log import folder_on_disk, local_errors
from pipelines.errors import LocalUnsupportedError


def append_here(spark: SparkSession, path: str, rows: pa.Table) -> int:
    """Append `rows` to the table at `path` in a commit of their own, columns that it lacks too; its version. Raises
    LocalUnsupportedError: unless that is because there is no such table, the commit may have been made."""
    folder = folder_on_disk(spark, path)
    with local_errors():
        table = DeltaTable(folder)
        # Old logs are left to Delta, which knows what a checkpoint of its own holds.
        hooks = PostCommitHookProperties(cleanup_expired_logs=False)
        write_deltalake(table, rows, mode="append", schema_mode="merge", post_commithook_properties=hooks)
        return int(table.version())


def compact_here(spark: SparkSession, path: str) -> None:
    """Makes one file of the small ones of the table at `path`: the rows stay what they are, and so do older versions.
    Where that cannot be done in this process, or another writer comes first, they stay."""
    with suppress(LocalUnsupportedError):
        folder = folder_on_disk(spark, path)
        with local_errors():
            hooks = PostCommitHookProperties(cleanup_expired_logs=False)
            DeltaTable(folder).optimize.compact(post_commithook_properties=hooks)
