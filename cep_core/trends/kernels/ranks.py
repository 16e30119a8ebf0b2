"""Ranks of values in their segments, and how many are below a value."""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Codes, Int32s, Int64s


@compiled.entry
def rank_in_segments(
    keys: Int64s, order: Int64s, values: int, at: Int64s, rank: Int32s, base: Int64s, size: Int64s
) -> None:
    """Rank of each key (segment * values + value) among its segment's distinct ones; segments' first node and size."""
    nodes = 0
    for i in range(order.shape[0]):
        key = keys[order[i]]
        segment = key // values
        if i == 0 or key != keys[order[i - 1]]:
            if size[segment] == 0:
                base[segment] = nodes
            size[segment] += 1
            nodes += 1
        rank[at[order[i]]] = size[segment] - 1


@compiled.entry
def count_below(
    keys: Int64s, order: Int64s, values: int, segment: Codes, below: Codes, wanted: Int64s, at: Int64s, limit: Int32s
) -> None:
    """How many distinct values of its segment are below each W-event's own, `wanted` being their order: one merge."""
    x, current, count, last = 0, -1, 0, -1
    for i in range(wanted.shape[0]):
        w = wanted[i]
        if segment[w] != current:
            current = segment[w]
            count = 0
            while x < order.shape[0] and keys[order[x]] < current * values:
                x += 1
            last = -1
        while x < order.shape[0] and keys[order[x]] < current * values + below[w]:
            if keys[order[x]] != last:
                count += 1
                last = keys[order[x]]
            x += 1
        limit[at[w]] = count
