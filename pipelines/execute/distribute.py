"""A run's cut on Spark: the events brought where it says (`distribute`), and a cut made by counting them (`choose`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.windows import moment
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.errors import ShardTooLargeError
from trendlake.pipelines.execute.pack import BLOCK_ROWS, PARTITION, SCHEMA, blocks, encoded, packer, typed
from trendlake.pipelines.execute.shard_assignment import place, shared_partition
from trendlake.pipelines.execute.shard_plan import Cut, Part, copies, few, first
from trendlake.pipelines.lake.here.parquet_scan import Files
from trendlake.pipelines.spark.columns import column

Batches = Iterator[pa.RecordBatch]

LOCAL = re.compile(r"local(\[.*\])?")
"""Spark's masters whose workers are children of the driver."""
UNIT, GROUP, SHARD, ROWS = (f"__trendlake_{name}" for name in ("unit", "group", "shard", "rows"))


@contextmanager
def folder_here(spark: SparkSession) -> Iterator[str | None]:
    """A folder for events on their way, where all workers are processes of this machine; None where they may not be.
    It is where Spark keeps its own shuffle files, and is removed at the end, or by Spark with those."""
    if LOCAL.fullmatch(str(spark.sparkContext.master)) is None:
        yield None
        return
    with TemporaryDirectory(prefix="events-", dir=spark.sparkContext._temp_dir, ignore_cleanup_errors=True) as folder:
        yield folder


def distribute(
    reading: Reading, events: DataFrame | Files, parts: Sequence[Part], folder: str | None = None
) -> DataFrame:
    """Rows of `pack.SCHEMA`: for each part the events of its cut's windows, each unit whole in one of its partitions;
    the events themselves in `folder`, where there is one (it must stay until they have been read). `reading`: of all
    parts together."""
    packed = typed(reading, events).mapInArrow(packer(reading, parts, folder), from_arrow_schema(SCHEMA))
    return packed.repartitionById(sum(part.cut.partitions for part in parts), PARTITION)


def choose(reading: Reading, events: DataFrame | Files, rows: int, windows: range, limit: int, cores: int) -> Cut:
    """The cut for `rows` events (at most) by which no worker holds more than `limit` of them.

    Rows are counted by unit only when they could be too many. Raises ShardTooLargeError, naming group and window, when
    the events of one group in one window are more than `limit`: nothing is ever cut off.
    """
    cut, target = first(reading, rows, windows, limit, cores)
    while True:
        copied = rows * copies(reading, cut)
        if copied <= limit:
            return replace(cut, partitions=few(copied, target, cores))
        units = counted(reading, events, cut).persist()
        try:
            largest = units.orderBy(sf.desc(ROWS)).limit(1).collect()
            if not largest or largest[0][ROWS] <= limit:
                return _spread(units, cut, limit, target)
        finally:
            units.unpersist()
        if cut.size == 1 or reading.windows.endless:
            raise _too_large(reading, largest[0].asDict(), cut, limit)
        cut = replace(cut, size=-(-cut.size // 2))


def counted(reading: Reading, events: DataFrame | Files, cut: Cut) -> DataFrame:
    """A row for each unit: its hash, its group's hash and its shard (`pipelines.execute.shard_assignment`), how many
    `ROWS` it has, and the group's columns."""
    known = typed(reading, events)
    if isinstance(known, DataFrame):
        begins = () if reading.interval_start is None else (reading.interval_start,)
        known = known.select(*map(column, dict.fromkeys((reading.schema.event_time, *begins, *reading.unit_key))))
    fields = [StructField(name, IntegerType() if name == SHARD else LongType()) for name in (UNIT, GROUP, SHARD, ROWS)]
    unit = [*(known.schema[name] for name in reading.unit_key)]
    counted = known.mapInArrow(_counter(reading, cut), StructType([*fields, *unit]))
    rest = [sf.first(column(field.name)).alias(field.name) for field in (*fields[1:3], *unit)]
    return counted.groupBy(UNIT).agg(sf.sum(ROWS).alias(ROWS), *rest)


def _counter(reading: Reading, cut: Cut) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: the units of each block and their rows in it."""

    def count(batches: Batches) -> Batches:
        for block in blocks(batches, max(1, BLOCK_ROWS // copies(reading, cut))):
            placed = place(reading, cut, encoded(reading, block))
            unit, at, rows = np.unique(placed.unit, return_index=True, return_counts=True)
            groups = block.select(list(reading.unit_key)).take(arrow(placed.rows[at]))
            numbers = [arrow(values) for values in (unit, placed.group[at], placed.shard[at], rows)]
            names = [UNIT, GROUP, SHARD, ROWS, *groups.column_names]
            yield from pa.Table.from_arrays([*numbers, *map(_plain, groups.columns)], names).to_batches()

    return count


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without a dictionary, which Spark does not take."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _spread(units: DataFrame, cut: Cut, limit: int, target: int) -> Cut:
    """The cut with partitions that each get at most `limit` rows, though units may meet in one by their hash.

    A unit of more than a quarter of the limit gets a partition to itself; there are fewer than 4 * rows / limit such.
    Those left are small compared with the limit, so few doublings part them well enough.
    """
    large = sf.col(ROWS) > limit // 4
    alone = tuple(sorted(row[0] for row in units.where(large).select(UNIT).collect()))
    small = units.where(~large)
    shared = max(1, -(-(small.agg(sf.sum(ROWS)).collect()[0][0] or 0) // target))
    while True:
        loads = small.groupBy(shared_partition(sf.col(GROUP), sf.col(SHARD), shared)).agg(sf.sum(ROWS).alias(ROWS))
        if (loads.agg(sf.max(ROWS)).collect()[0][0] or 0) <= limit:
            return replace(cut, partitions=shared + len(alone), alone=alone)
        shared *= 2


def _too_large(reading: Reading, unit: dict[str, object], cut: Cut, limit: int) -> ShardTooLargeError:
    group = ", ".join(f"{name} = {unit[name]!r}" for name in reading.unit_key) or "the whole stream"
    windows = cut.of(int(str(unit[SHARD])))
    if reading.windows.endless:
        where = f"before {moment(reading.windows.end(windows[-1])).isoformat()}, and the pattern asks for all of them"
    else:
        where = f"in the window that starts at {moment(reading.windows.start(windows[0])).isoformat()}"
    return ShardTooLargeError(
        f"{group}: {unit[ROWS]} events {where}, more than the {limit} rows a worker may hold",
        hint="raise limits.shard_rows of the profile (and the workers' memory), shorten within, or group by more",
    )
