"""Few changes to a source's table on this machine's disk: this process writes the files, and Delta commits them.

For an append Spark plans, compiles and runs one job, for MERGE several: seconds for rows that are written in a few
milliseconds. A file with rows that are changed is written again, its other rows in their order. Raises
LocalUnsupportedError, before there is a commit, where the rows or the files are many, the table is not on this
machine's disk, or asks more of who writes it; then Spark does it (`pipelines.ingest.write_by_spark`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, repeated
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.delta import limits, local_commit, row_groups
from trendlake.pipelines.delta.local_log import Action, local_errors
from trendlake.pipelines.delta.local_reader import CHANGE, TableHere, table_here
from trendlake.pipelines.delta.tables import OvertakenError
from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.ingest.commits import LINE
from trendlake.pipelines.rules.unique import exact_codes


@dataclass(frozen=True)
class Target:
    """The table at `path`, as it is in `version`; `session` carries the commit's note (`commits.writing_session`)."""

    spark: SparkSession
    session: SparkSession
    path: str
    version: int
    contract: Contract

    def table(self, *, anew: bool) -> TableHere:
        """Raises LocalUnsupportedError where this process may not write it, or would rewrite (`anew`) files
        of documents: a revision reads them a tenth slower than those that Spark writes (ADR 37)."""
        if anew and self.contract.documents is not None:
            raise LocalUnsupportedError("files of documents")
        table = table_here(self.spark, self.path, self.version)
        if not table.writable:
            raise LocalUnsupportedError("a table that asks more of who writes it")
        return table

    def commit(
        self,
        table: TableHere,
        actions: Sequence[Action],
        operation: Literal["Merge", "Write"],
        metrics: Mapping[str, int],
    ) -> None:
        """Raises CONFLICTS."""
        line = (LINE, self.version + 1)
        with local_commit.active(self.spark, self.session) as java:
            committed = local_commit.commit_files(self.spark, java, table, self.path, actions, operation, metrics, line)
        if committed is None:
            raise OvertakenError


def append_here(target: Target, rows: pa.Table) -> None:
    """Raises LocalUnsupportedError and CONFLICTS."""
    _refuse_many(rows)
    table = target.table(anew=False)
    with local_errors():
        actions = _added(table, local_commit.shaped(rows, table.none().schema))
    target.commit(table, actions, "Write", {"numFiles": len(actions), "numOutputRows": rows.num_rows})


def merge_here(target: Target, keys: pa.Table, values: pa.Table, new: pa.Table) -> int:
    """Gives each row of the table whose key is one of `keys`, all different, the `values` in the same place, unless it
    has them already, and adds `new`. Columns that `values` lacks stay. Returns how many rows have changed. Raises
    LocalUnsupportedError and CONFLICTS."""
    _refuse_many(values, new)
    table = target.table(anew=True)
    with local_errors():
        changes = _Changes(table)
        for file, whole, at in _files_with(table, keys):
            changes.replace(file, whole, _with_values(whole, values, at), at >= 0, values.column_names)
        changes.add(new)
        actions = changes.actions()
    metrics = local_commit.merge_metrics(actions, inserted=new.num_rows, updated=changes.updated)
    target.commit(table, actions, "Merge", metrics)
    return changes.updated


def delete_here(target: Target, keys: pa.Table) -> int:
    """Deletes the rows of the table whose key is one of `keys`, all different, and returns how many there were. Raises
    LocalUnsupportedError and CONFLICTS."""
    _refuse_many(keys)
    table = target.table(anew=True)
    with local_errors():
        changes = _Changes(table)
        for file, whole, at in _files_with(table, keys):
            changes.delete(file, whole, at >= 0)
        actions = changes.actions()
    target.commit(table, actions, "Merge", local_commit.merge_metrics(actions, deleted=changes.deleted))
    return changes.deleted


def _refuse_many(*tables: pa.Table) -> None:
    if sum(table.num_rows for table in tables) > limits.DELIVERED:
        raise LocalUnsupportedError(f"a delivery of more than {limits.DELIVERED:,} rows")


@dataclass
class _Changes:
    """The changes of the files of `table`, each written as soon as it is known, and those of the change feed."""

    table: TableHere
    files: list[Action] = field(default_factory=list)
    feed: list[pa.Table] = field(default_factory=list)
    updated: int = 0
    deleted: int = 0

    def replace(self, file: str, whole: pa.Table, then: pa.Table, mine: Bools, names: Sequence[str]) -> None:
        """`whole`: the file's rows, `then`: as they are to be; `mine`: which may differ, in the columns `names`."""
        before, after = whole.filter(arrow(mine)), then.filter(arrow(mine))
        codes = exact_codes(pa.concat_tables([before, after]), names)
        differ = arrow(codes[: before.num_rows] != codes[before.num_rows :])
        before, after = before.filter(differ), after.filter(differ)
        if before.num_rows:
            self._anew(file, then)
            self.feed += [_worded(before, "update_preimage"), _worded(after, "update_postimage")]
            self.updated += before.num_rows

    def delete(self, file: str, whole: pa.Table, gone: Bools) -> None:
        """`gone`: of each row of `whole`, those of the file, whether it is deleted; one at least."""
        self._anew(file, whole.filter(arrow(~gone)))
        self.feed.append(_worded(whole.filter(arrow(gone)), "delete"))
        self.deleted += int(gone.sum())

    def add(self, rows: pa.Table) -> None:
        mine = local_commit.shaped(rows, self.table.none().schema)
        self.files += _added(self.table, mine)
        self.feed.append(_worded(mine, "insert"))

    def actions(self) -> list[Action]:
        """Where a commit has change files, its changes are in them all (Delta's protocol, "Add CDC File")."""
        feed = pa.concat_tables([_worded(self.table.none(), ""), *self.feed])
        removed = any("remove" in action for action in self.files)
        changes = [local_commit.add_change_file(self.table.folder, feed)] if removed else []
        return [*self.files, *changes]

    def _anew(self, file: str, rows: pa.Table) -> None:
        self.files += [local_commit.remove_file(self.table.folder, file), *_added(self.table, rows)]


def _added(table: TableHere, rows: pa.Table) -> list[Action]:
    return [local_commit.add_file(table.folder, rows)] if rows.num_rows else []


def _worded(rows: pa.Table, word: str) -> pa.Table:
    return rows.append_column(CHANGE, repeated(word, rows.num_rows))


def _files_with(table: TableHere, keys: pa.Table) -> Iterator[tuple[str, pa.Table, Int64s]]:
    """The files that have rows with one of `keys`: of each its name, all its rows, and for each row the number of the
    key that it has, -1 where it has none. Raises LocalUnsupportedError where they are many."""
    names = keys.column_names
    keys = keys.cast(table.none().select(names).schema)
    first = keys.column(0).combine_chunks()
    if pa.types.is_floating(first.type):
        raise LocalUnsupportedError("0.0 is -0.0 too, and lies elsewhere")
    choose, rows_left, bytes_left = row_groups.within(names[0], first), limits.DELIVERED, limits.REWRITTEN_BYTES
    for file in table.files:
        path = table.folder / file
        if not choose(path) or not table.part([file]).rows_with(names[:1], first, limits.DELIVERED).num_rows:
            continue
        bytes_left -= sum(group.size for group in row_groups.values(path, names[0]))
        if bytes_left < 0:
            raise LocalUnsupportedError(f"files of more than {limits.REWRITTEN_BYTES >> 20} MB to be written anew")
        whole = table.whole(file, rows_left)
        rows_left -= whole.num_rows
        both = pa.concat_tables([whole.select(names), keys])
        codes = exact_codes(both, names)
        number_of = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
        number_of[codes[whole.num_rows :]] = np.arange(keys.num_rows)
        at = number_of[codes[: whole.num_rows]]
        if (at >= 0).any():
            yield file, whole, at


def _with_values(whole: pa.Table, values: pa.Table, at: Int64s) -> pa.Table:
    """`whole`, where row i has the values in row `at[i]` of `values` unless that is -1."""
    place = arrow(np.where(at >= 0, whole.num_rows + at, np.arange(whole.num_rows)))
    names = {same_name(name): name for name in values.column_names}
    columns = []
    for kind in whole.schema:
        column = whole[kind.name]
        if same_name(kind.name) in names:
            other = values[names[same_name(kind.name)]].cast(kind.type)
            column = pa.chunked_array([*column.chunks, *other.chunks], kind.type).take(place)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=whole.schema)
