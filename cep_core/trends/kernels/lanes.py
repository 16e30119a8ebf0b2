"""Patterns that differ in the conditions on single events only, in one pass: every sum is a vector, a lane a pattern.

The patterns share their transitions, stores and ranks; what differs is which events a variable may bind, a bit for each
lane. A row is made from the stores as for one pattern and then zeroed in the lanes whose pattern does not bind the
event: what is never counted is never stored, so that no lane sees an event of another (Hong 2009, section 5.4, a
channel: here the membership of a tuple is the mask of its event).

Rows are (K, lanes) laid flat, lane l of sum k at k * lanes + l, in float64: of tier F. Stores are Fenwick trees as in
`sliding`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Float64s, UInt64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Events, Fenwick, Ranks, Steps, Tasks, Weights


class Vectors(NamedTuple):
    """`rows`: what ends with an event in a state (widest tie * S, K * lanes); `node`: the stores' nodes; `out`: results
    (T, K * lanes)."""

    rows: Float64s
    node: Float64s
    out: Float64s


@compiled.inlined
def _add(a: Float64s, i: int, b: Float64s, j: int) -> None:
    for x in range(a.shape[1]):
        a[i, x] += b[j, x]


@compiled.inlined
def _fill(
    steps: Steps,
    ranks: Ranks,
    fenwick: Fenwick,
    weights: Weights,
    vectors: Vectors,
    mask: Any,
    lanes: int,
    x: int,
    b: int,
    q: int,
    row: int,
) -> None:
    """Set a row to the trends that end with event x, of variable b, in state q."""
    rows = vectors.rows
    rows[row] = 0.0
    if steps.begins[q]:
        rows[row, :lanes] = 1.0
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
        while k > 0:
            _add(rows, row, vectors.node, at + k - 1)
            k &= k - 1
    for lane in range(lanes):
        if not (mask >> np.uint64(lane)) & np.uint64(1):
            for k in range(lane, rows.shape[1], lanes):
                rows[row, k] = 0.0
    for k in range(1, weights.weights.shape[0]):
        weight = weights.weights[k, x]
        if weights.variable[k] == b and weight != 0.0:
            for lane in range(lanes):
                rows[row, k * lanes + lane] += rows[row, lane] * weight


@compiled.inlined
def _some(rows: Float64s, row: int, lanes: int) -> bool:
    some = False
    for lane in range(lanes):
        some |= rows[row, lane] > 0.0
    return some


@compiled.inlined
def _insert(steps: Steps, ranks: Ranks, fenwick: Fenwick, vectors: Vectors, x: int, q: int, row: int) -> None:
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
            _add(vectors.node, at + k - 1, vectors.rows, row)
            k += k & -k


@compiled.inlined
def _clear(steps: Steps, ranks: Ranks, fenwick: Fenwick, vectors: Vectors, first: int, last: int) -> None:
    """Empty the nodes that the events [first, last) have touched."""
    for s in range(steps.store.shape[0]):
        layer = steps.store[s, c.LAYER]
        if layer < 0:
            vectors.node[steps.store[s, c.NODE]] = 0.0
            continue
        for x in range(first, last):
            segment = ranks.seg_v[layer, x]
            if segment < 0:
                continue
            at = steps.store[s, c.NODE] + fenwick.base[segment]
            k: Any = np.int64(ranks.rank[layer, x]) + 1
            while k <= fenwick.size[segment]:
                vectors.node[at + k - 1] = 0.0
                k += k & -k


@compiled.entry
def in_lanes(
    tasks_: Tasks,
    events_: Events,
    masks: UInt64s,
    steps_: Steps,
    ranks_: Ranks,
    fenwick_: Fenwick,
    weights_: Weights,
    lanes: int,
    vectors_: Vectors,
) -> None:
    """Sums per task, in `out`. Tasks that do not overlap, by (partition, window); `masks` (V, n): the lanes that bind
    an event by each variable."""
    tasks, events, steps, ranks = borrowed(tasks_), borrowed(events_), borrowed(steps_), borrowed(ranks_)
    fenwick, weights, vectors = borrowed(fenwick_), borrowed(weights_), borrowed(vectors_)
    time, ok, states_of, states = events.time, events.ok, steps.states_of, steps.states
    rows, count, variables = vectors.rows, steps.begins.shape[0], states_of.shape[0] - 1
    for task in range(tasks.lo.shape[0]):
        i = tasks.lo[task]
        while i < tasks.hi[task]:
            j = i + 1
            while j < tasks.hi[task] and time[j] == time[i]:
                j += 1

            # 1. what ends with each event of this time
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        row = (x - i) * count + states[a]
                        _fill(steps, ranks, fenwick, weights, vectors, masks[b, x], lanes, x, b, states[a], row)

            # 2. it may precede what comes after
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        if _some(rows, row, lanes):
                            if steps.ends[q]:
                                _add(vectors.out, task, rows, row)
                            _insert(steps, ranks, fenwick, vectors, x, q, row)
            i = j
        _clear(steps, ranks, fenwick, vectors, tasks.lo[task], tasks.hi[task])
