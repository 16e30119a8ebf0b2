"""Commits of files that this process has written, to Delta tables on this machine's disk.

For a write of a few rows Spark plans, compiles and runs jobs, which takes ten times as long as the rows do. Delta's own
transaction still makes the commit safe: the check for those that came between, the log, its checkpoints and checksums.
Its input is a commit's actions in the terms of Delta's protocol ("Add File and Remove File", "Add CDC File",
"Transaction Identifiers").
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.delta.local_log import Action, local_errors
from trendlake.pipelines.delta.local_reader import TableHere
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class

TEXT = 32
"""Characters; statistics tell no longer ones, as Delta's."""
GROUP_BYTES, ROWS_A_GROUP = 8 << 20, 1 << 20
"""Bytes, not compressed, and rows of a row group of a file that may hold documents: who looks for those near a time
reads whole groups."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def add_file(folder: Path, rows: pa.Table, *, data_change: bool = True) -> Action:
    """The file that `rows` become, as an action; not a `data_change` where the table has these rows already."""
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    about = {"modificationTime": _now(), "dataChange": data_change, "stats": json.dumps(statistics(rows))}
    return {"add": write_file(folder, name, rows) | about}


def remove_file(folder: Path, name: str, *, data_change: bool = True) -> Action:
    """The file `name` that is no longer the table's, as an action; not a `data_change` where its rows stay."""
    size = (folder / name).stat().st_size
    about = {"path": name, "deletionTimestamp": _now(), "dataChange": data_change, "extendedFileMetadata": True}
    return {"remove": about | {"partitionValues": {}, "size": size}}


def add_change_file(folder: Path, changes: pa.Table) -> Action:
    """The file that tells the change feed `changes`, as an action."""
    (folder / "_change_data").mkdir(exist_ok=True)
    name = f"_change_data/cdc-00000-{uuid.uuid4()}-c000.snappy.parquet"
    return {"cdc": write_file(folder, name, changes) | {"dataChange": False}}


def write_file(folder: Path, name: str, rows: pa.Table) -> Action:
    """Writes a Parquet file below the table's `folder`; what the log says of any."""
    from pyarrow.parquet import write_table

    rows_a_group = max(GROUP_BYTES * rows.num_rows // max(rows.nbytes, 1), 1)
    try:
        write_table(rows, folder / name, row_group_size=min(rows_a_group, ROWS_A_GROUP), store_schema=False)
    except OSError:  # half a file would take the room that a full disk lacks
        (folder / name).unlink(missing_ok=True)
        raise
    return {"path": name, "partitionValues": {}, "size": (folder / name).stat().st_size}


def statistics(rows: pa.Table) -> dict[str, Any]:
    """Delta's "Per-file Statistics" of columns of times, whole numbers and short texts: others are looked for in the
    file, whatever is asked. Times are whole milliseconds, the last one rounded up."""
    stats: dict[str, Any] = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in rows.column_names:
        ends = _ends(rows[name])
        if ends is not None:
            stats["nullCount"][name] = rows[name].null_count
            stats["minValues"][name], stats["maxValues"][name] = ends
    return stats


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    kind = column.type
    if column.null_count == len(column) or not (
        pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_string(kind)
    ):
        return None
    bounds = pc.min_max(column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column).as_py()
    low, high = bounds["min"], bounds["max"]
    if pa.types.is_string(kind):
        return (low, high) if max(len(low), len(high)) <= TEXT else None
    if pa.types.is_timestamp(kind):
        try:
            return _moment(low // 1000), _moment(-(-high // 1000))
        except OverflowError:  # after the year 9999, or before the first
            return None
    return low, high


def _moment(milliseconds: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _now() -> int:
    return time.time_ns() // 1_000_000


def shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """`rows` with the columns of `schema`, in their types: NULL in those that `rows` has not."""
    names = {same_name(name): name for name in rows.column_names}
    columns = [
        rows[names[same_name(field.name)]].cast(field.type)
        if same_name(field.name) in names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def merge_metrics(
    actions: Sequence[Action], *, inserted: int = 0, updated: int = 0, deleted: int = 0
) -> dict[str, int]:
    """As Delta's of a MERGE."""
    return {
        "operationNumSourceRows": inserted + updated + deleted,
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": deleted,
        "numTargetFilesAdded": sum("add" in action for action in actions),
        "numTargetFilesRemoved": sum("remove" in action for action in actions),
        "numTargetChangeFilesAdded": sum("cdc" in action for action in actions),
    }


def commit_files(
    spark: SparkSession,
    session: Any,
    table: TableHere,
    path: str,
    actions: Sequence[Action],
    operation: Literal["Merge", "Optimize", "Write"],
    metrics: Mapping[str, int],
    line: tuple[str, int],
) -> int | None:
    """Commits `actions` to the table at `path`, as it is in `table`; the new version. None where another commit came
    first. `session`: Java's, with the commit's note; `line`: application and number of the transaction, which no commit
    has reached yet. Raises LocalUnsupportedError, before there is a commit, and CONFLICTS."""
    application, number = line
    with local_errors():
        java = partial(java_class, spark)
        to_scala = java("org.apache.spark.api.python.PythonUtils")
        sql_metrics = java("org.apache.spark.sql.execution.metric.SQLMetrics")
        action_of = java("org.apache.spark.sql.delta.actions.Action").fromJson
        array_list = java("java.util.ArrayList")
        java_metrics, java_actions, nothing = java("java.util.HashMap")(), array_list(), array_list()
        for key, value in metrics.items():
            java_metrics[key] = sql_metrics.createMetric(session.sparkContext(), key)
            java_metrics[key].set(value)
        set_transaction = {"txn": {"appId": application, "version": number, "lastUpdated": _now()}}
        for action in (*actions, set_transaction):
            java_actions.add(action_of(json.dumps(action)))
        none, no_rules = java("scala.Option").empty(), to_scala.toSeq(nothing)
        operation_class = java(f"org.apache.spark.sql.delta.DeltaOperations${operation}")
        if operation == "Merge":
            about = operation_class(none, none, none, none, no_rules, no_rules, no_rules)
        elif operation == "Optimize":
            by_itself, full = True, False
            about = operation_class(no_rules, no_rules, by_itself, none, full)
        else:
            mode = java("org.apache.spark.sql.SaveMode").Append
            about = operation_class(mode, none, none, none, none, none, none, none, none)
        transaction = java(DELTA_LOG).forTable(session, path).startTransaction()
    if transaction.readVersion() != table.version or table.last_transaction(application) >= number:
        return None
    # What `txnVersion` notes, without its answer, for which Delta replays the whole log in a job of its own.
    getattr(transaction.readTxn(), "$plus$eq")(application)
    transaction.readWholeTable()
    transaction.registerSQLMetrics(session, to_scala.toScalaMap(java_metrics))
    return int(transaction.commit(to_scala.toSeq(java_actions), about))


@contextmanager
def active(spark: SparkSession, session: SparkSession) -> Iterator[Any]:
    """`session`, Java's, as the one of this thread."""
    sessions = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield session._jsparkSession
    finally:
        sessions.setActiveSession(spark._jsparkSession)
