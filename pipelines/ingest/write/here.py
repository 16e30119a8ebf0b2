"""Few changes to a source's table on this machine's disk: this process finds the rows, and delta-rs writes them.

For an append Spark plans, compiles and runs one job, for MERGE several: seconds for rows that are written in a few
milliseconds. Raises NotHereError, before there is a commit, where the rows are many, the table is not on
this machine's disk, or asks more of who writes it; then Spark does it (`pipelines.ingest.write.spark`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.ingest.commits import LINE
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here import row_groups
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.here.write import Changes, Line, append, change, shaped
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import refuse, refuse_more
from trendlake.pipelines.rules.keep import columns_of, keep
from trendlake.pipelines.rules.unique import exact_codes


@dataclass(frozen=True)
class Target:
    """The table at `path`, as it is in `version`; `token`: the commit's note."""

    lake: Lake
    token: str
    path: str
    version: int
    contract: Contract

    def table(self, *, anew: bool) -> TableHere:
        """Raises NotHereError where this process may not write it, or would rewrite (`anew`) files
        of documents: a revision reads them a tenth slower than those that Spark writes (ADR 37)."""
        refuse({"files of documents": anew and self.contract.documents is not None})
        return table_here(self.lake, self.path, self.version)

    @property
    def line(self) -> Line:
        return Line(LINE, self.version + 1)

    def change(self, table: TableHere, changes: Changes) -> None:
        """Raises NotHereError and CONFLICTS."""
        near = {}
        for name in table.schema.names:
            if same_name(name) == same_name(self.contract.event_time):
                times = changes.matched[name].cast(pa.int64())
                ends = pc.min_max(times).as_py()
                near = {name: (ends["min"], ends["max"])} if len(times) and not times.null_count else {}
        change(table, changes, self.token, self.line, near)


def append_here(target: Target, rows: pa.Table) -> None:
    """Raises NotHereError and CONFLICTS."""
    _refuse_many(rows)
    table = target.table(anew=False)
    append(table, shaped(rows, table.none().schema), target.token, target.line)


def replace_here(target: Target, rows: pa.Table) -> None:
    """`rows` in place of all of the table. Raises NotHereError and CONFLICTS."""
    _refuse_many(rows)
    table = target.table(anew=True)
    append(table, shaped(rows, table.none().schema), target.token, target.line, whole=True)


def merge_here(target: Target, keys: pa.Table, values: pa.Table, new: pa.Table) -> int:
    """Gives each row of the table whose key is one of `keys`, all different, the `values` in the same place, unless it
    has them already, and adds `new`. Columns that `values` lacks stay. Returns how many rows have changed. Raises
    NotHereError and CONFLICTS."""
    _refuse_many(values, new)
    table = target.table(anew=True)
    before, at = _rows_with(table, keys)
    after = _with_values(before, values.take(arrow(at)))
    codes = exact_codes(pa.concat_tables([before, after]), values.column_names)
    differ = arrow(codes[: before.num_rows] != codes[before.num_rows :])
    changes = Changes(table.none(), before.filter(differ), after.filter(differ), shaped(new, before.schema))
    target.change(table, changes)
    return int(changes.after.num_rows)


def delete_here(target: Target, keys: pa.Table) -> int:
    """Deletes the rows of the table whose key is one of `keys`, all different, and returns how many there were. Raises
    NotHereError and CONFLICTS."""
    _refuse_many(keys)
    table = target.table(anew=True)
    gone, none = _rows_with(table, keys)[0], table.none()
    target.change(table, Changes(gone, none, none, none))
    return int(gone.num_rows)


def delete_where_here(target: Target, rule: Rule) -> int:
    """Deletes the rows of the table that keep a rule of single rows, and returns how many there were. Raises
    NotHereError and CONFLICTS."""
    table = target.table(anew=True)
    none = table.none()
    parts = (rows for rows in _keeping(table, rule, table.schema.names) if rows.num_rows)
    gone = pa.Table.from_batches(row_groups.at_most(parts, limits.DELIVERED), none.schema)
    target.change(table, Changes(gone, none, none, none))
    return int(gone.num_rows)


def count_where_here(lake: Lake, path: str, version: int, rule: Rule, contract: Contract) -> int:
    """How many rows of a version of a source's table keep a rule of single rows. Raises NotHereError."""
    table = table_here(lake, path, version)
    if contract.documents is not None:
        table.refuse_large()
    names = [*columns_of([rule]), contract.event_time or contract.named_by]  # a condition may name no column
    return sum(rows.num_rows for rows in _keeping(table, rule, list(dict.fromkeys(names))))


def _keeping(table: TableHere, rule: Rule, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Columns `names` of the rows that keep `rule`. Raises NotHereError where the table has many rows."""
    refuse_more(table.counted, limits.JUDGED, "rows")
    return (rows.filter(arrow(keep(rule, rows))) for rows in table.batches(names))


def _refuse_many(*tables: pa.Table) -> None:
    refuse_more(sum(table.num_rows for table in tables), limits.DELIVERED, "rows of a delivery")


def _rows_with(table: TableHere, keys: pa.Table) -> tuple[pa.Table, Int64s]:
    """The rows that have one of `keys`, in all columns, and for each row the number of the key that it has. Raises
    NotHereError where they are many."""
    names = keys.column_names
    keys = keys.cast(table.none().select(names).schema)
    first = keys.column(0).combine_chunks()
    others = [name for name in table.schema.names if name != names[0]]
    rows = table.rows_with([names[0], *others], first, limits.DELIVERED).select(table.schema.names)
    codes = exact_codes(pa.concat_tables([rows.select(names), keys]), names)
    number_of = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    number_of[codes[rows.num_rows :]] = np.arange(keys.num_rows)
    at = number_of[codes[: rows.num_rows]]
    return rows.filter(arrow(at >= 0)), at[at >= 0]


def _with_values(rows: pa.Table, values: pa.Table) -> pa.Table:
    """`rows` with the columns of `values`, which has a row for each."""
    names = {same_name(name): name for name in values.column_names}
    columns = [
        values[names[same_name(kind.name)]].cast(kind.type) if same_name(kind.name) in names else rows[kind.name]
        for kind in rows.schema
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)
