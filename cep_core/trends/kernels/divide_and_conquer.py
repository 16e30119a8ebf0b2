"""Divide and conquer over time: predecessors under two inequalities, in O(n log^2 n).

The events of a task are cut into blocks of about `BLOCK`. Two events of different blocks part at exactly one place of
the binary tree over the blocks: v in its left half, w in its right half, and both halves known once the left one is
done. There, in the order of the first inequality, the v's are put into a Fenwick tree over the ranks of the second
one, and each w asks it for a prefix. The sum for w waits in `pending` until w's own turn. Pairs within a block are
tried one by one.

Exact: every pair (v, w) of different blocks meets once, at the place named, and is counted there exactly when its
segments agree and both ranks are below the limits. Blocks begin with a time of their own, so v is earlier than w.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Divides, Halves, Work
from trendlake.cep_core.trends.kernels.numbers import add, clear

BLOCK = 64


@compiled.part
def cut(time: Int64s, first: int, last: int, edges: Int64s) -> int:
    """Write where blocks of the events [first, last) begin, and `last` after them; how many blocks there are."""
    count = 0
    edges[0] = first
    for x in range(first, last):
        if x - edges[count] >= BLOCK and time[x] != time[x - 1]:
            count += 1
            edges[count] = x
    edges[count + 1] = last
    return count + 1


@compiled.part
def holds(divides: Divides, d: int, v: int, w: int) -> bool:
    """Whether the conditions of divide d are true of (v, w)."""
    rank, limit, seg_v, seg_w = divides.rank, divides.limit, divides.seg_v, divides.seg_w
    return bool(
        seg_v[d, v] == seg_w[d, w]
        and seg_v[d, v] >= 0
        and rank[0, d, v] < limit[0, d, w]
        and rank[1, d, v] < limit[1, d, w]
    )


@compiled.part
def conquer(
    halves_: Halves, divides_: Divides, work_: Work, states: int, first: int, done: int, blocks: int, tick: int
) -> int:
    """After the first `done` of `blocks`: what the last of them, as a left half, gives to its right half. `work`: rows
    of the events from `first` on. The tick used."""
    halves, work = borrowed(halves_), borrowed(work_)
    rank, limit, seg_v, seg_w, _ = borrowed(divides_)
    values, ext, edges, count = work.values, work.ext, halves.edges, halves.halves.shape[0]
    node, node_ext, stamp = halves.branch, halves.branch_ext, halves.branch_stamp
    half = done & -done
    left, middle, right = edges[done - half], edges[done], edges[min(done + half, blocks)]
    for h in range(count):
        p, d = halves.halves[h, c.STATE], halves.halves[h, c.DIVIDE]
        givers = np.empty(middle - left, np.int64)
        takers = np.empty(right - middle, np.int64)
        give = take = 0
        for v in range(left, middle):
            if seg_v[d, v] >= 0 and work.link[(v - first) * states + p, 0] != -2:
                givers[give] = v
                give += 1
        for w in range(middle, right):
            if seg_w[d, w] >= 0 and limit[0, d, w] > 0 and limit[1, d, w] > 0:
                takers[take] = w
                take += 1
        if give == 0 or take == 0:
            continue
        givers, takers = givers[:give], takers[:take]
        givers = givers[np.argsort((seg_v[d][givers].astype(np.int64) << 32) + rank[0, d][givers])]
        takers = takers[np.argsort((seg_w[d][takers].astype(np.int64) << 32) + limit[0, d][takers])]
        x = 0
        current = -1
        for y in range(take):
            w = takers[y]
            if seg_w[d, w] != current:
                current = seg_w[d, w]
                tick += 1
                while x < give and seg_v[d, givers[x]] < current:
                    x += 1
            while x < give and seg_v[d, givers[x]] == current and rank[0, d, givers[x]] < limit[0, d, w]:
                v = givers[x]
                put(node, node_ext, stamp, tick, int(rank[1, d, v]), values, ext, (v - first) * states + p)
                x += 1
            row = (w - first) * count + h
            k: Any = np.int64(limit[1, d, w])
            while k > 0:
                if stamp[k - 1] == tick:
                    halves.waiting[row] = True
                    add(halves.pending, row, node, k - 1)
                    for m in range(ext.shape[1]):
                        halves.pending_ext[row, m] = max(halves.pending_ext[row, m], node_ext[k - 1, m])
                k &= k - 1
    return tick


@compiled.part
def put(
    node: AnyArray, node_ext: Float64s, stamp: Int64s, tick: int, rank: int, values: AnyArray, ext: Float64s, row: int
) -> None:
    """Add a row at a rank of a Fenwick tree whose nodes of older ticks are nothing."""
    k: Any = rank + 1
    while k <= stamp.shape[0]:
        x = k - 1
        if stamp[x] != tick:
            stamp[x] = tick
            clear(node, x)
            for m in range(ext.shape[1]):
                node_ext[x, m] = -np.inf
        add(node, x, values, row)
        for m in range(ext.shape[1]):
            node_ext[x, m] = max(node_ext[x, m], ext[row, m])
        k += k & -k
