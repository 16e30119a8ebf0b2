"""Overlapping windows in one pass: every sum is a vector with a lane for each window that is open.

An event lies in `within / slide` windows. Instead of computing each by itself, a row holds all of them side by side:
the predecessors are found once, and their vectors added, in vector registers. All open lanes contain the event; a
lane whose window has ended is read out and cleared before the next event, so that closed lanes are zero.

Rows are (K, lanes) laid flat, lane l of sum k at k * lanes + l: float64 (rows, K * lanes) of tier F, or uint64
(rows, 2, K * lanes) of tier U. Stores are Fenwick trees as in `trends`: each node read or written is a whole vector, so
that few nodes matter more than near ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from cep_core.events.array_types import AnyArray, Bools, Float64s, Int32s, Int64s, UInt64s
from cep_core.trends.kernels.numbers import some, u_mul


def add_lanes(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
    """a[i] += b[j]"""


def begin_lane(a: AnyArray, i: int, lane: int) -> None:
    """a[i] of sum 0 = 1 in a lane: a trend begins."""


def weigh_lanes(a: AnyArray, i: int, k: int, lanes: int, w: float) -> None:
    """a[i] of sum k += w * a[i] of sum 0"""


def read_lane(out: AnyArray, task: int, k: int, a: AnyArray, lane: int) -> None:
    """out[task][k] = a[0][lane]"""


@overload(add_lanes)
def _add_lanes(a: AnyArray, i: int, b: AnyArray, j: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
            for x in range(a.shape[1]):
                a[i, x] += b[j, x]

        return flat

    def wide(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
        lows, highs, more, most = a[i, 0], a[i, 1], b[j, 0], b[j, 1]
        for x in range(lows.shape[0]):
            low = lows[x] + more[x]
            highs[x] += most[x] + (np.uint64(1) if low < more[x] else np.uint64(0))
            lows[x] = low

    return wide


@overload(begin_lane)
def _begin_lane(a: AnyArray, i: int, lane: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int, lane: int) -> None:
            a[i, lane] = 1.0

        return flat

    def wide(a: AnyArray, i: int, lane: int) -> None:
        a[i, 0, lane] = 1

    return wide


@overload(weigh_lanes)
def _weigh_lanes(a: AnyArray, i: int, k: int, lanes: int, w: float) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int, k: int, lanes: int, w: float) -> None:
            for z in range(lanes):
                a[i, k * lanes + z] += a[i, z] * w

        return flat

    def wide(a: AnyArray, i: int, k: int, lanes: int, w: float) -> None:
        for z in range(lanes):
            low, high = u_mul(a[i, 0, z], a[i, 1, z], np.int64(w))
            total = a[i, 0, k * lanes + z] + low
            a[i, 1, k * lanes + z] += high + (np.uint64(1) if total < low else np.uint64(0))
            a[i, 0, k * lanes + z] = total

    return wide


@overload(read_lane)
def _read_lane(out: AnyArray, task: int, k: int, a: AnyArray, lane: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(out: AnyArray, task: int, k: int, a: AnyArray, lane: int) -> None:
            out[task, k] = a[0, lane]

        return flat

    def wide(out: AnyArray, task: int, k: int, a: AnyArray, lane: int) -> None:
        out[task, k, 0], out[task, k, 1] = a[0, 0, lane], a[0, 1, lane]

    return wide


@njit(cache=True, nogil=True)
def sliding(
    lo: Int64s, hi: Int64s, ws: Int64s, we: Int64s,    # T tasks by (partition, window); all windows of one length
    ends_of: Int64s, time: Int64s, ok: UInt64s,        # n: end of the event's partition
    states_of: Int64s, states: Int64s, begins: Bools, into_of: Int64s, into: Int64s,
    ends: Bools,  # as in `direct.ordered`
    store_of: Int64s, store: Int64s,                 # S+1 ranges; rows: layer or -1, first node
    rank: Int32s, limit: Int32s, seg_v: Int32s, seg_w: Int32s, seg_base: Int64s, seg_size: Int64s,
    weight_variable: Int64s, weights: Float64s, lanes: int,
    rows: AnyArray, reached: Bools,                   # rows, widest tie * S; widest tie * S
    node: AnyArray, finished: AnyArray,                  # rows: nodes; one
    out: AnyArray, hit: Bools,                        # T rows of K numbers; T
) -> None:  # fmt: skip
    """Sums per task."""
    count, variables, numbers = begins.shape[0], states_of.shape[0] - 1, weights.shape[0]
    tasks = lo.shape[0]
    start = 0
    while start < tasks:
        end = ends_of[lo[start]]
        stop = start
        while stop < tasks and lo[stop] < end:
            stop += 1
        oldest = newest = start
        i = lo[start]
        while oldest < stop:
            while oldest < newest and (i >= end or we[oldest] <= time[i]):
                _close(
                    oldest, lo, hi, ok, states_of, states, store_of, store, rank, seg_v, seg_base, seg_size,
                    numbers, lanes, node, finished, out, hit,
                )  # fmt: skip
                oldest += 1
            if oldest == stop:
                break
            if oldest == newest and ws[newest] > time[i]:
                i = lo[newest]
            while newest < stop and ws[newest] <= time[i]:
                newest += 1
            j = i + 1
            while j < end and time[j] == time[i]:
                j += 1
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        may = begins[q]
                        rows[row] = 0
                        if may:
                            for task in range(oldest, newest):
                                begin_lane(rows, row, task % lanes)
                        for t in range(into_of[q], into_of[q + 1]):
                            layer, at = store[into[t, 1], 0], store[into[t, 1], 1]
                            k: Any = np.int64(1)
                            if layer >= 0:
                                segment = seg_w[layer, x]
                                if segment < 0:
                                    continue
                                at += seg_base[segment]
                                k = np.int64(limit[layer, x])
                            may = may or k > 0
                            while k > 0:
                                add_lanes(rows, row, node, at + k - 1)
                                k &= k - 1
                        reached[row] = may
                        for k in range(1, numbers):
                            if weight_variable[k] == b and weights[k, x] != 0.0:
                                weigh_lanes(rows, row, k, lanes, weights[k, x])
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        if not reached[row]:
                            continue
                        if ends[q]:
                            add_lanes(finished, 0, rows, row)
                        for s in range(store_of[q], store_of[q + 1]):
                            layer, at = store[s, 0], store[s, 1]
                            size: Any = np.int64(1)
                            k = np.int64(1)
                            if layer >= 0:
                                segment = seg_v[layer, x]
                                if segment < 0:
                                    continue
                                at += seg_base[segment]
                                size = seg_size[segment]
                                k = np.int64(rank[layer, x]) + 1
                            while k <= size:
                                add_lanes(node, at + k - 1, rows, row)
                                k += k & -k
            i = j
        start = stop


@njit(cache=True, nogil=True)
def _close(
    task: int, lo: Int64s, hi: Int64s, ok: UInt64s, states_of: Int64s, states: Int64s, store_of: Int64s, store: Int64s,
    rank: Int32s, seg_v: Int32s, seg_base: Int64s, seg_size: Int64s, numbers: int, lanes: int,
    node: AnyArray, finished: AnyArray, out: AnyArray, hit: Bools,
) -> None:  # fmt: skip
    """Read out a window and clear its lane: every node where they are few, else those its events have touched."""
    lane = task % lanes
    for n in range(numbers):
        read_lane(out, task, n, finished, n * lanes + lane)
        finished[0, ..., n * lanes + lane] = 0
    hit[task] = some(out, task)
    if node.shape[0] <= 4 * (hi[task] - lo[task]):
        for y in range(node.shape[0]):
            for n in range(numbers):
                node[y, ..., n * lanes + lane] = 0
        return
    for s in range(store.shape[0]):
        layer = store[s, 0]
        for x in range(lo[task], hi[task]):
            at: Any = store[s, 1]
            k: Any = np.int64(1)
            size: Any = np.int64(1)
            if layer >= 0:
                segment = seg_v[layer, x]
                if segment < 0:
                    continue
                at += seg_base[segment]
                size = seg_size[segment]
                k = np.int64(rank[layer, x]) + 1
            while k <= size:
                for n in range(numbers):
                    node[at + k - 1, ..., n * lanes + lane] = 0
                k += k & -k
            if layer < 0:
                break
