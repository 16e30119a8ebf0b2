"""Delta tables on this machine's disk, read in this process: rows, change feed.

Spark plans a job for each of these questions, which takes longer than to answer it of a small table. delta-rs says
which files a version consists of; the files are read as the workers read them (`pipelines.lake.here.parquet_scan`), and
a commit as the protocol has it. Only what has but one reading is read so; for all else `NotHereError` says why, and
Spark is asked (`pipelines.lake.road`): there is nothing that only this module reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.pipelines.errors import OtherwiseWrittenError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here import row_groups
from trendlake.pipelines.lake.here.form import PLAIN_FILE, arrow_schema, has_feed, other_forms, takes_writes
from trendlake.pipelines.lake.here.log import Action, checksum, commit_actions, folder_on_disk, opened
from trendlake.pipelines.lake.here.parquet_scan import BATCH_ROWS, plain_batches
from trendlake.pipelines.lake.here.row_groups import all_groups, at_most, shares_of
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.log_cache import cache_by_commit
from trendlake.pipelines.lake.road import refuse, refuse_more

Slices = Sequence[tuple[int, int]]
"""Half-open, microseconds."""
Condition = Callable[[pa.RecordBatch, pa.Array], pa.Array]
"""Rows and which of them are asked about, to those of these that it is true of."""
CHANGE = "_change_type"
DONE = ("Inserted", "Updated", "Deleted")
"""Ends of the names by which the metrics of a MERGE count its rows."""
STREAMED_ROWS = 1 << 16
"""Rows that are read at once of as many as there are."""
SEARCHED_ROWS = 1 << 13
"""Rows that are read at once where few of them stay: the same memory is used again and again."""


@dataclass(frozen=True)
class TableHere:
    """One version of a table, in `folder`: its columns and the files that hold its rows."""

    folder: Path
    version: int
    schema: StructType
    files: tuple[str, ...]
    row_count: int | None
    """As the log says it; None where it does not for each file."""
    writable: bool
    """Whether delta-rs may write to it."""
    table_id: str
    """`metadata.id` of the version: that of another table, made in the place of one that was dropped, is another."""
    actions: pa.Table = field(compare=False, repr=False)
    """The log's information about each of `files`, as delta-rs's `get_add_actions`."""

    @cached_property
    def counted(self) -> int:
        """`row_count`, or as the files themselves say it."""
        if self.row_count is not None:
            return self.row_count
        return sum(group.rows for name in self.files for group in row_groups.times(self.folder / name, ""))

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each of `files`."""
        names, sizes = (self.actions[column].to_pylist() for column in ("path", "size_bytes"))
        size_of = dict(zip(names, sizes, strict=True))
        return {name: int(size_of[name] or 0) for name in self.files}

    def refuse_large(self) -> None:
        """Raises NotHereError where the files are too large to be read here, however few their rows."""
        refuse_more(sum(self.sizes.values()), limits.DOCUMENT_BYTES, "bytes")

    def refuse_large_search(self, time: str, slices: Slices) -> None:
        """Raises NotHereError where the row groups that may have rows in `slices` are too large to be looked
        through."""
        size = 0
        for name in self.files:
            path = self.folder / name
            groups = row_groups.times(path, time)
            size += sum(groups[at].size for at in row_groups.near(time, slices)(path))
            refuse_more(size, limits.SEARCHED_BYTES, "bytes to be searched")

    def refuse_large_feed(self, after: int) -> None:
        """Raises NotHereError where the files that tell what the versions `after` + 1 to this one have changed
        are too large to be read here."""
        paths = (path for version in range(after + 1, self.version + 1) for path, _ in self._changed(version))
        refuse_more(sum(Path(path).stat().st_size for path in paths), limits.FEED_BYTES, "bytes of changes")

    def rows(
        self,
        names: Sequence[str],
        time: str,
        slices: Slices,
        most: int,
        only: Condition | None = None,
        also: Sequence[str] = (),
    ) -> pa.Table:
        """Columns `names` of the rows whose `time` is in one of `slices`, in the order of `files` and of the rows
        there; with `only` those of them for which it is true, which may read the columns `also`. Raises NotHereError
        where they are more than `most`."""
        asked = list(dict.fromkeys((*names, *also, time)))

        def near(batch: pa.RecordBatch) -> pa.Array:
            mask = inside(batch, time, slices)
            return mask if only is None else only(batch, mask)

        at_once = BATCH_ROWS if only is None else SEARCHED_ROWS
        if not slices:
            return arrow_schema(self.schema, names).empty_table()
        rows = self._scan(asked, near, most, row_groups.near(time, slices), at_once)
        return rows.select(list(names))

    def rows_with(
        self, names: Sequence[str], values: pa.Array, most: int, also: Mapping[str, pa.Array] | None = None
    ) -> pa.Table:
        """Columns `names` of the rows whose first of them has one of `values`; NULL has itself. `also`: what others of
        the columns must have one of. Raises as `rows`."""
        condition = partial(_has_one_of, {names[0]: values} | dict(also or {}))
        return self._scan(names, condition, most, row_groups.within(names[0], values))

    def every(self, names: Sequence[str], most: int) -> pa.Table:
        """Columns `names` of all rows, in the order of `files` and of the rows there. Raises as `rows`."""
        return self._scan(names, None, most)

    def batches(self, names: Sequence[str], time: str = "", slices: Slices = ()) -> Iterator[pa.RecordBatch]:
        """Columns `names` of all rows, or of those that `rows` has, however many they are: one batch after another,
        the first without rows. Raises NotHereError, also after some of them."""
        if not time:
            return self._batches(names, None, None)
        asked = list(dict.fromkeys((*names, time)))
        near = row_groups.near(time, slices)
        return (rows.select(names) for rows in self._batches(asked, lambda batch: inside(batch, time, slices), near))

    def batches_with(self, names: Sequence[str], name: str, values: pa.Array) -> Iterator[pa.RecordBatch]:
        """As `batches`, of the rows whose column `name` has one of `values`."""
        asked, condition = list(dict.fromkeys((*names, name))), partial(_has_one_of, {name: values})
        return (rows.select(names) for rows in self._batches(asked, condition, row_groups.within(name, values)))

    def _batches(
        self,
        names: Sequence[str],
        condition: Callable[[pa.RecordBatch], pa.Array] | None,
        choose: row_groups.Chooser | None,
    ) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(self.schema, names)
        yield pa.RecordBatch.from_pylist([], schema)
        for name in self.files:
            path = self.folder / name
            groups = None if choose is None else choose(path)
            wanted = all_groups if groups is None else (lambda _, groups=groups: groups)
            for batch in plain_batches(str(path), schema, wanted, threads=True, rows=STREAMED_ROWS):
                yield batch.filter(condition(batch)) if condition else batch

    def extent(self, time: str) -> tuple[int, int | None, int | None]:
        """Of all rows: how many they are, and the first and the last `time`, microseconds; None where no row has one.
        Only row groups that do not say it are read. Raises NotHereError."""
        groups = [group for name in self.files for group in row_groups.times(self.folder / name, time)]
        ends = [end for group in groups for end in (group.low, group.high) if end is not None]
        others = self._scan([time], None, limits.READ, row_groups.unbounded(time)).column(0).cast(pa.int64())
        bounds = pc.min_max(pa.chunked_array([*others.chunks, pa.array(ends, pa.int64())])).as_py()
        return sum(group.rows for group in groups), bounds["min"], bounds["max"]

    def near(self, name: str, value: str) -> TableHere:
        """The same, with those files only that may hold rows whose text column `name` is `value`. The log's bounds may
        be cut off, but are bounds."""
        if not {f"min.{name}", f"max.{name}"} <= set(self.actions.column_names):
            return self
        low, high = self.actions[f"min.{name}"], self.actions[f"max.{name}"]
        inside = pc.and_(pc.less_equal(low, value), pc.greater_equal(high, value))
        possible = pc.fill_null(inside, True)
        if {"num_records", f"null_count.{name}"} <= set(self.actions.column_names):  # a file of NULLs has no bounds
            full = pc.not_equal(self.actions["num_records"], self.actions[f"null_count.{name}"])
            possible = pc.and_(possible, pc.fill_null(full, True))
        chosen = tuple(file for file, near in zip(self.files, possible.to_pylist(), strict=True) if near)
        return replace(self, files=chosen, actions=self.actions.filter(possible), row_count=None)

    def part(self, files: Sequence[str]) -> TableHere:
        """The same, with only those of its `files`."""
        chosen = tuple(files)
        return replace(self, files=chosen, row_count=None)

    def near_time(self, time: str, slices: Slices) -> TableHere:
        """The same, with those files only that may hold rows whose `time` is in one of `slices`, by the statistics of
        each file. Raises NotHereError."""
        choose = row_groups.near(time, slices)
        return self.part([name for name in self.files if choose(self.folder / name)])

    def in_slice(self, file: str, time: str, slice_: tuple[int, int]) -> Bools | bool:
        """Which rows of one of `files` have a `time` in a slice; True or False where that is so of all of them. Of rows
        without a time it may say either. Only row groups that do not say it are read."""
        path, schema = self.folder / file, arrow_schema(self.schema, [time])
        groups = row_groups.times(path, time)
        answers = [row_groups.in_slice(group, slice_) for group in groups]
        if None not in answers and len(set(answers)) < 2:
            return True in answers
        parts = []
        for at, (group, answer) in enumerate(zip(groups, answers, strict=True)):
            if answer is not None:
                parts.append(np.full(group.rows, answer))
            else:
                batches = plain_batches(str(path), schema, partial(_only, at), threads=True)
                parts.extend(numbers(inside(batch, time, [slice_])) for batch in batches)
        return np.concatenate(parts)

    def taken(self, names: Sequence[str], places: Int64s) -> pa.Table:
        """Columns `names` of the rows at `places`, ascending: their numbers in the order of `files` and of the rows
        there. Only row groups that have one of them are read."""
        schema, parts, first = arrow_schema(self.schema, names), list[pa.RecordBatch](), 0
        for name in self.files:
            path = self.folder / name
            for at, group in enumerate(row_groups.times(path, "")):
                low, high = np.searchsorted(places, (first, first + group.rows))
                own, start = places[low:high] - first, 0
                first += group.rows
                for batch in plain_batches(str(path), schema, partial(_only, at), threads=True) if len(own) else ():
                    ends = np.searchsorted(own, (start, start + batch.num_rows))
                    parts.append(batch.take(arrow(own[slice(*ends)] - start)))
                    start += batch.num_rows
        return pa.Table.from_batches(parts, schema)

    def none(self) -> pa.Table:
        """No rows, of all columns."""
        return arrow_schema(self.schema, self.schema.names).empty_table()

    def last_transaction(self, application: str) -> int:
        """The newest number that a commit of `application` bears (Delta's protocol, "Transaction Identifiers"), -1
        where none does. Raises NotHereError."""
        with opened(self.folder, self.version) as table:
            number = table.transaction_version(application)
            return -1 if number is None else number

    def whole(self, file: str, most: int) -> pa.Table:
        """All rows of one of `files`, in their order there. Raises as `rows`."""
        return replace(self, files=(file,))._scan(self.schema.names, None, most)

    def _scan(
        self,
        names: Sequence[str],
        condition: Callable[[pa.RecordBatch], pa.Array] | None,
        most: int,
        choose: row_groups.Chooser | None = None,
        at_once: int = BATCH_ROWS,
    ) -> pa.Table:
        schema = arrow_schema(self.schema, names)
        chosen = {name: choose(self.folder / name) for name in self.files} if choose else {}
        files = [name for name in self.files if chosen.get(name, True)]

        def read(name: str, groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
            path = f"{self.folder}/{name}"
            wanted = all_groups if groups is None else (lambda _: groups)
            for batch in plain_batches(path, schema, wanted, threads=True, rows=at_once):
                yield batch.filter(condition(batch)) if condition else batch

        shares = [(name, share) for name in files for share in shares_of(chosen.get(name))]
        if condition is None or len(shares) < 2:
            batches = (batch for name in files for batch in read(name, chosen.get(name)))
            return pa.Table.from_batches(at_most(batches, most), schema)
        with ThreadPoolExecutor(pa.cpu_count()) as pool:  # Arrow reads a file of one large column on one core
            parts = [pool.submit(lambda share=share: list(read(*share))) for share in shares]  # type: ignore[misc]
            try:
                batches = (batch for part in parts for batch in part.result())
                return pa.Table.from_batches(at_most(batches, most), schema)
            finally:
                for part in parts:
                    part.cancel()

    def feed(self, names: Sequence[str], after: int, most: int) -> pa.Table:
        """Columns `names` and `CHANGE` of what the versions `after` + 1 to this one have changed. Raises
        NotHereError if the log does not say, or the rows are more than `most`."""
        return pa.concat_tables([changes for _, changes in self.feed_by_version(names, after, most)])

    def feed_by_version(self, names: Sequence[str], after: int, most: int) -> list[tuple[int, pa.Table]]:
        """As `feed`, a table for each version; the first, without rows, is of version `after`.

        Delta's protocol, "Add CDC File": a commit with such files has its changes there, any other in the files that it
        adds and removes."""
        with opened(self.folder, after) as table:
            fed = has_feed(table)
        refuse({f"the change feed was off in version {after}": not fed})
        schema = arrow_schema(self.schema, names).append(pa.field(CHANGE, pa.string()))
        versions = range(after + 1, self.version + 1)
        parts = {version: list(self._changed(version)) for version in versions}
        refuse_more(sum(map(len, parts.values())), limits.FILES, "files of changes")
        changes = [(after, schema.empty_table())]
        for version in versions:
            batches = (
                batch
                for path, word in parts[version]
                for batch in plain_batches(path, schema, all_groups, constant=(CHANGE, word) if word else None)
            )
            changes.append((version, pa.Table.from_batches(at_most(batches, most), schema)))
            most -= changes[-1][1].num_rows
        return changes

    def _changed(self, version: int) -> Iterator[tuple[str, str | None]]:
        """The files that tell what a commit has changed, and of each the `CHANGE` of all its rows, where no column of
        its own says it."""
        actions = commit_actions(self.folder, version)
        altered = any(word in action for action in actions for word in ("metaData", "protocol"))
        refuse({f"version {version} is another form of the table": altered})
        changes: list[tuple[Action, str | None]] = [(action["cdc"], None) for action in actions if "cdc" in action]
        if not changes and not _only_copies(actions):
            sides = (("add", "insert"), ("remove", "delete"))
            both = ((action[side], word) for action in actions for side, word in sides if side in action)
            changes = [(item, word) for item, word in both if item["dataChange"]]
        for item, word in changes:
            odd = item.get("deletionVector") or item.get("partitionValues") or not PLAIN_FILE.fullmatch(item["path"])
            refuse({f"version {version}: rows that are not as they lie in a file": bool(odd)})
            yield f"{self.folder}/{item['path']}", word


def _only_copies(actions: Sequence[Action]) -> bool:
    """Whether a commit is a MERGE that has changed no row, and copied some to new files, as Delta's change feed has
    it."""
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    merged = [info.get("operationMetrics", {}) for info in infos if info.get("operation") == "MERGE"]
    return any(all(metrics.get(f"numTargetRows{done}") == "0" for done in DONE) for metrics in merged)


def _only(group: int, _: Any) -> Sequence[int]:
    return [group]


def inside(rows: pa.RecordBatch | pa.Table, time: str, slices: Slices) -> pa.Array | pa.ChunkedArray:
    """Where `time` is in one of `slices`; a row without a time is in none."""
    column = rows.column(time)
    moment = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    times = numbers(moment.cast(pa.int64()), 0)
    starts, ends = np.array(sorted(slices), np.int64).reshape(-1, 2).T
    ends = np.maximum.accumulate(ends)  # of those that begin by then
    at = np.searchsorted(starts, times, side="right") - 1
    mask = arrow((at >= 0) & (times < ends[at]) & valid(moment))
    return pa.chunked_array([mask]) if isinstance(column, pa.ChunkedArray) else mask


def _has_one_of(values: Mapping[str, pa.Array], rows: pa.RecordBatch) -> pa.Array:
    return reduce(pc.and_, (pc.is_in(rows.column(name), _both_zeros(of_it)) for name, of_it in values.items()))


def _both_zeros(values: pa.Array) -> pa.Array:
    """Arrow looks for 0.0 and for -0.0, which are one value."""
    if not pa.types.is_floating(values.type) or not pc.any(pc.equal(values, 0.0)).as_py():
        return values
    return pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])


def table_here(lake: Lake, path: str, version: int | None = None) -> TableHere:
    """The table at `path` at a version, the newest where none is named.

    Raises NotHereError: it is not on this machine's disk, or there is none, or its files do not hold its rows
    as they are (partitions, deletion vectors, column mapping and the like).
    """
    folder = folder_on_disk(lake, path)
    table = _described(folder, version)
    refuse_more(len(table.files), limits.FILES, "files")
    return table


def _refuse_other_checksum(folder: Path, version: int, added: pa.Table) -> None:
    """Raises OtherwiseWrittenError where the version's checksum counts other files than its log has."""
    said, sizes = checksum(folder, version), added["size_bytes"]
    there = {"numFiles": added.num_rows, "tableSizeBytes": pc.sum(sizes).as_py() or 0}
    if any(said.get(name) not in (None, number) for name, number in there.items()):
        raise OtherwiseWrittenError(f"the checksum of version {version} is not that of its files")


@cache_by_commit
def _described(folder: Path, version: int | None) -> TableHere:
    with opened(folder, version) as table:
        refuse(other_forms(table))
        added = pa.table(table.get_add_actions(flatten=True))
        files, counts = tuple(added["path"].to_pylist()), added["num_records"]
        refuse({"files that lie elsewhere": not all(map(PLAIN_FILE.fullmatch, files))})
        _refuse_other_checksum(folder, int(table.version()), added)
        rows = None if counts.null_count else int(pc.sum(counts).as_py() or 0)
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        writable, table_id = takes_writes(table), str(table.metadata().id)
        return TableHere(folder, int(table.version()), schema, files, rows, writable, table_id, added)
