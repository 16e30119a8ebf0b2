"""Some rows of a results table on this machine's disk go, others come: the files are written in this process, and Delta
commits them.

For MERGE Spark plans, compiles and runs two jobs, which takes ten times as long as a few rows do. What makes a commit
safe stays Delta's own transaction: the check for those that came between, the log, its checkpoints and checksums. What
is handed to it are a commit's actions in the words of Delta's protocol ("Add File and Remove File", "Add CDC File",
"Transaction Identifiers").
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cep_core import AnyPlan
from cep_core.buffers import arrow
from pipelines.commits import Commit, commit_token, find_commit, in_line, publication
from pipelines.delta_here import Action, NotHereError, Slices, TableHere, here, inside
from pipelines.frames import frame_of
from pipelines.jvm import DELTA_LOG, java_class
from pipelines.revision.difference import DELETE, INSERT, UPDATE, WAS, Difference
from pipelines.revision.differing import Differing
from pipelines.steps.run import Run

Array = Any
ROWS = 2_000_000
"""Rows of the files that are written anew: what a worker may hold."""
TEXT = 32
"""Characters; statistics tell no longer ones, as Delta's."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Published:
    """The rows of `table` whose `time` lies in `slices`: those in each of its files."""

    table: TableHere
    time: str
    slices: Slices
    parts: tuple[pa.Table, ...]

    @classmethod
    def of(cls, table: TableHere, time: str, slices: Slices, most: int) -> Published:
        """Raises NotHereError where the rows are more than `most`."""
        parts: list[pa.Table] = []
        for file in table.files:
            left = most - sum(part.num_rows for part in parts)
            parts.append(replace(table, files=(file,)).rows(table.schema.names, time, slices, left))
        return cls(table, time, slices, tuple(parts))

    @property
    def rows(self) -> pa.Table:
        return pa.concat_tables([self.table.none(), *self.parts])


@dataclass(frozen=True)
class Rewrite:
    """As `revision.difference.Difference`, of rows that are here."""

    run: Run
    plan: AnyPlan
    there: Published
    told: Differing

    @property
    def empty(self) -> bool:
        return not any(self.told.counts.values())

    @property
    def counts(self) -> Mapping[str, int]:
        return self.told.counts

    def commit(self, note: Mapping[str, Any]) -> Commit | None:
        """As a Difference's, which it leaves it to where more is to be known or held than is here."""
        with suppress(NotHereError):
            with here():
                actions = self._written()
            return committed(self, actions, commit_token(**note))
        rows = self.told.operations(self.there.time)
        times = [*rows[self.there.time].chunks, *rows[WAS].chunks]
        ends = pc.min_max(pa.chunked_array(times, rows[WAS].type).cast(pa.int64())).as_py()
        frame = frame_of(self.run.spark, rows)
        return Difference(self.run, self.plan, frame, self.counts, ends["min"] or 0, ends["max"] or 0).commit(note)

    def close(self) -> None:
        """Nothing is held but here."""

    def _written(self) -> list[Action]:
        """The files that tell the rows and the changes, as actions."""
        there, table, parts, removed = self.there, self.there.table, [self.told.come], []
        if not table.writable:
            raise NotHereError("a table that asks more of who writes it")
        ends = np.cumsum([part.num_rows for part in there.parts], dtype=np.int64)
        for file, gone in zip(table.files, np.split(self.told.gone, ends)[:-1], strict=True):
            if gone.any():
                whole = table.whole(file, ROWS - sum(part.num_rows for part in parts))
                mine = inside(whole, there.time, there.slices).to_numpy()
                kept = ~mine
                kept[mine] = ~gone
                parts.append(whole.filter(arrow(kept)))
                removed.append(_removed(table.folder, file))
        rows = pa.concat_tables(parts)
        added = [_added(table.folder, rows)] if rows.num_rows else []
        return [*removed, *added, *([_told(table.folder, self.told.feed())] if removed else [])]


def _transaction(name: str, number: int) -> Action:
    return {"txn": {"appId": publication(name), "version": number, "lastUpdated": _now()}}


def _removed(folder: Path, name: str) -> Action:
    size = (folder / name).stat().st_size
    about = {"path": name, "deletionTimestamp": _now(), "dataChange": True, "extendedFileMetadata": True}
    return {"remove": about | {"partitionValues": {}, "size": size}}


def _added(folder: Path, rows: pa.Table) -> Action:
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    about = {"modificationTime": _now(), "dataChange": True, "stats": json.dumps(statistics(rows))}
    return {"add": write_file(folder, name, rows) | about}


def _told(folder: Path, changes: pa.Table) -> Action:
    (folder / "_change_data").mkdir(exist_ok=True)
    name = f"_change_data/cdc-00000-{uuid.uuid4()}-c000.snappy.parquet"
    return {"cdc": write_file(folder, name, changes) | {"dataChange": False}}


def write_file(folder: Path, name: str, rows: pa.Table) -> Action:
    from pyarrow.parquet import write_table

    write_table(rows, folder / name, store_schema=False)
    return {"path": name, "partitionValues": {}, "size": (folder / name).stat().st_size}


def statistics(rows: pa.Table) -> dict[str, Any]:
    """Delta's "Per-file Statistics" of columns of times, whole numbers and short texts: others are looked for in the
    file, whatever is asked. Times are whole milliseconds, the last one rounded up."""
    told: dict[str, Any] = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in rows.column_names:
        ends = _ends(rows[name])
        if ends is not None:
            told["nullCount"][name] = rows[name].null_count
            told["minValues"][name], told["maxValues"][name] = ends
    return told


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    kind = column.type
    if column.null_count == len(column) or not (
        pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_string(kind)
    ):
        return None
    found = pc.min_max(column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column).as_py()
    low, high = found["min"], found["max"]
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


def committed(rewrite: Rewrite, actions: Sequence[Action], token: str) -> Commit | None:
    """None where another commit came first, or has taken this one's place in the log. Raises NotHereError, before there
    is a commit, and CONFLICTS."""
    spark, name, table = rewrite.run.spark, rewrite.run.name, rewrite.there.table
    metrics, note = _metrics(rewrite.counts, actions), json.loads(token)
    with _session(spark, name, token) as session:
        with here():
            java = partial(java_class, spark)
            to_scala = java("org.apache.spark.api.python.PythonUtils")
            sql_metrics = java("org.apache.spark.sql.execution.metric.SQLMetrics")
            action_of = java("org.apache.spark.sql.delta.actions.Action").fromJson
            array_list = java("java.util.ArrayList")
            counted, told, nothing = java("java.util.HashMap")(), array_list(), array_list()
            for key, value in metrics.items():
                counted[key] = sql_metrics.createMetric(session.sparkContext(), key)
                counted[key].set(value)
            for action in (*actions, _transaction(name, note["number"])):
                told.add(action_of(json.dumps(action)))
            none, no_rules = java("scala.Option").empty(), to_scala.toSeq(nothing)
            operation = java("org.apache.spark.sql.delta.DeltaOperations$Merge")
            merge = operation(none, none, none, none, no_rules, no_rules, no_rules)
            transaction = java(DELTA_LOG).forTable(session, rewrite.run.warehouse.results(name)).startTransaction()
        if transaction.readVersion() != table.version:
            return None
        if table.last_transaction(publication(name)) >= note["number"]:
            return None
        # What `txnVersion` notes, without its answer, for which Delta replays the whole log in a job of its own.
        getattr(transaction.readTxn(), "$plus$eq")(publication(name))
        transaction.readWholeTable()
        transaction.registerSQLMetrics(session, to_scala.toScalaMap(counted))
        version = transaction.commit(to_scala.toSeq(told), merge)
    if not find_commit(spark, rewrite.run.warehouse.results(name), token).found:
        return None
    return Commit(int(version), "MERGE", {key: str(value) for key, value in metrics.items()}, note)


def _metrics(counts: Mapping[str, int], actions: Sequence[Action]) -> dict[str, int]:
    """As Delta's of a MERGE."""
    return {
        "operationNumSourceRows": sum(counts.values()),
        "numTargetRowsInserted": counts[INSERT], "numTargetRowsUpdated": counts[UPDATE],
        "numTargetRowsDeleted": counts[DELETE],
        "numTargetFilesAdded": sum("add" in action for action in actions),
        "numTargetFilesRemoved": sum("remove" in action for action in actions),
        "numTargetChangeFilesAdded": sum("cdc" in action for action in actions),
    }  # fmt: skip


@contextmanager
def _session(spark: SparkSession, name: str, token: str) -> Iterator[Any]:
    """A session of its own, Java's, as the one of this thread: Delta takes the commit's note from there."""
    session = spark.newSession()
    in_line(session, name, token)
    sessions = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield session._jsparkSession
    finally:
        sessions.setActiveSession(spark._jsparkSession)
