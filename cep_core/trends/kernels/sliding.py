"""Overlapping windows in one pass: every sum is a vector with a lane for each window that is open.

An event is in `within / slide` windows. Instead of computing each by itself, a row holds all of them side by side: the
predecessors are found once, and their vectors added, in vector registers. All open lanes contain the event; a
lane whose window has ended is read out and cleared before the next event, so that closed lanes are zero.

Rows are (K, lanes) laid flat, lane l of sum k at k * lanes + l: float64 (rows, K * lanes) of tier F, or uint64
(rows, 2, K * lanes) of tier U. Stores are Fenwick trees as in `trends`: each node read or written is a whole vector, so
that few nodes matter more than near ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Bools, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import EACH, Events, Fenwick, Ranks, Results, Steps, Tasks, Weights
from trendlake.cep_core.trends.kernels.numbers import some, u_mul


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


class Lanes(NamedTuple):
    """Work space, rows and nodes of `lanes` windows. `rows`: what ends with an event in a state (widest tie * S), and
    `reached`, whether anything does; `node`: the stores' nodes; `finished` (1): what has ended."""

    rows: AnyArray
    reached: Bools
    node: AnyArray
    finished: AnyArray


@compiled.inlined
def _begin(steps: Steps, work: Lanes, q: int, row: int, oldest: int, newest: int, lanes: int) -> bool:
    """Set a row to the trend that begins in state q, in each of the windows [oldest, newest); whether one may."""
    work.rows[row] = 0
    if steps.begins[q]:
        for task in range(oldest, newest):
            begin_lane(work.rows, row, task % lanes)
    return bool(steps.begins[q])


@compiled.inlined
def _extend(steps: Steps, ranks: Ranks, fenwick: Fenwick, work: Lanes, x: int, q: int, row: int) -> bool:
    """Add to a row all trends that event x in state q goes on with; whether there may be any."""
    may = False
    for t in range(steps.into_of[q], steps.into_of[q + 1]):
        s = steps.into[t]
        layer, at = steps.store[s, c.LAYER], steps.store[s, c.NODE]
        k: Any = np.int64(1)
        if layer >= 0:
            segment = ranks.seg_w[layer, x]
            if segment < 0:
                continue
            at += fenwick.base[segment]
            k = np.int64(ranks.limit[layer, x])
        may = may or k > 0
        while k > 0:
            add_lanes(work.rows, row, work.node, at + k - 1)
            k &= k - 1
    return may


@compiled.inlined
def _insert(steps: Steps, ranks: Ranks, fenwick: Fenwick, work: Lanes, x: int, q: int, row: int) -> None:
    """Put a row of event x into the stores of its state, for the events that come after."""
    for s in range(steps.store_of[q], steps.store_of[q + 1]):
        layer, at = steps.store[s, c.LAYER], steps.store[s, c.NODE]
        size: Any = np.int64(1)
        k: Any = np.int64(1)
        if layer >= 0:
            segment = ranks.seg_v[layer, x]
            if segment < 0:
                continue
            at += fenwick.base[segment]
            size = fenwick.size[segment]
            k = np.int64(ranks.rank[layer, x]) + 1
        while k <= size:
            add_lanes(work.node, at + k - 1, work.rows, row)
            k += k & -k


@compiled.entry
def sliding(
    tasks_: Tasks,
    ends_of: Int64s,
    events_: Events,
    steps_: Steps,
    ranks_: Ranks,
    fenwick_: Fenwick,
    weights_: Weights,
    work_: Lanes,
    lanes: int,
    results_: Results,
) -> None:
    """Sums per task, in `results.sums` and `results.hit`. Tasks by (partition, window), all windows of one length;
    `ends_of` (n): the end of the event's partition."""
    tasks, events, steps, ranks = borrowed(tasks_), borrowed(events_), borrowed(steps_), borrowed(ranks_)
    fenwick, weights, work, results = borrowed(fenwick_), borrowed(weights_), borrowed(work_), borrowed(results_)
    time, ok, states_of, states = events.time, events.ok, steps.states_of, steps.states
    lo, ws, we, rows, reached = tasks.lo, tasks.ws, tasks.we, work.rows, work.reached
    count, variables, numbers = steps.begins.shape[0], states_of.shape[0] - 1, weights.weights.shape[0]
    start = 0
    while start < lo.shape[0]:
        end = ends_of[lo[start]]
        stop = start
        while stop < lo.shape[0] and lo[stop] < end:
            stop += 1
        oldest = newest = start
        i = lo[start]
        while oldest < stop:
            # windows that are over, and those that have begun
            while oldest < newest and (i >= end or we[oldest] <= time[i]):
                _close(tasks, oldest, steps.store, ranks, fenwick, work, numbers, lanes, results)
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

            # 1. what ends with each event of this time
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        may = _begin(steps, work, q, row, oldest, newest, lanes)
                        reached[row] = _extend(steps, ranks, fenwick, work, x, q, row) or may
                        for k in range(1, numbers):
                            adds = weights.variable[k] == b or weights.variable[k] == EACH
                            if adds and weights.weights[k, x] != 0.0:
                                weigh_lanes(rows, row, k, lanes, weights.weights[k, x])

            # 2. it may precede what comes after
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        if reached[row]:
                            if steps.ends[q]:
                                add_lanes(work.finished, 0, rows, row)
                            _insert(steps, ranks, fenwick, work, x, q, row)
            i = j
        start = stop


@compiled.part
def _close(
    tasks_: Tasks,
    task: int,
    store: Int64s,
    ranks_: Ranks,
    fenwick_: Fenwick,
    work_: Lanes,
    numbers: int,
    lanes: int,
    results_: Results,
) -> None:
    """Read out a window and clear its lane: every node where they are few, else those its events have touched."""
    tasks, ranks, fenwick = borrowed(tasks_), borrowed(ranks_), borrowed(fenwick_)
    work, results = borrowed(work_), borrowed(results_)
    lo, hi, lane, node = tasks.lo[task], tasks.hi[task], task % lanes, work.node
    for n in range(numbers):
        read_lane(results.sums, task, n, work.finished, n * lanes + lane)
        work.finished[0, ..., n * lanes + lane] = 0
    results.hit[task] = some(results.sums, task)
    if node.shape[0] <= 4 * (hi - lo):
        for y in range(node.shape[0]):
            for n in range(numbers):
                node[y, ..., n * lanes + lane] = 0
        return
    for s in range(store.shape[0]):
        layer = store[s, c.LAYER]
        for x in range(lo, hi):
            at: Any = store[s, c.NODE]
            k: Any = np.int64(1)
            size: Any = np.int64(1)
            if layer >= 0:
                segment = ranks.seg_v[layer, x]
                if segment < 0:
                    continue
                at += fenwick.base[segment]
                size = fenwick.size[segment]
                k = np.int64(ranks.rank[layer, x]) + 1
            while k <= size:
                for n in range(numbers):
                    node[at + k - 1, ..., n * lanes + lane] = 0
                k += k & -k
            if layer < 0:
                break
