"""Loops over the order of rows: whether it is sorted, where partitions end, how many events tie."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int32s, Int64s


@compiled.entry
def mark_partition_ends(partition: Int32s, ends: Int64s) -> None:
    end = partition.shape[0]
    for i in range(partition.shape[0] - 1, -1, -1):
        if i + 1 < partition.shape[0] and partition[i] != partition[i + 1]:
            end = i + 1
        ends[i] = end


@compiled.entry
def in_order(partition: Int32s, time: Int64s) -> bool:
    for i in range(1, partition.shape[0]):
        if partition[i] < partition[i - 1] or (partition[i] == partition[i - 1] and time[i] < time[i - 1]):
            return False
    return True


@compiled.entry
def falls(time: Int64s) -> int:
    falls = 0
    for i in range(1, time.shape[0]):
        falls += time[i] < time[i - 1]
    return falls


@compiled.entry
def by_partition(partition: Int32s, order: Int64s) -> Int64s:
    """`order` with the rows of each partition together, partitions ascending: counted, not compared."""
    place = np.zeros(partition.max() + 2, np.int64)
    for i in range(partition.shape[0]):
        place[partition[i] + 1] += 1
    for p in range(1, place.shape[0]):
        place[p] += place[p - 1]
    result = np.empty(order.shape[0], np.int64)
    for i in range(order.shape[0]):
        p = partition[order[i]]
        result[place[p]] = order[i]
        place[p] += 1
    return result


@compiled.entry
def counts_up(rows: Int64s) -> bool:
    up = True
    for i in range(rows.shape[0]):
        up = up and rows[i] == i
    return up


@compiled.entry
def longest_tie(time: Int64s, partition: Int32s) -> int:
    """The most events of one partition that share a time."""
    best = run = 0
    for i in range(time.shape[0]):
        run = run + 1 if i and time[i] == time[i - 1] and partition[i] == partition[i - 1] else 1
        best = max(best, run)
    return best
