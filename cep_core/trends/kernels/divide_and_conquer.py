"""Divide and conquer over time: predecessors under two inequalities, in O(n log^2 n).

The events of a task are cut into blocks of about `BLOCK`. Two events of different blocks part at exactly one place of
the binary tree over the blocks: v in its left half, w in its right half, and both halves known once the left one is
done. There, in the order of the first inequality, the v's are put into a Fenwick tree over the ranks of the second
one, and each w asks it for a prefix. The sum for w waits in `pending` until w's own turn. Pairs within a block are
tried one by one.

Exact: every pair (v, w) of different blocks meets once, at the place named, and is counted there exactly when its
segments agree and both ranks are below the limits. Blocks begin with a time of their own, so v is earlier than w.

Nothing is sorted twice. The w's of a task are sorted once by each limit; a place splits them between its halves and
leaves their order as it is (`_split`). The v's are sorted by block, and the two halves of a place that is done are
merged (`_merge`). So the ranks of the second inequality are those among the v's of the place, and the tree is as small
as it: v's and limits are counted off side by side. A word that is sorted is a rank or a limit, and its event.
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


RANK = 32
"""Bits of the event in a word; the rank or limit is above them."""
EVENT = (1 << RANK) - 1


@compiled.part
def _split(words: Int64s, low: int, middle: int, high: int, spare: Int64s) -> None:
    """Part words[low:high], of events low to high - 1, into those of events below `middle` and the others, each in
    order."""
    left, right = low, 0
    for x in range(low, high):
        word = words[x]
        if word & EVENT < middle:
            words[left] = word
            left += 1
        else:
            spare[right] = word
            right += 1
    words[middle:high] = spare[:right]


@compiled.part
def _merge(words: Int64s, low: int, middle: int, high: int, spare: Int64s) -> None:
    """Merge words[low:middle] and words[middle:high]."""
    count = middle - low
    spare[:count] = words[low:middle]
    x, y, at = 0, middle, low
    while x < count and y < high:
        one, other = spare[x], words[y]
        first = one < other
        words[at] = one if first else other
        x += first
        y += not first
        at += 1
    words[at : at + count - x] = spare[x:count]


@compiled.part
def _enter(halves: Halves, first: int, done: int, half: int, blocks: int) -> None:
    """Split what the places ask whose left half begins with block `done` and is of `half` blocks at most."""
    edges, words = halves.edges, halves.words
    while half > 0:
        if done + half < blocks:
            low, middle = edges[done] - first, edges[done + half] - first
            high = edges[min(done + 2 * half, blocks)] - first
            for d in range(words.shape[0]):
                for one in (c.ASKS_FIRST, c.ASKS_SECOND):
                    _split(words[d, one], low, middle, high, halves.spare)
        half //= 2


@compiled.part
def _sort(words: Int64s, low: int, high: int, spare: Int64s) -> None:
    """Sort words[low:high]."""
    size = 1
    while size < high - low:
        for start in range(low, high - size, 2 * size):
            _merge(words, start, start + size, min(start + 2 * size, high), spare)
        size *= 2


@compiled.part
def begin(halves: Halves, divides: Divides, first: int, last: int, blocks: int) -> None:
    """Write the words of the events [first, last) of a task, and go down to its first block."""
    if blocks == 1:
        return
    for d in range(halves.words.shape[0]):
        for i in range(2):
            has, asks = halves.words[d, c.HAS_FIRST + i], halves.words[d, c.ASKS_FIRST + i]
            for x in range(last - first):
                has[x] = (np.int64(divides.rank[i, d, first + x]) << RANK) | x
                asks[x] = (np.int64(divides.limit[i, d, first + x]) << RANK) | x
            _sort(asks, 0, last - first, halves.spare)
    half = 1
    while half < blocks:
        half *= 2
    _enter(halves, first, 0, half // 2, blocks)


@compiled.part
def _finish(halves: Halves, first: int, done: int, half: int) -> None:
    """Sort the last of the first `done` blocks by what its events have, and merge it with those of its `half`."""
    edges = halves.edges
    low, high = edges[done - 1] - first, edges[done] - first
    for d in range(halves.words.shape[0]):
        for one in (c.HAS_FIRST, c.HAS_SECOND):
            words = halves.words[d, one]
            _sort(words, low, high, halves.spare)
            size = 1
            while size < half:
                start, middle = edges[done - 2 * size] - first, edges[done - size] - first
                _merge(words, start, middle, high, halves.spare)
                size *= 2


@compiled.part
def conquer(
    halves_: Halves, divides_: Divides, work_: Work, states: int, first: int, done: int, blocks: int, tick: int
) -> int:
    """After the first `done` of `blocks`: what the last of them, as a left half, gives to its right half. `work`: rows
    of the events from `first` on. The tick used."""
    halves, divides, work = borrowed(halves_), borrowed(divides_), borrowed(work_)
    values, ext, edges, place = work.values, work.ext, halves.edges, halves.place
    node, node_ext, stamp, count = halves.branch, halves.branch_ext, halves.branch_stamp, halves.halves.shape[0]
    half = done & -done
    _finish(halves, first, done, half)
    left, middle = edges[done - half] - first, edges[done] - first
    right = edges[min(done + half, blocks)] - first
    for h in range(count):
        p, d = halves.halves[h, c.STATE], halves.halves[h, c.DIVIDE]
        seg_v, seg_w = divides.seg_v[d], divides.seg_w[d]
        # the rank of each v among those that give, and of each w how many of them are below its second limit
        has, asks = halves.words[d, c.HAS_SECOND], halves.words[d, c.ASKS_SECOND]
        x, give = left, 0
        for y in range(middle, right):
            asked = asks[y] >> RANK
            while x < middle and has[x] >> RANK < asked:
                v = has[x] & EVENT
                place[v] = -1
                if seg_v[first + v] >= 0 and work.link[v * states + p, 0] != -2:
                    place[v] = give
                    give += 1
                x += 1
            place[asks[y] & EVENT] = give
        if give == 0:
            continue
        while x < middle:  # beyond the limit of each w: not asked for
            place[has[x] & EVENT] = -1
            x += 1
        has, asks = halves.words[d, c.HAS_FIRST], halves.words[d, c.ASKS_FIRST]
        x = left
        current = -1
        for y in range(middle, right):
            w = asks[y] & EVENT
            segment, asked = seg_w[first + w], asks[y] >> RANK
            if segment < 0 or asked == 0:
                continue
            if segment != current:
                current = segment
                tick += 1
                while x < middle and seg_v[first + (has[x] & EVENT)] < current:
                    x += 1
            while x < middle and has[x] >> RANK < asked:
                v = has[x] & EVENT
                if place[v] >= 0:
                    put(node, node_ext, stamp, tick, place[v], give, values, ext, v * states + p)
                x += 1
            row = w * count + h
            k: Any = place[w]
            while k > 0:
                if stamp[k - 1] == tick:
                    halves.waiting[row] = True
                    add(halves.pending, row, node, k - 1)
                    for m in range(ext.shape[1]):
                        halves.pending_ext[row, m] = max(halves.pending_ext[row, m], node_ext[k - 1, m])
                k &= k - 1
    _enter(halves, first, done, half // 2, blocks)
    return tick


@compiled.part
def put(
    node: AnyArray,
    node_ext: Float64s,
    stamp: Int64s,
    tick: int,
    rank: int,
    size: int,
    values: AnyArray,
    ext: Float64s,
    row: int,
) -> None:
    """Add a row at a rank of a Fenwick tree of `size` ranks whose nodes of older ticks are nothing."""
    k: Any = rank + 1
    while k <= size:
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
