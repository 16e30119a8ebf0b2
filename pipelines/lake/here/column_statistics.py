"""Of each column of a table how many rows have NULL, and its least and its greatest value, however many rows there are.

The files say it (their own statistics are exact, those in Delta's log are cut off), row group by row group. Row groups
that do not say it of a column are read where they are few; else the answer is that it is not known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile, Statistics

from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.form import arrow_schema
from trendlake.pipelines.lake.here.parquet_scan import from_old_calendar, plain_batches
from trendlake.pipelines.lake.here.read import STREAMED_ROWS, TableHere
from trendlake.pipelines.lake.road import NotHere, refuse_more, tried


@dataclass(frozen=True)
class ColumnStatistics:
    """`nulls`: rows that have NULL, None where that is not known. `bounded`: whether `low` and `high`, the least and
    the greatest value, are known; both are None where no row has a value. Moments are microseconds since the epoch,
    dates days since then, texts in the order of their bytes; NaN is left out. A text of 64 bytes or more may be cut off
    there, the last sign of `high` raised."""

    nulls: int | None = None
    bounded: bool = False
    low: Any = None
    high: Any = None


@dataclass
class _Tally:
    """The statistics of one column in the files so far, and the row groups without any (`silent`): by file, with their
    rows and bytes, not compressed."""

    kind: pa.DataType
    nulls: int = 0
    low: Any = None
    high: Any = None
    silent: dict[Path, list[int]] = field(default_factory=dict)
    rows: int = 0
    size: int = 0

    def add(self, nulls: int, ends: tuple[Any, Any] | None) -> None:
        self.nulls += nulls
        if ends is not None:
            self.low = ends[0] if self.low is None else min(self.low, ends[0])
            self.high = ends[1] if self.high is None else max(self.high, ends[1])

    def leave(self, file: Path, group: int, rows: int, size: int) -> None:
        self.silent.setdefault(file, []).append(group)
        self.rows += rows
        self.size += size


def statistics_of(table: TableHere, names: Sequence[str]) -> dict[str, ColumnStatistics]:
    """Of the columns `names`, which the table has. Raises NotHereError where the files have too many statistics, or
    hold times of the old calendar."""
    kinds = {name: tried(lambda name=name: arrow_schema(table.schema, [name]).types[0]) for name in names}  # type: ignore[misc]
    tallies = {name: _Tally(kind) for name, kind in kinds.items() if not isinstance(kind, NotHere)}
    looked_at = 0
    for name in table.files:
        path = table.folder / name
        with ParquetFile(path) as file:
            looked_at += file.metadata.num_row_groups * len(tallies)
            refuse_more(looked_at, limits.STATISTICS, "statistics of files")
            _look_into(path, file, tallies)
    room = limits.DOCUMENT_BYTES
    statistics = dict.fromkeys(names, ColumnStatistics())
    for name, tally in sorted(tallies.items(), key=lambda item: item[1].size):
        if tally.rows <= limits.READ and tally.size <= room:
            room -= tally.size
            whole = tried(lambda name=name, tally=tally: _with_silent(name, tally))  # type: ignore[misc]
            statistics[name] = ColumnStatistics() if isinstance(whole, NotHere) else whole
    return statistics


def _look_into(path: Path, file: ParquetFile, tallies: dict[str, _Tally]) -> None:
    about, schema, fields = file.metadata, file.schema, {same_name(name) for name in file.schema_arrow.names}
    places = {schema.column(place).path: place for place in range(len(schema))}
    times = [name for name, tally in tallies.items() if name in places and pa.types.is_timestamp(tally.kind)]
    raw = {name: _is_micros(schema.column(places[name])) for name in times}
    absent = {name for name in tallies if same_name(name) not in fields}
    old = from_old_calendar(file.schema_arrow.metadata or {})
    for at in range(about.num_row_groups):
        group = about.row_group(at)
        rows = group.num_rows
        for name, tally in tallies.items():
            column = group.column(places[name]) if name in places else None
            statistics = None if column is None else column.statistics
            nulls = rows if name in absent else None if statistics is None else _nulls(statistics)
            ends = None if statistics is None or old else _ends(statistics, tally.kind, raw=raw.get(name, False))
            if nulls is not None and (nulls == rows or ends is not None):
                tally.add(nulls, ends if nulls < rows else None)
            else:
                size = group.total_byte_size if column is None else column.total_uncompressed_size
                tally.leave(path, at, rows, size)


def _nulls(statistics: Statistics) -> int | None:
    return int(statistics.null_count) if statistics.has_null_count else None


def _is_micros(stored: Any) -> bool:
    unit = json.loads(stored.logical_type.to_json()).get("timeUnit")
    return bool((stored.physical_type, unit) == ("INT64", "microseconds"))


def _ends(statistics: Statistics, kind: pa.DataType, *, raw: bool) -> tuple[Any, Any] | None:
    """None where the statistics have no bounds, or none of one meaning."""
    if not statistics.has_min_max or pa.types.is_binary(kind) or pa.types.is_nested(kind):
        return None
    if pa.types.is_timestamp(kind):
        return (statistics.min_raw, statistics.max_raw) if raw else None
    if pa.types.is_date(kind):
        return statistics.min_raw, statistics.max_raw
    with suppress(UnicodeDecodeError, ValueError):
        low, high = statistics.min, statistics.max
        if pa.types.is_floating(kind):
            return None if low != low or high != high else (low + 0.0, high + 0.0)  # no NaN, no -0.0
        return low, high
    return None


def _with_silent(name: str, tally: _Tally) -> ColumnStatistics:
    """With the row groups read that say nothing. Raises as `plain_batches`."""
    schema, bounded = pa.schema([(name, tally.kind)]), True
    for path, groups in tally.silent.items():
        for batch in plain_batches(str(path), schema, partial(_only, groups), threads=True, rows=STREAMED_ROWS):
            values = batch.column(0)
            ends = _ends_of(values)
            bounded = bounded and (ends is not None or values.null_count == len(values))
            tally.add(values.null_count, None if ends is None or ends[0] is None else ends)
    return ColumnStatistics(tally.nulls, bounded, tally.low, tally.high)


def _only(groups: Sequence[int], _: Any) -> Sequence[int]:
    return groups


def _ends_of(values: pa.Array) -> tuple[Any, Any] | None:
    """None where values of the type have no order."""
    kind = values.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return None
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_date(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_floating(kind):
        values = values.filter(pc.invert(pc.is_nan(values)), null_selection_behavior="drop")
    ends = pc.min_max(values).as_py()
    if pa.types.is_floating(kind) and ends["min"] is not None:
        return ends["min"] + 0.0, ends["max"] + 0.0
    return ends["min"], ends["max"]
