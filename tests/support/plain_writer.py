"""Changes of a Delta table's rows as another program makes them: without a job of Spark's, which takes longer for a
row than the pipeline for all that follows. The files are written by this process; the commit is Delta's own.

For tables as the pipeline makes them: not partitioned, no deletion vectors. A change writes anew the files that have
rows of it as one, and tells them in the change feed where that is on, as Spark's DELETE, UPDATE and MERGE do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from trendlake.pipelines.delta import local_commit
from trendlake.pipelines.delta.local_log import Action
from trendlake.pipelines.delta.local_reader import CHANGE, TableHere, table_here
from trendlake.pipelines.delta.tables import OvertakenError, latest_version, with_retries
from trendlake.pipelines.errors import LocalUnsupportedError

Row = dict[str, Any]
APPLICATION = "tests"
"""Of the transactions' numbers in the log."""


def append(spark: SparkSession, path: str, rows: pa.Table) -> int:
    """Adds the rows, in one file, and returns the new version; columns that `rows` has not are NULL. To a table of
    another form Spark adds them."""

    def attempt() -> int:
        table = table_here(spark, path)
        file = _added(table, local_commit.shaped(rows, table.none().schema))
        return _commit(spark, path, table, "Write", [file], {"numFiles": 1, "numOutputRows": rows.num_rows})

    try:
        return with_retries(attempt, "adding rows of a test")
    except LocalUnsupportedError:
        spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append").save(path)
        return latest_version(spark, path)


def change(spark: SparkSession, path: str, new: Callable[[Row], Row | None], more: Sequence[Row] = ()) -> int:
    """Replaces each row by what `new` makes of it: None removes it, and what is not the row itself is a change, though
    the values be equal. `more`: rows to add in the same commit. The new version; the old one where there is nothing to
    write."""
    return with_retries(lambda: _changed(spark, path, new, more), "changing rows of a test")


def _changed(spark: SparkSession, path: str, new: Callable[[Row], Row | None], more: Sequence[Row]) -> int:
    table = table_here(spark, path)
    schema = table.none().schema
    changes = [{**row, CHANGE: "insert"} for row in more]
    added, actions = list(more), list[Action]()
    for name in table.files:
        before = _read(table, name, schema).to_pylist()
        after = [new(row) for row in before]
        pairs = list(zip(before, after, strict=True))
        if all(left is right for left, right in pairs):
            continue
        for left, right in pairs:
            if right is None:
                changes.append({**left, CHANGE: "delete"})
            elif right is not left:
                changes += [{**left, CHANGE: "update_preimage"}, {**right, CHANGE: "update_postimage"}]
        actions.append(local_commit.remove_file(table.folder, name))
        added += [row for row in after if row is not None]
    if not changes:
        return table.version
    if added:
        actions.append(_added(table, pa.Table.from_pylist(added, schema)))
    if table.writable:
        feed = pa.Table.from_pylist(changes, schema.append(pa.field(CHANGE, pa.string())))
        actions.append(local_commit.add_change_file(table.folder, feed))
    return _commit(spark, path, table, "Merge", actions, {"operationNumSourceRows": len(changes)})


def _read(table: TableHere, name: str, schema: pa.Schema) -> pa.Table:
    """The rows of a file; times of Spark's are INT96, which are UTC and do not say so."""
    return pq.read_table(table.folder / name, coerce_int96_timestamp_unit="us").select(schema.names).cast(schema)


def _added(table: TableHere, rows: pa.Table) -> Action:
    """The file, with how many values are NULL, which Spark notes of more columns than the pipeline."""
    action = local_commit.add_file(table.folder, rows)
    stats = json.loads(action["add"]["stats"])
    stats["nullCount"] = {
        item.name: rows[item.name].null_count for item in rows.schema if not pa.types.is_nested(item.type)
    }
    action["add"]["stats"] = json.dumps(stats)
    return action


def _commit(
    spark: SparkSession,
    path: str,
    table: TableHere,
    operation: Literal["Merge", "Write"],
    actions: Sequence[Action],
    metrics: Mapping[str, int],
) -> int:
    session, line = spark._jsparkSession, (APPLICATION, table.version + 1)
    version = local_commit.commit_files(spark, session, table, path, actions, operation, metrics, line)
    if version is None:
        raise OvertakenError
    return version
