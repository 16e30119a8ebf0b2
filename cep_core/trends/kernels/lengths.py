"""Trends of some lengths in one pass: of each state a number for every length so far, side by side in the stores.

A trend that takes an event of a counted variable moves one place on; the last place may hold all that are longer. So
the trends of length k cost no states of their own: the numbers share ranks, searches and memory, and are added in
vector registers.

Numbers of places are float64, whose exponents are wide enough for trends of so few events (`cep_core.trends.run.
length_pass`); the last one is a mantissa with an exponent of its own, of tier E. Stores are Fenwick trees as in
`sliding`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Events, Fenwick, Ranks, Steps, Tasks
from trendlake.cep_core.trends.kernels.prefetch import LINE, prefetch
from trendlake.cep_core.trends.kernels.scaled import STEP_DOWN, e_add, e_normal

AHEAD = 4
"""Events between asking for the memory of one and reading it."""


class Places(NamedTuple):
    """`width` places; the first is of trends with `first` counted events, 0 or 1. `open`: the last has all that are
    longer, too. Counted are places from `shown` on. `counted` (V): variables whose events count."""

    width: int
    first: int
    open: bool
    shown: int
    counted: Bools


class Vectors(NamedTuple):
    """Numbers of places, and after them the exponent of the last, `width + 1` each, laid flat: `rows`, what ends with
    an event in a state (widest tie * S); `node`, the stores' nodes; `sum`, one."""

    rows: Float64s
    node: Float64s
    sum: Float64s


@compiled.inlined
def _add(into: Float64s, i: int, of: Float64s, j: int, last: int) -> None:
    """Add the numbers that begin at of[j] to those at into[i]."""
    for z in range(last):
        into[i + z] += of[j + z]
    m1, e1, m2, e2 = into[i + last], into[i + last + 1], of[j + last], of[j + last + 1]
    keep = 1.0 if e1 >= e2 else (STEP_DOWN if e1 + 1.0 == e2 else 0.0)
    take = 1.0 if e2 >= e1 else (STEP_DOWN if e2 + 1.0 == e1 else 0.0)
    into[i + last] = m1 * keep + m2 * take
    into[i + last + 1] = e1 if e1 >= e2 else e2


@compiled.inlined
def _fetch(steps: Steps, ranks: Ranks, fenwick: Fenwick, node: Float64s, size: int, x: int) -> None:
    """Ask for what event x will read and write."""
    for s in range(steps.store.shape[0]):
        layer = steps.store[s, c.LAYER]
        if layer < 0:
            continue
        segment = ranks.seg_w[layer, x]
        if segment >= 0:
            at = steps.store[s, c.NODE] + fenwick.base[segment]
            k: Any = np.int64(ranks.limit[layer, x])
            while k > 0:
                for line in range(0, size, LINE):
                    prefetch(node, (at + k - 1) * size + line)
                k &= k - 1
        segment = ranks.seg_v[layer, x]
        if segment >= 0:
            at = steps.store[s, c.NODE] + fenwick.base[segment]
            k = np.int64(ranks.rank[layer, x]) + 1
            while k <= fenwick.size[segment]:
                for line in range(0, size, LINE):
                    prefetch(node, (at + k - 1) * size + line)
                k += k & -k


@compiled.inlined
def _fill(
    steps: Steps,
    ranks: Ranks,
    fenwick: Fenwick,
    places: Places,
    vectors: Vectors,
    x: int,
    moves: bool,
    q: int,
    row: int,
) -> bool:
    """Set the numbers at `row` to the trends that end with event x in state q; whether there are any. `moves`: the
    event counts."""
    rows, total, last = vectors.rows, vectors.sum, places.width - 1
    total[:] = 0.0
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
            _add(total, 0, vectors.node, (at + k - 1) * (last + 2), last)
            k &= k - 1
    m, e = e_normal(total[last], total[last + 1])
    if moves:
        if not places.open:
            m, e = 0.0, 0.0
        if last > 0:
            m, e = e_add(m, e, total[last - 1], 0.0)
        for z in range(last - 1, 0, -1):
            total[z] = total[z - 1]
        if last > 0:
            total[0] = 0.0
    if steps.begins[q]:
        z = (1 if moves else 0) - places.first
        if z == last:
            m, e = e_add(m, e, 1.0, 0.0)
        else:
            total[z] += 1.0
    total[last], total[last + 1] = m, e
    some = m > 0.0
    for z in range(last):
        rows[row + z] = total[z]
        some |= total[z] > 0.0
    rows[row + last], rows[row + last + 1] = m, e
    return some


@compiled.inlined
def _insert(
    steps: Steps, ranks: Ranks, fenwick: Fenwick, last: int, vectors: Vectors, x: int, q: int, row: int
) -> None:
    """Put the numbers at `row`, of event x, into the stores of its state, for the events that come after."""
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
            _add(vectors.node, (at + k - 1) * (last + 2), vectors.rows, row, last)
            k += k & -k


@compiled.inlined
def _clear(steps: Steps, ranks: Ranks, fenwick: Fenwick, node: Float64s, width: int, first: int, last: int) -> None:
    """Empty the nodes that the events [first, last) have touched."""
    for s in range(steps.store.shape[0]):
        layer = steps.store[s, c.LAYER]
        if layer < 0:
            at = steps.store[s, c.NODE] * width
            node[at : at + width] = 0.0
            continue
        for x in range(first, last):
            segment = ranks.seg_v[layer, x]
            if segment < 0:
                continue
            at = steps.store[s, c.NODE] + fenwick.base[segment]
            k: Any = np.int64(ranks.rank[layer, x]) + 1
            while k <= fenwick.size[segment]:
                node[(at + k - 1) * width : (at + k) * width] = 0.0
                k += k & -k


@compiled.entry
def of_lengths(
    tasks_: Tasks,
    events_: Events,
    steps_: Steps,
    ranks_: Ranks,
    fenwick_: Fenwick,
    places_: Places,
    vectors_: Vectors,
    out: Float64s,
    hit: Bools,
) -> None:
    """The trends of the shown places per task, in tier E: `out` (T, 1, 2), `hit` (T)."""
    tasks, events, steps = borrowed(tasks_), borrowed(events_), borrowed(steps_)
    ranks, fenwick, places = borrowed(ranks_), borrowed(fenwick_), borrowed(places_)
    vectors = borrowed(vectors_)
    time, ok, states_of, states = events.time, events.ok, steps.states_of, steps.states
    rows, count, variables = vectors.rows, steps.begins.shape[0], states_of.shape[0] - 1
    last = places.width - 1
    width = last + 2
    some = np.zeros(rows.shape[0] // width, np.bool_)
    for task in range(tasks.lo.shape[0]):
        i = tasks.lo[task]
        trends_m, trends_e = 0.0, 0.0
        while i < tasks.hi[task]:
            j = i + 1
            while j < tasks.hi[task] and time[j] == time[i]:
                j += 1
            for x in range(i + AHEAD, min(j + AHEAD, tasks.hi[task])):
                _fetch(steps, ranks, fenwick, vectors.node, width, x)

            # 1. what ends with each event of this time
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        at = (x - i) * count + states[a]
                        moves = places.counted[b]
                        some[at] = _fill(steps, ranks, fenwick, places, vectors, x, moves, states[a], at * width)

            # 2. it may precede what comes after
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        at = (x - i) * count + q
                        if not some[at]:
                            continue
                        if steps.ends[q]:
                            for z in range(places.shown, last):
                                if rows[at * width + z] > 0.0:
                                    trends_m, trends_e = e_add(trends_m, trends_e, rows[at * width + z], 0.0)
                            if rows[at * width + last] > 0.0:
                                m, e = rows[at * width + last], rows[at * width + last + 1]
                                trends_m, trends_e = e_add(trends_m, trends_e, m, e)
                        _insert(steps, ranks, fenwick, last, vectors, x, q, at * width)
            i = j
        out[task, 0, 0] = trends_m
        out[task, 0, 1] = trends_e
        hit[task] = trends_m > 0.0
        _clear(steps, ranks, fenwick, vectors.node, width, tasks.lo[task], tasks.hi[task])
