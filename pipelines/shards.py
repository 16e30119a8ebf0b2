"""How a run's events are cut into shards: by group, and by time.

A time shard is a range of consecutive windows with all events they need; an event that several time shards need is
given to each. A group's events of one time shard are a unit: they meet in one worker, where the kernel takes every
window of the shard in one pass. Cutting by time as well as by group is what lets one hot group use the whole cluster.

It is exact: a trend lies in one window, a window in one time shard, and a group's results depend on its events only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cep_core import AnyPlan
from cep_core.windows import Windows
from pipelines.errors import ShardTooLargeError
from pipelines.packing import packed
from pipelines.quarantine import column
from pipelines.watermark import BEGINNING

SHARD = "__trendlake_shard"
UNIT = "__trendlake_unit"
OWN = "__trendlake_own"
PARTITION = "__trendlake_partition"
TASKS_PER_CORE = 3
MIN_ROWS = 50_000
"""A worker's start costs more than this many rows: fewer are not spread further."""
SLACK = 2
"""Partitions made without counting may be this many times as full as the mean one."""


@dataclass(frozen=True)
class Cut:
    """`windows` of the run, `size` of them a time shard, units spread over `partitions`; the units whose hash is in
    `alone` have the last partitions, one each."""

    windows: range
    size: int
    partitions: int = 1
    alone: tuple[int, ...] = ()

    @property
    def shards(self) -> int:
        return -(-len(self.windows) // self.size)

    def of(self, shard: int) -> range:
        """The windows of a time shard."""
        return self.windows[shard * self.size : (shard + 1) * self.size]


def group_key(plan: AnyPlan) -> tuple[str, ...]:
    """The columns whose values part the events into groups that never meet and share no result row."""
    return plan.unit_key


def likely(plan: AnyPlan, rows: int, windows: range, limit: int, cores: int) -> Cut | None:
    """The cut for `rows` events (at most) made without looking at them, where no worker will get more than `limit`
    unless some units are far larger than others: then the worker says so, and `choose` counts. None: one unit is
    likely to have more."""
    cut, target = _first(plan, rows, windows, limit, cores)
    rows *= _copies(plan, cut)
    if rows <= limit:
        return replace(cut, partitions=max(1, min(-(-rows // target), cores * TASKS_PER_CORE)))
    if not group_key(plan) and rows > cut.shards * limit // SLACK:
        return None
    return replace(cut, partitions=max(-(-rows * SLACK // limit), cores * TASKS_PER_CORE))


def choose(plan: AnyPlan, events: DataFrame, rows: int, windows: range, limit: int, cores: int) -> Cut:
    """The cut for `rows` events (at most) of which no worker may hold more than `limit`.

    Rows are counted by unit only when they could be too many. Raises ShardTooLargeError, naming group and window, when
    the events of one group in one window are more than `limit`: nothing is ever cut off.
    """
    cut, target = _first(plan, rows, windows, limit, cores)
    while True:
        copied = rows * _copies(plan, cut)
        if copied <= limit:
            return replace(cut, partitions=max(1, min(-(-copied // target), cores * TASKS_PER_CORE)))
        units = sharded(plan, events, cut).groupBy(*_unit(plan)).count()
        largest = units.orderBy(sf.desc("count")).limit(1).collect()
        if not largest or largest[0]["count"] <= limit:
            return _spread(plan, units, cut, limit, target)
        if cut.size == 1 or plan.windows.endless:
            raise _too_large(plan, largest[0].asDict(), cut, limit)
        cut = replace(cut, size=-(-cut.size // 2))


def _first(plan: AnyPlan, rows: int, windows: range, limit: int, cores: int) -> tuple[Cut, int]:
    """Time shards of a size that keeps every core busy and copies few events; and the rows a partition should have."""
    target = max(min(limit, -(-rows // (cores * TASKS_PER_CORE))), min(MIN_ROWS, limit))
    most = max(1, len(windows) // _overlap(plan))
    return Cut(windows, -(-len(windows) // max(1, min(most, -(-rows // target))))), target


def _overlap(plan: AnyPlan) -> int:
    """The most windows that hold an event."""
    return -(-plan.windows.within // plan.windows.slide)


def _copies(plan: AnyPlan, cut: Cut) -> int:
    """The most time shards that need an event."""
    return min(cut.shards, -(-(_overlap(plan) - 1) // cut.size) + 1)


def _spread(plan: AnyPlan, units: DataFrame, cut: Cut, limit: int, target: int) -> Cut:
    """Partitions of which none gets more than `limit` rows, though units may meet in one by their hash.

    A unit of more than a quarter of the limit gets a partition to itself; there are fewer than 4 * rows / limit such.
    Those left are small beside the limit, so few doublings part them well enough.
    """
    units = units.withColumn(UNIT, _hash(plan)).persist()
    try:
        large = sf.col("count") > limit // 4
        alone = tuple(sorted(row[0] for row in units.where(large).select(UNIT).collect()))
        small = units.where(~large)
        shared = max(1, -(-(small.agg(sf.sum("count")).collect()[0][0] or 0) // target))
        while True:
            loads = small.groupBy(_shared(plan, cut, shared)).agg(sf.sum("count").alias("rows"))
            if (loads.agg(sf.max("rows")).collect()[0][0] or 0) <= limit:
                return Cut(cut.windows, cut.size, shared + len(alone), alone)
            shared *= 2
    finally:
        units.unpersist()


def _unit(plan: AnyPlan) -> list[Column]:
    return [*(column(name) for name in group_key(plan)), sf.col(SHARD)]


def _hash(plan: AnyPlan) -> Column:
    """A unit as one long: what is compared instead of the group's columns."""
    return sf.xxhash64(*_unit(plan))


def _shared(plan: AnyPlan, cut: Cut, partitions: int) -> Column:
    """A unit's partition among those that units share: its group's hash, and from there one on for each time shard, so
    that a hot group's shards lie as evenly as they can."""
    group = [column(name) for name in group_key(plan)]
    number = sf.pmod(sf.xxhash64(*group), sf.lit(partitions)) if group else sf.lit(0)
    if cut.shards > 1:
        number = sf.pmod(number + sf.col(SHARD), sf.lit(partitions))
    return number.cast("int")


def sharded(plan: AnyPlan, events: DataFrame, cut: Cut) -> DataFrame:
    """The events of the cut's windows with the column `SHARD`; one row for each time shard that needs it."""
    windows, low, high = plan.windows, cut.windows[0], cut.windows[-1]
    if cut.shards == 1:
        return events.where(_between(plan, *windows.span(cut.windows))).withColumn(SHARD, sf.lit(0))
    first, last = _holding(windows, sf.unix_micros(column(plan.schema.event_time)))
    needed = events.where((first <= last) & (last >= low) & (first <= high))
    lowest = _floor_div(sf.greatest(first, sf.lit(low)) - low, cut.size).cast("int")
    if windows.within <= windows.slide:
        return needed.withColumn(SHARD, lowest)  # no two windows hold an event: nothing to make rows of
    highest = _floor_div(sf.least(last, sf.lit(high)) - low, cut.size).cast("int")
    return needed.withColumn(SHARD, sf.explode(sf.sequence(lowest, highest)))


def _between(plan: AnyPlan, start: int, end: int) -> Column:
    """Events of `[start, end)`, microseconds: a condition that Delta and Parquet can look up."""
    time = column(plan.schema.event_time)
    return (time >= sf.timestamp_micros(sf.lit(max(start, BEGINNING)))) & (time < sf.timestamp_micros(sf.lit(end)))


def _holding(windows: Windows, time: Column) -> tuple[Column, Column]:
    """First and last window that hold an event at `time` (microseconds): `Windows.holding` on columns."""
    first = _floor_div(time - sf.lit(windows.origin + windows.within), windows.slide) + 1
    return first, _floor_div(time - sf.lit(windows.origin), windows.slide)


def _floor_div(value: Column, divisor: int) -> Column:
    """Integer division that rounds down; Spark's own rounds to zero, and goes through doubles with `/`."""
    by = sf.lit(divisor)
    return sf.call_function("div", value - sf.pmod(value, by), by)


def placed(plan: AnyPlan, spread: DataFrame, cut: Cut) -> DataFrame:
    """Sharded events with the column `PARTITION`: the number of the partition their unit belongs to."""
    spread, number = _numbered(plan, spread, cut)
    return spread.withColumn(PARTITION, number).drop(OWN)


def _numbered(plan: AnyPlan, spread: DataFrame, cut: Cut) -> tuple[DataFrame, Column]:
    """Sharded events, with the column `OWN` where units have partitions of their own, and their partition's number."""
    number = _shared(plan, cut, cut.partitions - len(cut.alone))
    if not cut.alone:
        return spread, number
    numbers = pa.table(
        {UNIT: cut.alone, OWN: range(cut.partitions - len(cut.alone), cut.partitions)},
        pa.schema({UNIT: "int64", OWN: "int32"}),
    )
    own = sf.broadcast(spread.sparkSession.createDataFrame(numbers))
    joined = spread.withColumn(UNIT, _hash(plan)).join(own, UNIT, "left").drop(UNIT)
    return joined, sf.coalesce(OWN, number)


def distribute(plan: AnyPlan, events: DataFrame, cut: Cut) -> DataFrame:
    """The sharded events as they travel (`pipelines.packing`), each unit whole in one of the cut's partitions.

    The number of the partition is an expression over what travels anyway: a column of it would travel too.
    """
    spread, number = _numbered(plan, sharded(plan, events, cut), cut)
    unneeded = [OWN] if cut.shards > 1 else [OWN, SHARD]
    return packed(plan, spread).repartitionById(cut.partitions, number).drop(*unneeded)


def _too_large(plan: AnyPlan, unit: dict[str, object], cut: Cut, limit: int) -> ShardTooLargeError:
    group = ", ".join(f"{name} = {unit[name]!r}" for name in group_key(plan)) or "the whole stream"
    windows = cut.of(int(str(unit[SHARD])))
    if plan.windows.endless:
        where = f"before {_iso(plan.windows.end(windows[-1]))}, and the pattern asks for all of them"
    else:
        where = f"in the window that starts at {_iso(plan.windows.start(windows[0]))}"
    return ShardTooLargeError(
        f"{group}: {unit['count']} events {where}, more than the {limit} rows a worker may hold",
        hint="raise limits.shard_rows of the profile (and the workers' memory), shorten within, or group by more",
    )


def _iso(micros: int) -> str:
    from pipelines.runs import moment

    return moment(micros).isoformat()
