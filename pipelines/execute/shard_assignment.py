"""Where a cut puts the rows of a table: the time shards that need each, and the partition of its unit.

Computed in the workers, a block of rows at a time; all other code that must know the partition of a unit asks this
module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int32s, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.events.windows import Windows
from trendlake.cep_core.plan import Reading, event_windows
from trendlake.pipelines.execute.hashing import row_hashes
from trendlake.pipelines.execute.kernels.hashes import fold
from trendlake.pipelines.execute.shard_plan import Cut


@dataclass(frozen=True)
class Placed:
    """`rows`: indices into the table, once for each time shard that needs the row; of each its `shard`, the hash of its
    group and of its unit (int64, not negative), and its unit's `partition`."""

    rows: Int64s
    shard: Int32s
    group: Int64s
    unit: Int64s
    partition: Int32s


def place(reading: Reading, cut: Cut, events: pa.Table) -> Placed:
    """The places of the rows that a window of the cut holds; rows without a time are in none."""
    time = normalise(events.column(reading.schema.event_time))
    timed = None
    if time.null_count:
        timed = np.flatnonzero(valid(time))
        time = time.drop_null()
    if reading.interval_start is None:
        rows, shard = time_shards(reading.windows, cut, numbers(time))
    else:
        lasting = events if timed is None else events.take(arrow(timed))
        rows, shard = _in_shards(cut, *event_windows(reading, numbers(time), lasting))
    rows = rows if timed is None else timed[rows]
    columns = [_whole(events.column(name)) for name in reading.unit_key]
    group_hash = row_hashes(columns, events.num_rows)[rows]
    unit_hash = group_hash.copy()
    fold(unit_hash, shard.astype(np.uint64))
    group, unit = (group_hash >> np.uint64(1)).view(np.int64), (unit_hash >> np.uint64(1)).view(np.int64)
    return Placed(rows, shard, group, unit, _partitions(cut, group, unit, shard))


def time_shards(windows: Windows, cut: Cut, time: Int64s) -> tuple[Int64s, Int32s]:
    """Indices into `time` (int64 microseconds), ascending, once for each time shard with a window that holds the
    time; and the shards (int32)."""
    start, end = windows.span(cut.windows)
    rows = np.flatnonzero((time >= start) & (time < end))
    if cut.shards == 1:
        return rows, np.zeros(len(rows), np.int32)
    at, shard = _in_shards(cut, *windows.held(time[rows]))
    return rows[at], shard


def _in_shards(cut: Cut, first: Int64s, last: Int64s) -> tuple[Int64s, Int32s]:
    """As `time_shards`, of events by the first and the last window of each."""
    low, high = cut.windows[0], cut.windows[-1]
    first, last = np.maximum(first, low), np.minimum(last, high)
    lowest, highest = (first - low) // cut.size, (last - low) // cut.size
    times = np.where(first <= last, highest - lowest + 1, 0)  # slide > within: a time may be in no window
    begins = np.cumsum(times) - times
    shard = np.repeat(lowest - begins, times) + np.arange(times.sum())
    return np.repeat(np.arange(len(first)), times), shard.astype(np.int32)


def shared_partition(group: Any, shard: Any, partitions: int) -> Any:
    """A unit's partition among those that units share, of arrays or of Spark's columns: by its group's hash, and from
    there one on for each time shard, so that a hot group's shards are spread as evenly as they can."""
    return (group % partitions + shard) % partitions


def _partitions(cut: Cut, group: Int64s, unit: Int64s, shard: Int32s) -> Int32s:
    """int32; units of `cut.alone` have the last ones."""
    shared = cut.partitions - len(cut.alone)
    number = shared_partition(group, shard, shared)
    if cut.alone:
        at = np.minimum(np.searchsorted(cut.alone, unit), len(cut.alone) - 1)
        number = np.where(np.array(cut.alone)[at] == unit, shared + at, number)
    shards: Int32s = number.astype(np.int32)
    return shards


def _whole(column: pa.Array) -> pa.Array:
    """One array of a column's chunks."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
