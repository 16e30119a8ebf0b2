"""Sums over ranges of ranks, without subtraction: a segment tree, for several inequalities of one expression.

Of a segment with r ranks, node r + k is rank k and node x holds the sum of nodes 2x and 2x + 1; the nodes of a layer's
segments follow one another, 2r for each. A rank is on the nodes above it (`_climb`). A range low..high - 1 is made of
disjoint nodes, two a level at most (`_span`).

Exact: of the nodes of a range and the nodes above a rank, just one is the same where the rank is in the range, and none
where it is not. So the events of a layer may have the ranks and ask for ranges, or have the ranges and ask for what
holds their rank: what is put into nodes by one of the two ways is met by the other, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.trends.kernels.arguments import Fenwick, Ranges, Ranks, Work
from trendlake.cep_core.trends.kernels.numbers import add, clear


@compiled.inlined
def meet(work: Work, x: int, row: int, puts: bool, epoch: int) -> bool:
    """Add a row to node x, or the node to the row; whether there was anything to add."""
    if puts:
        if work.stamp[x] != epoch:
            work.stamp[x] = epoch
            clear(work.node, x)
            for m in range(work.ext.shape[1]):
                work.node_ext[x, m] = -np.inf
        add(work.node, x, work.values, row)
        for m in range(work.ext.shape[1]):
            work.node_ext[x, m] = max(work.node_ext[x, m], work.ext[row, m])
        return True
    if work.stamp[x] != epoch:
        return False
    add(work.values, row, work.node, x)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = max(work.ext[row, m], work.node_ext[x, m])
    return True


@compiled.part
def _climb(work: Work, first: int, size: int, rank: int, row: int, puts: bool, epoch: int) -> bool:
    """The nodes above a rank."""
    any_node = False
    x = rank + size
    while x > 0:
        any_node |= meet(work, first + x, row, puts, epoch)
        x >>= 1
    return any_node


@compiled.part
def _span(work: Work, first: int, size: int, low: int, high: int, row: int, puts: bool, epoch: int) -> bool:
    """The nodes that a range is made of."""
    any_node = False
    left, right = low + size, high + size
    while left < right:
        if left & 1:
            any_node |= meet(work, first + left, row, puts, epoch)
            left += 1
        if right & 1:
            right -= 1
            any_node |= meet(work, first + right, row, puts, epoch)
        left >>= 1
        right >>= 1
    return any_node


@compiled.part
def ranged(
    ranks: Ranks,
    ranges: Ranges,
    fenwick: Fenwick,
    work: Work,
    epoch: int,
    layer: int,
    first: int,
    segment: int,
    x: int,
    row: int,
    puts: bool,
) -> bool:
    """Put a row of event x into a store of ranges whose nodes begin at `first`, or (not `puts`) add to the row what it
    finds there; whether there is any."""
    first += fenwick.base[segment]
    size: Any = fenwick.size[segment]
    if ranges.of_earlier[layer] == puts:
        low: Any = np.int64(ranges.floor[ranges.row[layer], x])
        high: Any = np.int64(ranks.limit[layer, x])
        return _span(work, first, size, low, high, row, puts, epoch)
    rank: Any = np.int64(ranks.rank[layer, x])
    return _climb(work, first, size, rank, row, puts, epoch)
