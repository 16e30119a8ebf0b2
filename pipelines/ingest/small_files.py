"""Compaction of the small files that small deliveries leave in a source's table: each additional file makes a delivery,
a query and Delta's own commit slower.

Spark's OPTIMIZE of a clustered table rewrites all of it, which takes seconds, and delta-rs writes no table whose
commits bear times of their own. So the rows are read and written in this process, and the commit is Delta's.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import SparkSession

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.delta import limits, local_commit, row_groups
from trendlake.pipelines.delta.commits import commit_token
from trendlake.pipelines.delta.local_log import local_errors
from trendlake.pipelines.delta.local_reader import TableHere, table_here
from trendlake.pipelines.delta.tables import CONFLICTS, latest_version
from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.ingest.commits import LINE, writing_session

MANY = 64
"""So many small files become one: few enough to be read in the time of a delivery."""
SMALL_ROWS, SMALL_BYTES = limits.READ // MANY, local_commit.GROUP_BYTES // MANY
"""Rows and bytes, not compressed, of a file that is small: many of them together are one row group. A query for one day
would have to read much more if larger files were put together."""


def put_together(spark: SparkSession, path: str, contract: Contract, run_id: str) -> None:
    """One file, in the order of event time, in place of `MANY` small ones of the table at `path`: the rows stay what
    they are, and so do older versions. The files stay if this process may not write the table, or if another writer
    commits first."""
    with suppress(LocalUnsupportedError, *CONFLICTS):
        version = latest_version(spark, path)
        table = table_here(spark, path, version)
        files = small_files(table, contract.event_time)[:MANY] if table.writable else []
        if len(files) < MANY:
            return
        rows = table.part(files).every(table.schema.names, limits.READ)
        with local_errors():
            removed = [local_commit.remove_file(table.folder, name, data_change=False) for name in files]
            added = local_commit.add_file(table.folder, rows.sort_by(contract.event_time), data_change=False)
        metrics = {
            "numRemovedFiles": len(removed),
            "numRemovedBytes": sum(item["remove"]["size"] for item in removed),
            "numAddedFiles": 1,
            "numAddedBytes": added["add"]["size"],
        }
        session = writing_session(spark, commit_token(run_id, "compact"), version, contract)
        with local_commit.active(spark, session) as java:
            local_commit.commit_files(
                spark, java, table, path, [*removed, added], "Optimize", metrics, (LINE, version + 1)
            )


def small_files(table: TableHere, time: str) -> list[str]:
    """Those of the table's files that have few rows and bytes, in its order. Raises LocalUnsupportedError."""
    with local_errors():
        sizes, counts = (table.actions[name].to_pylist() for name in ("size_bytes", "num_records"))
        return [
            name
            for name, size, count in zip(table.files, sizes, counts, strict=True)
            if count is not None
            and count <= SMALL_ROWS
            and size <= SMALL_BYTES
            and sum(group.size for group in row_groups.times(table.folder / name, time)) <= SMALL_BYTES
        ]
