"""Compaction of the small files that small deliveries leave in a source's table: each additional file makes a delivery,
a query and Delta's own commit slower.

delta-rs's own compaction keeps no order, and makes files of 100 MB: a query for one day would have to read much more.
So the rows are read and written here, and the commit is delta-rs's.
"""

from __future__ import annotations

from contextlib import suppress

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.commits import LINE
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import commit_token
from trendlake.pipelines.lake.here import row_groups, write
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.road import tried
from trendlake.pipelines.lake.warehouse import CONFLICTS

MANY = 64
"""So many small files become one: few enough to be read in the time of a delivery."""
SMALL_ROWS, SMALL_BYTES = limits.READ // MANY, write.GROUP_BYTES // MANY
"""Rows and bytes, not compressed, of a file that is small: many of them together are one row group. A query for one day
would have to read much more if larger files were put together."""


def put_together(lake: Lake, path: str, contract: Contract, run_id: str) -> None:
    """One file, in the order of event time if there is one, in place of `MANY` small ones of the table at `path`: the
    rows stay what they are, and so do older versions. The files stay if this process may not write the table, or if
    another writer commits first."""

    def here() -> None:
        version = latest_version(lake, path)
        table = table_here(lake, path, version)
        files = small_files(table, contract.event_time)[:MANY] if table.writable else []
        if len(files) < MANY:
            return
        rows = table.part(files).every(table.schema.names, limits.READ)
        rows = rows if contract.is_reference else rows.sort_by(contract.event_time)
        token = commit_token(lake, path, run_id, "compact")
        write.put_together(table, files, rows.to_batches(), token, write.Line(LINE, version + 1))

    with suppress(*CONFLICTS):
        tried(here)


def small_files(table: TableHere, time: str) -> list[str]:
    """Those of the table's files that have few rows and bytes, in its order. Raises NotHereError."""
    sizes, counts = (table.actions[name].to_pylist() for name in ("size_bytes", "num_records"))
    return [
        name
        for name, size, count in zip(table.files, sizes, counts, strict=True)
        if count is not None
        and count <= SMALL_ROWS
        and size <= SMALL_BYTES
        and sum(group.size for group in row_groups.times(table.folder / name, time)) <= SMALL_BYTES
    ]
