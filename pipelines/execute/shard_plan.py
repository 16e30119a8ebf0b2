"""How a run's events are cut into shards: by group, and by time. These decisions are made without reading the events.

A time shard is a range of consecutive windows with all events they need; an event that several time shards need is
given to each. A group's events of one time shard are a unit: they meet in one worker, where the kernel takes every
window of the shard in one pass. Cutting by time as well as by group is what lets one hot group use the whole cluster.

It is exact: a trend is in one window, a window in one time shard, and a group's results depend on its events only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trendlake.cep_core.plan import Reading

TASKS_PER_CORE = 3
MIN_ROWS = 50_000
"""A worker's start costs more than this many rows: fewer are not spread further."""
SHARE = 20
"""Of a time shard's windows one in so many may be there for its neighbour's events, where each core has one."""
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


@dataclass(frozen=True)
class Part:
    """The part of a reading that one shuffle moves: the events of its cut, in partitions whose numbers begin at
    `first`."""

    reading: Reading
    cut: Cut
    first: int = 0

    @property
    def partitions(self) -> range:
        return range(self.first, self.first + self.cut.partitions)


def likely(reading: Reading, rows: int, windows: range, limit: int, cores: int) -> Cut | None:
    """The cut for `rows` events (at most) made without looking at them, where no worker will get more than `limit`
    unless some units are far larger than others: then the worker reports it, and `choose` counts. None: one unit is
    likely to have more."""
    cut, target = first(reading, rows, windows, limit, cores)
    rows *= copies(reading, cut)
    if rows <= limit:
        return replace(cut, partitions=few(rows, target, cores))
    if not reading.unit_key and rows > cut.shards * limit // SLACK:
        return None
    return replace(cut, partitions=max(-(-rows * SLACK // limit), cores * TASKS_PER_CORE))


def few(rows: int, target: int, cores: int) -> int:
    """Partitions for rows that would fit in one."""
    return max(1, min(-(-rows // target), cores * TASKS_PER_CORE))


def first(reading: Reading, rows: int, windows: range, limit: int, cores: int) -> tuple[Cut, int]:
    """Time shards of a size that keeps every core busy and copies few events; and the rows a partition should have."""
    target = max(min(limit, -(-rows // (cores * TASKS_PER_CORE))), min(MIN_ROWS, limit))
    shared = reading.windows.overlap - 1
    most = len(windows) // (shared * SHARE) if shared else len(windows)
    most = max(1, min(max(most, cores), len(windows) // (shared + 1)))
    return Cut(windows, -(-len(windows) // max(1, min(most, -(-rows // target))))), target


def copies(reading: Reading, cut: Cut) -> int:
    """The most time shards that need an event: one that lasts may need all."""
    if reading.interval_start is not None:
        return cut.shards
    return min(cut.shards, -(-(reading.windows.overlap - 1) // cut.size) + 1)
