"""The one place that brings rows into a results table.

A publication is one Delta commit. It carries a note (`userMetadata`) and a number in line, that of a transaction of
Delta's (`pipelines.lake.commits.in_line`): of two publications with the same number only one is committed, and the
other sees that its commit is missing. Its rows come in one of five ways: the files that hold them become files of the
table, Spark appends them, Spark replaces those of some windows by MERGE, Spark applies a difference by MERGE, or
delta-rs applies one of few rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.lake.commit import ROWS_ADDED, Commit
from trendlake.pipelines.lake.commits import commit_token, find_commit, in_line, publication
from trendlake.pipelines.lake.create import FED, create_table
from trendlake.pipelines.lake.here.read import TableHere
from trendlake.pipelines.lake.here.write import Changes, Line, add_files, change
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.warehouse import OvertakenError, with_retries
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.owned_rows import OwnedRows
from trendlake.pipelines.results.provenance import PLAN_HASH, PROVENANCE
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.identifiers import quoted

OPERATION = "__trendlake_operation"
"""The column of a difference that says what becomes of a row."""
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True)
class Publication:
    """One commit to the results of `run`'s pattern. `note`: with the publication's `number` in line.

    Each method makes the commit, and returns None where another publication came first. They raise CONFLICTS."""

    run: Run
    note: Note

    @cached_property
    def lake(self) -> Lake:
        """With a session of its own, because Delta takes the note and the number from there."""
        return self.run.lake.with_new_session()

    @property
    def path(self) -> str:
        return self.run.warehouse.results(self.run.name)

    def append(self, rows: DataFrame) -> Commit | None:
        """Does the same as `replace` where the windows have no rows yet, in a third of the time. The number in line
        shows whether some have come since."""
        have = {same_name(name) for name in rows.columns}
        values = [
            (sf.col(quoted(field.name)) if same_name(field.name) in have else sf.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in self._results().schema.fields
        ]
        token = self._begin()
        rows.select(*values).write.format("delta").mode("append").save(self.path)
        return self._commit(token)

    def replace(self, rows: DataFrame, by: Sequence[str], owned: OwnedRows, *, repeats: bool = False) -> Commit | None:
        """Makes `rows` the rows of the windows that `owned` names. Leaves equal rows alone, so that the change feed
        holds changes only; deletes rows that are no longer results. `by`: the columns of `identity`. `repeats`: several
        published rows agree on them, so that no row is matched: all go, and all of `rows` come."""
        columns = self._results().columns
        values = in_columns(columns, rows.columns, "s")
        in_windows = owned.spark("t")
        nothing = side("t", PLAN_HASH) != side("s", PLAN_HASH)  # on which all that are matched agree
        merge = self._merge(rows, by, nothing if repeats else in_windows)
        merge = merge.whenMatchedUpdate(condition=~equal("t", values), set=quoted_values(values))
        merge = merge.whenNotMatchedInsert(values=quoted_values(values))
        token = self._begin()
        merge.whenNotMatchedBySourceDelete(condition=in_windows).execute()
        return self._commit(token)

    def apply(
        self, difference: DataFrame, counts: Mapping[str, int], by: Sequence[str], near: tuple[str, int, int]
    ) -> Commit | None:
        """Does with each row of `difference` what its `OPERATION` says. `counts`: rows by operation; `by`: the columns
        of `identity`; `near`: (column, first, last) where the rows are and were, microseconds, both ends included."""
        column, first, last = near
        bounds = [sf.timestamp_micros(sf.lit(moment)) for moment in (first, last)]
        values = quoted_values({name: side("s", name) for name in self._results().columns})
        operation = side("s", OPERATION)
        # What is inserted is no row that exists, even where one with the same identity is deleted.
        merge = self._merge(difference, by, side("t", column).between(*bounds) & (operation != INSERT))
        if counts[DELETE]:
            merge = merge.whenMatchedDelete(condition=operation == DELETE)
        if counts[UPDATE]:
            merge = merge.whenMatchedUpdate(condition=operation == UPDATE, set=values)
        if counts[INSERT]:
            merge = merge.whenNotMatchedInsert(condition=operation == INSERT, values=values)
        token = self._begin()
        merge.execute()
        return self._commit(token)

    def change(self, table: TableHere, changes: Changes, time: str) -> Commit | None:
        """Makes `changes` on `table`, as it is; `time`: the results' time column. Raises NotHereError, before
        there is a commit, and as `refuse_full_disk`."""
        times = changes.matched[time].cast(pa.int64())
        ends = pc.min_max(times).as_py()
        near = {time: (ends["min"], ends["max"])} if len(times) and not times.null_count else {}
        try:
            return change(table, changes, self._token(), self._line, near)
        except OvertakenError:
            return None

    def add(self, table: TableHere, files: Sequence[Path], rows: int) -> Commit | None:
        """As `append` of the `rows` that are in `files`, which become files of the `table`. Raises as `change`."""
        facts = {**self.note.as_json(), ROWS_ADDED: rows}
        token = commit_token(self.run.lake, self.path, **facts)
        try:
            return add_files(table, files, token, self._line)
        except OvertakenError:
            return None

    @property
    def _line(self) -> Line:
        return Line(publication(self.run.warehouse.table_of(self.run.name)), self.note.number)

    def _token(self) -> str:
        return commit_token(self.run.lake, self.path, **self.note.as_json())

    def _begin(self) -> str:
        token = self._token()
        in_line(self.lake, self.run.warehouse.table_of(self.run.name), token)
        return token

    def _commit(self, token: str) -> Commit | None:
        commit = find_commit(self.lake, self.path, token)
        return commit if commit.in_history else None

    def _results(self) -> DataFrame:
        return self.lake.spark.read.format("delta").load(self.path)

    def _merge(self, rows: DataFrame, by: Sequence[str], near: Column) -> Any:
        """MERGE matched on identity, null-safe: a group may be NULL, a register NaN."""
        same = [side("t", name).eqNullSafe(side("s", name)) for name in by]
        return (
            DeltaTable.forPath(self.lake.spark, self.path).alias("t").merge(rows.alias("s"), conjunction(same) & near)
        )


def create_results(lake: Lake, path: str, schema: StructType) -> None:
    """The results table, where it is not there: change feed on. Columns that a changed pattern brings are added; those
    it no longer has stay, NULL in new rows."""
    create_table(lake, path, schema, FED, "creating the results table")
    have = {same_name(name) for name in columns_of(lake, path)}
    if any(same_name(name) not in have for name in schema.fieldNames()):
        none = lake.spark.createDataFrame([], schema)
        writer = none.write.format("delta").mode("append").option("mergeSchema", "true")
        with_retries(lambda: writer.save(path), "adding columns to the results table")


def columns_of(lake: Lake, path: str) -> list[str]:
    """The columns of the table at `path`."""
    return Table.at(lake, path).names


def in_columns(columns: Sequence[str], have: Sequence[str], alias: str) -> dict[str, Column]:
    """The values of a results table's `columns` from the rows called `alias`: NULL in those that they do not `have`."""
    names = {same_name(name) for name in have}
    return {name: side(alias, name) if same_name(name) in names else sf.lit(None) for name in columns}


def equal(alias: str, values: Mapping[str, Column]) -> Column:
    """Whether the row called `alias` is the same result as `values`, wherever the two come from."""
    return conjunction(
        [side(alias, name).eqNullSafe(value) for name, value in values.items() if name not in PROVENANCE]
    )


def side(alias: str, name: str) -> Column:
    """The column `name` of the rows called `alias`."""
    return sf.col(f"{alias}.{quoted(name)}")


def conjunction(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)


def quoted_values(values: Mapping[str, Column]) -> dict[str, str | Column]:
    """As MERGE is given values, by the name of their column."""
    return {quoted(name): value for name, value in values.items()}
