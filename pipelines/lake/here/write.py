"""Commits to Delta tables on this machine's disk by delta-rs: for a write of a few rows Spark plans, compiles and runs
jobs, which takes ten times as long as the rows do.

Each commit is made on one version of the table or not at all (`max_commit_retries=0`), carries a note, and may raise
the number of a transaction (Delta's protocol, "Transaction Identifiers").
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.parquet import ParquetWriter, RowGroupMetaData, read_metadata, read_schema

from trendlake.cep_core.events.arrays import repeated
from trendlake.cep_core.events.codes import group_codes
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.normalise import canonical
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commit import EPOCH, Commit
from trendlake.pipelines.lake.here.log import commit_actions, commit_in_log, commit_info, folder_on_disk, newest_view
from trendlake.pipelines.lake.here.read import TableHere
from trendlake.pipelines.lake.here.row_groups import bounded_columns
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import refuse, refuse_more
from trendlake.pipelines.lake.warehouse import OvertakenError
from trendlake.pipelines.storage_errors import storage_error

ROOM = 1 << 16
"""Bytes that a disk must have left: a file of a few rows takes some 10,000, its commit 1,000."""
GROUP_BYTES, ROWS_A_GROUP = 8 << 20, 1 << 20
"""Bytes, not compressed, and rows of a row group of a file that may hold documents: who looks for those near a time
reads whole groups."""
HOOKS = PostCommitHookProperties(cleanup_expired_logs=False)
"""Old entries of the log are left to `maintain`, and to Delta's own commits."""
TEXT_BOUND = 32
"""Characters of a text that the log has as a bound: Delta's own writers cut off longer ones."""
DOING = "doing"
"""The column of a MERGE's source whose letter says what becomes of a row."""
GONE, CHANGED, NEW = "g", "c", "n"


@dataclass(frozen=True)
class Line:
    """The transaction of `application` with this number; of two commits with one number only one is made."""

    application: str
    number: int


@dataclass(frozen=True)
class Changes:
    """Rows of a table that go, those that are `before` and become the ones in the same place of `after`, and new ones.
    All have all columns of the table, in its types."""

    gone: pa.Table
    before: pa.Table
    after: pa.Table
    new: pa.Table

    @property
    def counts(self) -> tuple[int, int, int]:
        """Rows inserted, updated, deleted."""
        return self.new.num_rows, self.after.num_rows, self.gone.num_rows

    @property
    def matched(self) -> pa.Table:
        """The rows that are looked for in the table."""
        return pa.concat_tables([self.gone, self.before])


def append(
    table: TableHere, rows: pa.Table, note: str | None, line: Line | None = None, *, whole: bool = False
) -> Commit:
    """Adds `rows`, in the columns of `table`, in one commit, also where there are none; `whole`: in place of all that
    it has. Raises as `change`."""
    refuse({"a table that asks more of who writes it": not table.writable})
    refuse_full_disk(table.folder, rows.nbytes)
    how = writer(rows.schema, _rows_a_group(rows))
    mode: Literal["append", "overwrite"] = "overwrite" if whole else "append"

    def write(view: DeltaTable, about: CommitProperties) -> None:
        write_deltalake(
            view, rows, mode=mode, commit_properties=about, post_commithook_properties=HOOKS, writer_properties=how
        )

    return _commit(table, note, line, write)


def change(table: TableHere, changes: Changes, note: str, line: Line, near: Mapping[str, tuple[int, int]]) -> Commit:
    """Makes `changes` in one commit, which the change feed reports. `near`: of columns of times the first and the last
    (microseconds) that rows which are looked for have; other files are not read.

    Raises OvertakenError where `table` is not the newest version, or the line's number is reached; as
    `refuse_full_disk`; NotHereError, before there is a commit, for all else that delta-rs does not do."""
    if not changes.matched.num_rows:
        return append(table, changes.new, note, line)
    refuse({"a table that asks more of who writes it": not table.writable})
    looked_for = changes.matched
    plain = [canonical(column) for column in looked_for.columns if not pa.types.is_nested(column.type)]
    codes = group_codes(plain, looked_for.num_rows)
    # which of them would be of no account
    refuse({"equal rows among those that change": len(np.unique(codes)) < looked_for.num_rows})
    looked_in = table
    for name, (first, last) in near.items():
        looked_in = looked_in.near_time(name, [(first, min(last, 2**63 - 2) + 1)])
    size = sum(looked_in.sizes.values())
    refuse_more(size, limits.REWRITTEN_BYTES, "bytes of files to be written again")
    refuse_full_disk(table.folder, changes.after.nbytes + size)
    names = {name: f"c{at}" for at, name in enumerate(table.schema.names)}
    source = _merge_source(changes, names)
    on = [f"s.{DOING} <> '{NEW}'"]
    on += [_between(name, *ends) for name, ends in near.items()]
    on += [f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.was_{alias})" for name, alias in names.items()]
    values = {_quoted(name): f"s.is_{alias}" for name, alias in names.items()}
    like = changes.after if changes.after.num_rows else changes.matched  # all that are written again are such rows
    how = writer(changes.after.schema, _rows_a_group(like))

    def write(view: DeltaTable, about: CommitProperties) -> None:
        merge = view.merge(
            source,
            " AND ".join(on),
            source_alias="s",
            target_alias="t",
            writer_properties=how,
            commit_properties=about,
            post_commithook_properties=HOOKS,
        )
        merge = merge.when_matched_delete(f"s.{DOING} = '{GONE}'")
        merge = merge.when_matched_update(values, f"s.{DOING} = '{CHANGED}'")
        merge.when_not_matched_insert(values, f"s.{DOING} = '{NEW}'").execute()

    commit = _commit(table, note, line, write)
    if commit.changed != changes.counts:
        raise RuntimeError(f"version {commit.version} of {table.folder} changes {commit.changed}, not {changes.counts}")
    return commit


def put_together(
    table: TableHere, files: Sequence[str], rows: Iterable[pa.RecordBatch], note: str, line: Line | None = None
) -> Commit:
    """One file with `rows`, of all columns, in place of the `files` that hold them: no row changes. The rows are not
    held in memory together. Raises as `change`.

    delta-rs's own compaction commits although another one has replaced the same files meanwhile, and then the table has
    each of their rows twice: its check for conflicts skips files that were removed without a change of data, and
    it tries again whatever `max_commit_retries` says."""
    refuse({"a table that asks more of who writes it": not table.writable})
    refuse_full_disk(table.folder, sum(table.sizes[name] for name in files))
    now = _milliseconds()
    gone = [RemoveAction(name, False, now, table.sizes[name], {}) for name in files]
    added = _file_of(table, rows, _rows_a_group_of([table.folder / name for name in files]), now)

    def write(view: DeltaTable, about: CommitProperties) -> None:
        view.create_write_transaction(
            [*gone, added],
            mode="append",
            schema=view.schema(),
            commit_properties=about,
            post_commithook_properties=HOOKS,
        )

    return _commit(table, note, line, write)


def add_files(table: TableHere, files: Sequence[Path], note: str, line: Line) -> Commit:
    """Makes files with rows, which have all columns of `table`, files of the table, in one commit: their rows are not
    written again. The files themselves stay where they are, and may not change. The commit has none of Delta's metrics.
    Raises as `change`."""
    refuse({"a table that asks more of who writes it": not table.writable})
    schema = table.none().schema
    facts = [_facts(file, schema) for file in files]
    now, added = _milliseconds(), list[AddAction | RemoveAction]()
    for file, seen in zip(files, facts, strict=True):
        name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        _link(file, table.folder / name)
        added.append(AddAction(name, file.stat().st_size, {}, now, True, seen.as_json()))

    def write(view: DeltaTable, about: CommitProperties) -> None:
        view.create_write_transaction(
            added, mode="append", schema=view.schema(), commit_properties=about, post_commithook_properties=HOOKS
        )

    return _commit(table, note, line, write)


def _facts(file: Path, schema: pa.Schema) -> _Statistics:
    """The facts that a file's footer has of its columns. Raises NotHereError where these are not those of `schema`."""
    stored = read_schema(file)
    types = {field.name: field.type for field in stored}
    refuse({f"columns that {file.name} has otherwise": types != {field.name: field.type for field in schema}})
    seen, metadata = _Statistics(schema), read_metadata(file)
    for at in range(metadata.num_row_groups):
        seen.add_group(metadata.row_group(at))
    return seen


def _link(file: Path, place: Path) -> None:
    """The same file at another place too: a copy, where the file system has no links or it is another one."""
    try:
        os.link(file, place)
    except OSError:
        refuse_full_disk(place.parent, file.stat().st_size)
        shutil.copyfile(file, place)


def append_any(lake: Lake, path: str, rows: pa.Table) -> int:
    """Appends `rows` to the table at `path`, whoever else does so too, in a commit of their own, columns that it lacks
    as well; its version. Raises as `refuse_full_disk`. Unless the error is that there is no such table, the commit may
    have been made."""
    folder = folder_on_disk(lake, path)
    refuse_full_disk(folder)
    with newest_view(folder) as table:
        write_deltalake(table, rows, mode="append", schema_mode="merge", post_commithook_properties=HOOKS)
        return int(table.version())


def _commit(
    table: TableHere, note: str | None, line: Line | None, write: Callable[[DeltaTable, CommitProperties], None]
) -> Commit:
    """The commit that `write` has made on the version of `table`."""
    transactions = None if line is None else [Transaction(line.application, line.number, _milliseconds())]
    metadata = None if note is None else {"userMetadata": note}
    about = CommitProperties(metadata, max_commit_retries=0, app_transactions=transactions)
    with newest_view(table.folder) as view:
        reached = None if line is None else view.transaction_version(line.application)
        if view.version() != table.version or (line is not None and reached is not None and reached >= line.number):
            raise OvertakenError
        try:
            write(view, about)
        except CommitFailedError as error:
            raise OvertakenError from error
        except DeltaError:  # of a checkpoint, perhaps, after the commit
            if not _is_in_log(table, note, line):
                raise
        if not _is_in_log(table, note, line):  # and what delta-rs holds of the log is not what the log says
            raise OvertakenError
    return commit_in_log(table.folder, table.version + 1)


def _is_in_log(table: TableHere, note: str | None, line: Line | None) -> bool:
    """Whether the version after that of `table` carries this `note` and is of this `line`."""
    version = table.version + 1
    if not (table.folder / "_delta_log" / f"{version:020d}.json").exists():
        return False
    transactions = (action["txn"] for action in commit_actions(table.folder, version) if "txn" in action)
    lines = [Line(said["appId"], said["version"]) for said in transactions]
    own = commit_info(table.folder, version).get("userMetadata") == note
    return own and (line is None or line in lines)


def _merge_source(changes: Changes, names: Mapping[str, str]) -> pa.Table:
    """Each of the rows that are looked for as it is (`was_`) and is to be (`is_`); and the new ones."""
    nothing = pa.nulls(changes.new.num_rows)
    parts = ((GONE, changes.gone, changes.gone), (CHANGED, changes.before, changes.after), (NEW, None, changes.new))
    tables = []
    for letter, was, then in parts:
        before = {f"was_{alias}": nothing if was is None else was[name] for name, alias in names.items()}
        after = {f"is_{alias}": then[name] for name, alias in names.items()}
        kinds = [then.schema.field(name).type for name in names] * 2
        columns = [
            column.cast(kind) if column.type != kind else column
            for column, kind in zip([*before.values(), *after.values()], kinds, strict=True)
        ]
        some = pa.table(columns, [*before, *after])
        tables.append(some.append_column(DOING, repeated(letter, then.num_rows)))
    return pa.concat_tables(tables)


def _between(name: str, first: int, last: int) -> str:
    """The bounds of a time, in whole milliseconds: delta-rs's statistics of files are cut off to these."""
    low, high = first // 1000 * 1000, -(-last // 1000) * 1000
    kind = "'Timestamp(Microsecond, Some(\"UTC\"))'"
    column = f"t.{_quoted(name)}"
    return f"{column} >= arrow_cast({low}, {kind}) AND {column} <= arrow_cast({high}, {kind})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def writer(schema: pa.Schema, rows_a_group: int = ROWS_A_GROUP) -> WriterProperties:
    """How files of `schema` are written. They have no bounds of columns for which these are wrong.
    Without a codec among the properties delta-rs would compress nothing."""
    none = ColumnProperties(statistics_enabled="NONE")
    bounded = bounded_columns(schema)
    columns = {name: none for name in schema.names if name not in bounded}
    return WriterProperties(compression="SNAPPY", max_row_group_size=rows_a_group, column_properties=columns or None)


def _rows_a_group(rows: pa.Table) -> int:
    return _rows_of_group(rows.num_rows, rows.nbytes)


def _rows_a_group_of(files: Sequence[Path]) -> int:
    about = [read_metadata(file) for file in files]
    groups = (item.row_group(at) for item in about for at in range(item.num_row_groups))
    return _rows_of_group(sum(item.num_rows for item in about), sum(group.total_byte_size for group in groups))


def _rows_of_group(rows: int, size: int) -> int:
    """How many of so many rows, which have `size` bytes, a row group has."""
    return min(max(GROUP_BYTES * rows // max(size, 1), 1), ROWS_A_GROUP)


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


def refuse_full_disk(folder: Path, more: int = 0) -> None:
    """Raises NotWritableError or DiskFullError where delta-rs, which is to write `more` bytes, would write half a file
    and end its own thread with a stack trace."""
    about, fault = os.statvfs(folder), None
    if about.f_flag & os.ST_RDONLY:
        fault = errno.EROFS
    elif about.f_blocks and about.f_bavail * about.f_frsize < ROOM + more:  # some file systems count no blocks
        fault = errno.ENOSPC
    if fault is not None:
        raise storage_error(OSError(fault, os.strerror(fault), str(folder))) or AssertionError(fault)


def _file_of(table: TableHere, rows: Iterable[pa.RecordBatch], rows_a_group: int, now: int) -> AddAction:
    """Writes a Parquet file with `rows`, which the table has already."""
    schema, name = table.none().schema, f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    seen, group = _Statistics(schema), list[pa.RecordBatch]()
    try:
        with ParquetWriter(
            table.folder / name, schema, store_schema=False, write_statistics=bounded_columns(schema)
        ) as file:

            def write_group() -> None:
                file.write_table(pa.Table.from_batches(group, schema), row_group_size=rows_a_group)
                group.clear()

            for batch in rows:
                seen.add(batch)
                group.append(batch)
                if sum(len(part) for part in group) >= rows_a_group:
                    write_group()
            if any(len(part) for part in group):  # a row group without rows has no bounds
                write_group()
    except BaseException:  # half a file would take the room that a full disk lacks
        (table.folder / name).unlink(missing_ok=True)
        raise
    return AddAction(name, (table.folder / name).stat().st_size, {}, now, False, seen.as_json())


class _Statistics:
    """The facts that the log has of a file (Delta's protocol, "Per-file Statistics"): its rows, how many have NULL in
    each plain column, and the bounds of times (whole milliseconds, the last one rounded up), whole numbers and short
    texts."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows, self.nulls = 0, {field.name: 0 for field in schema if not pa.types.is_nested(field.type)}
        times = {field.name for field in schema if pa.types.is_timestamp(field.type)}
        kinds = (pa.types.is_integer, pa.types.is_string)
        self.bounds: dict[str, tuple[Any, Any]] = {}
        self.times, self.others = times, {field.name for field in schema if any(kind(field.type) for kind in kinds)}

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += len(rows)
        for name in self.nulls:
            column = rows.column(name)
            self.nulls[name] += column.null_count
            if column.null_count < len(column) and name in self.times | self.others:
                ends = pc.min_max(column.cast(pa.int64()) if name in self.times else column)
                self._widen(name, ends["min"].as_py(), ends["max"].as_py())

    def add_group(self, group: RowGroupMetaData) -> None:
        """As `add`, of a row group of a file, by its footer; nothing of a column where that has no statistics."""
        self.rows += group.num_rows
        for column in map(group.column, range(group.num_columns)):
            name, about = column.path_in_schema, column.statistics
            if name not in self.nulls:
                continue
            if about is None or not about.has_null_count:
                self._forget(name)
                del self.nulls[name]
                continue
            self.nulls[name] += about.null_count
            if about.has_min_max and name in self.times:
                self._widen(name, about.min_raw, about.max_raw)
            elif about.has_min_max and name in self.others:
                self._widen(name, about.min, about.max)
            elif about.null_count < group.num_rows:
                self._forget(name)

    def _widen(self, name: str, low: Any, high: Any) -> None:
        lowest, highest = self.bounds.get(name, (low, high))
        self.bounds[name] = min(low, lowest), max(high, highest)

    def _forget(self, name: str) -> None:
        self.times, self.others = self.times - {name}, self.others - {name}
        self.bounds.pop(name, None)

    def as_json(self) -> str:
        said = {name: ends for name in self.bounds if (ends := self._in_words(name)) is not None}
        low, high = ({name: ends[at] for name, ends in said.items()} for at in (0, 1))
        return json.dumps({"numRecords": self.rows, "minValues": low, "maxValues": high, "nullCount": self.nulls})

    def _in_words(self, name: str) -> tuple[Any, Any] | None:
        low, high = self.bounds[name]
        if name not in self.times:
            return None if isinstance(high, str) and max(len(low), len(high)) > TEXT_BOUND else (low, high)
        try:
            return _in_words(low // 1000), _in_words(-(-high // 1000))
        except OverflowError:  # after the year 9999, or before the first
            return None


def _in_words(milliseconds: int) -> str:
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
