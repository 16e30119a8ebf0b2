"""Row groups of Parquet files: which are read, by whom; and what files say of them, the bounds of a column's values and
the size.

Files' own statistics are exact where those in Delta's log are cut off at milliseconds, and wrong of moments that
nanoseconds cannot count. They are held while the file is the same: a data file of a table is never changed, and to open
it takes fifty times as long as to see that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import FileMetaData, ParquetFile

from trendlake.pipelines.lake.here.parquet_scan import from_old_calendar
from trendlake.pipelines.lake.log_cache import Stamp, stamp
from trendlake.pipelines.lake.road import refuse

COLUMNS = 65_536
"""Columns of files whose bounds are held."""


class RowGroup(NamedTuple):
    """`size`: bytes, not compressed. `low`, `high`: the bounds of a column's values, None where they are not known."""

    rows: int
    size: int
    low: Any
    high: Any


Chooser = Callable[[Path], Sequence[int]]
"""Of a file: its row groups that may hold rows that are wanted, by their numbers."""


def bounded_columns(schema: pa.Schema) -> list[str]:
    """The columns by whose bounds, as Parquet's writers or delta-rs note them, readers may skip rows: those of floating
    numbers ignore NaN, which Spark takes for the largest; those of decimals beyond 18 digits are cut off."""

    def wrong(kind: pa.DataType) -> bool:
        return bool(pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.precision > 18))

    return [field.name for field in schema if not wrong(field.type)]


def times(file: Path, column: str) -> Sequence[RowGroup]:
    """The row groups of `file` with the bounds of a column of times, microseconds since the epoch."""
    return _times(file, stamp(file), column)


def values(file: Path, column: str) -> Sequence[RowGroup]:
    """The row groups of `file` with the bounds of a column of texts or of whole numbers."""
    return _values(file, stamp(file), column)


def near(column: str, slices: Iterable[tuple[int, int]]) -> Chooser:
    """Row groups that may have rows whose time is in one of the half-open `slices`, microseconds."""
    wanted = list(slices)

    def choose(file: Path) -> Sequence[int]:
        groups = enumerate(times(file, column))
        return [
            at
            for at, (_, _, first, last) in groups
            if first is None or any(first < high and last >= low for low, high in wanted)
        ]

    return choose


def within(column: str, asked: pa.Array) -> Chooser:
    """Row groups that may have a row whose `column` has one of the values `asked`, where these are texts or whole
    numbers; all row groups for others and for NULL."""
    kind = asked.type
    if asked.null_count or not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        return lambda file: range(len(values(file, column)))
    ends = pc.min_max(asked).as_py()

    def choose(file: Path) -> Sequence[int]:
        if not len(asked):
            return ()
        groups = enumerate(values(file, column))
        return [
            at
            for at, (_, _, low, high) in groups
            if type(low) is not type(ends["min"]) or (low <= ends["max"] and high >= ends["min"])
        ]

    return choose


def unbounded(column: str) -> Chooser:
    """Row groups that do not say the bounds of a column of times."""
    return lambda file: [at for at, group in enumerate(times(file, column)) if group.low is None]


def in_slice(group: RowGroup, slice_: tuple[int, int]) -> bool | None:
    """Whether the times of a row group are in a half-open slice; None where some may be. A row without a time is not
    asked about."""
    start, end = slice_
    if group.low is None:
        return None
    if group.high < start or group.low >= end:
        return False
    return True if start <= group.low and group.high < end else None


@lru_cache(maxsize=COLUMNS)
def _times(file: Path, _: Stamp | None, column: str) -> tuple[RowGroup, ...]:
    with ParquetFile(file) as opened:
        about, at = opened.metadata, _place(opened, column)
        if at is not None:
            stored = opened.schema.column(at)
            unit = json.loads(stored.logical_type.to_json()).get("timeUnit")
            at = at if (stored.physical_type, unit) == ("INT64", "microseconds") else None
        return tuple(_group(about, group, at, raw=True) for group in range(about.num_row_groups))


@lru_cache(maxsize=COLUMNS)
def _values(file: Path, _: Stamp | None, column: str) -> tuple[RowGroup, ...]:
    with ParquetFile(file) as opened:
        about, at = opened.metadata, _place(opened, column)
        return tuple(_group(about, group, at, raw=False) for group in range(about.num_row_groups))


def _place(file: ParquetFile, column: str) -> int | None:
    """None where the file lacks the column, whose rows have NULL in it, or may mean other times than it says."""
    names = [file.schema.column(i).path for i in range(len(file.schema))]
    old = from_old_calendar(file.schema_arrow.metadata or {})
    return names.index(column) if column in names and not old else None


def _group(about: FileMetaData, group: int, at: int | None, *, raw: bool) -> RowGroup:
    group_about = about.row_group(group)
    statistics = None if at is None else group_about.column(at).statistics
    if statistics is None or not statistics.has_min_max:
        return RowGroup(group_about.num_rows, group_about.total_byte_size, None, None)
    ends = (statistics.min_raw, statistics.max_raw) if raw else (statistics.min, statistics.max)
    return RowGroup(group_about.num_rows, group_about.total_byte_size, *ends)


def shares_of(groups: Sequence[int] | None) -> list[Sequence[int] | None]:
    """Row groups, one after the other, in as many parts as there are cores to read them."""
    if groups is None or len(groups) < 2:
        return [groups]
    parts = min(pa.cpu_count(), len(groups))
    return [groups[len(groups) * at // parts : len(groups) * (at + 1) // parts] for at in range(parts)]


def all_groups(file: Any) -> Sequence[int]:
    """Every row group of a Parquet file."""
    return range(file.num_row_groups)


def at_most(batches: Iterable[pa.RecordBatch], most: int) -> list[pa.RecordBatch]:
    """The batches. Raises NotHereError where they have more than `most` rows."""
    batches_read, rows = [], 0
    for batch in batches:
        rows += batch.num_rows
        refuse({f"more than {most:,} rows": rows > most})  # how many there are in all is not known
        batches_read.append(batch)
    return batches_read
