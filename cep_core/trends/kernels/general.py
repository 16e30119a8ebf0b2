"""The trends kernel: one pass over the events of a (partition, window), in time order.

For each event e and state q that it may take, row(e, q) sums over all partial trends that end with e in q (GRETA
section 4.3, with automaton states for template states and rows for counts):

    row(e, q) = [a trend may begin here] + sum of row(v, p) over transitions p -> q and predecessors v of e

Events of equal time are computed before any of them is inserted, so they never precede one another. Predecessor sums
come from *stores*: Fenwick trees over ranks, one segment an equality value (a running total is a segment of one node);
or from what `divide` has put aside; or by trying every pair, or those that links name.

Sizes: n events sorted by (partition, time); S states; T tasks; G guards; L layers; K numbers a row; M extrema.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.events.array_types import AnyArray, Bools, Float64s, Int32s, Int64s, UInt64s
from cep_core.trends.kernels.divide_and_conquer import conquer, cut, holds
from cep_core.trends.kernels.numbers import add, clear, one, weigh
from cep_core.trends.kernels.pair_predicates import pair_true

NEVER = -(2**63)
"""The bound of a NOT that nothing has matched yet; its counterpart for `after` is 2^63 - 1."""

ANY, NEXT, CONTIGUOUS = 0, 1, 2
"""How predecessors are linked: all earlier ones; those whose next possible event is this time; the event just
before."""


@njit(cache=True)
def bound_of(guards: Int64s, first: int, last: int, bounds: Int64s, w: int) -> Any:
    """The largest bound of guards[first:last] at w; NEVER when there is none."""
    latest: Any = np.int64(NEVER)
    for g in range(first, last):
        latest = max(latest, bounds[guards[g], w])
    return latest


@njit(cache=True, nogil=True)
def run(
    lo: Int64s, hi: Int64s, ws: Int64s, we: Int64s,  # T: events [lo, hi) in the window [ws, we), microseconds
    time: Int64s, ok: UInt64s,                      # n: microseconds; bit b: may be an event of variable b
    variable: Int64s,                             # S: variable of a state
    start_of: Int64s, start_t: Int64s,             # S+1, into start_t: guard ranges (holds0, holds1, fails0, fails1)
    into_of: Int64s, into_t: Int64s,               # S+1, rows: source, store, conditions (4), guard ranges (4), half,
                                                 # ranges of links (4)
    accept_of: Int64s, accept_t: Int64s,           # S+1, rows: holds0, holds1
    guards: Int64s, bounds: Int64s, after: Int64s,  # guard lists; (G, n) latest start of a finished NOT; end of a later
    store_of: Int64s, store_t: Int64s,             # S+1, rows: layer or -1, first node
    rank: Int32s, limit: Int32s, seg_v: Int32s, seg_w: Int32s, seg_base: Int64s,
    seg_size: Int64s,  # L x n; segments flat
    halves: Int64s, divides: Any,                 # see `kernels.divide.conquer`
    predicates: Any,                             # see `kernels.predicates.pair_true`
    linking: int, following: Int64s,              # (links, n): index that the event may be followed at, -1 none
    link_of: Int64s, link_t: Int64s, next_t: Int64s,
    slots: int,  # S+1, a state's leading links; ranges; links of a state
    weight_variable: Int64s, weights: Float64s,      # K: variable or -1; (K, n)
    extreme_variable: Int64s, extremes: Float64s,  # M: variable, -1: set where a trend begins; (M, n), -inf where NULL
    values: AnyArray, ext: Float64s,                   # work: rows of numbers and extrema
    node: AnyArray, node_ext: Float64s, stamp: Int64s,  # work: store nodes
    active: Int64s, active_n: Int64s, head: Int64s, link: Int64s,  # work: (S, events) ; links
    pending: AnyArray, pending_ext: Float64s, waiting: Bools, branch: AnyArray, branch_ext: Float64s,
    branch_stamp: Int64s,
    edges: Int64s,                                # work of `divide`
    keep: bool,                                  # rows of a whole task are kept (scans, bounds, links)
    out: AnyArray, out_ext: Float64s, hit: Bools,      # T results
    emit: Float64s,                                 # n, or empty: extreme 0 of what ends at each event
) -> None:  # fmt: skip
    """Results per task in `out` (sums), `out_ext` (maxima) and `hit` (whether there is a trend)."""
    states = variable.shape[0]
    numbers = out.shape[1]
    extrema = out_ext.shape[1]
    parts = halves.shape[0]
    tick: Any = np.int64(0)
    negative = -np.inf

    for task in range(lo.shape[0]):
        first, last = lo[task], hi[task]
        clear(out, task)
        for m in range(extrema):
            out_ext[task, m] = negative
        hit[task] = False
        tick += 1
        epoch = tick
        done = blocks = 0
        if parts:
            blocks = cut(time, first, last, edges)
            for x in range((last - first) * parts):
                waiting[x] = False
                clear(pending, x)
                for m in range(extrema):
                    pending_ext[x, m] = negative
        for q in range(states):
            active_n[q] = 0
        if linking != ANY:
            for e in range(first, last):
                head[e - first] = -1

        i = first
        while i < last:
            j = i + 1
            while j < last and time[j] == time[i]:
                j += 1
            row0 = first if keep else i
            if parts and done + 1 < blocks and i == edges[done + 1]:
                done += 1
                tick = conquer(
                    halves, divides, edges, done, blocks, first, states, link, values, ext,
                    pending, pending_ext, waiting, branch, branch_ext, branch_stamp, tick,
                )  # fmt: skip

            # 1. what ends with each event of this time
            for e in range(i, j):
                for q in range(states):
                    row = (e - row0) * states + q
                    link[row * slots] = -2
                    if not (ok[e] >> np.uint64(variable[q])) & np.uint64(1):
                        continue
                    clear(values, row)
                    for m in range(extrema):
                        ext[row, m] = negative
                    touched = False
                    for t in range(start_of[q], start_of[q + 1]):
                        may = True
                        for g in range(start_t[t, 0], start_t[t, 1]):
                            may = may and bounds[guards[g], e] < ws[task]
                        for g in range(start_t[t, 2], start_t[t, 3]):
                            may = may and bounds[guards[g], e] >= ws[task]
                        if may:
                            touched = True
                            one(values, row)
                            for m in range(extrema):
                                if extreme_variable[m] == -1:
                                    ext[row, m] = max(ext[row, m], extremes[m, e])
                    for t in range(into_of[q], into_of[q + 1]):
                        p = into_t[t, 0]
                        low = bound_of(guards, into_t[t, 6], into_t[t, 7], bounds, e)
                        store = into_t[t, 1]
                        if linking != ANY:
                            target = e if linking == CONTIGUOUS else i
                            entry = head[target - first]
                            while entry >= 0:
                                h = entry // slots
                                v, source = h // states + first, h % states
                                lead = next_t[into_t[t, 11]]
                                if source == p and time[v] >= low and link_t[link_of[p] + entry % slots, 0] == lead:
                                    may = True
                                    for g in range(into_t[t, 11] + 1, into_t[t, 12]):
                                        may = may and following[next_t[g], v] == target
                                    for g in range(into_t[t, 13], into_t[t, 14]):
                                        may = may and following[next_t[g], v] != target
                                    for g in range(into_t[t, 8], into_t[t, 9]):
                                        may = may and time[v] < bounds[guards[g], e]
                                    if may and pair_true(predicates, into_t[t, 2:6], v, e):
                                        touched = True
                                        add(values, row, values, h)
                                        for m in range(extrema):
                                            ext[row, m] = max(ext[row, m], ext[h, m])
                                entry = link[entry]
                        elif into_t[t, 10] >= 0:
                            half = into_t[t, 10]
                            for a in range(active_n[p] - 1, -1, -1):
                                v = active[p, a]
                                if v < edges[done]:
                                    break
                                if holds(divides, halves[half, 1], v, e):
                                    touched = True
                                    h = (v - first) * states + p
                                    add(values, row, values, h)
                                    for m in range(extrema):
                                        ext[row, m] = max(ext[row, m], ext[h, m])
                            x = (e - first) * parts + half
                            if waiting[x]:
                                touched = True
                                add(values, row, pending, x)
                                for m in range(extrema):
                                    ext[row, m] = max(ext[row, m], pending_ext[x, m])
                        elif store < 0:
                            for a in range(active_n[p] - 1, -1, -1):
                                v = active[p, a]
                                if time[v] < low:
                                    break
                                may = True
                                for g in range(into_t[t, 8], into_t[t, 9]):
                                    may = may and time[v] < bounds[guards[g], e]
                                if may and pair_true(predicates, into_t[t, 2:6], v, e):
                                    touched = True
                                    h = (v - first) * states + p
                                    add(values, row, values, h)
                                    for m in range(extrema):
                                        ext[row, m] = max(ext[row, m], ext[h, m])
                        else:
                            layer = store_t[store, 0]
                            at = store_t[store, 1]
                            k: Any = np.int64(1)
                            if layer >= 0:
                                segment = seg_w[layer, e]
                                if segment < 0:
                                    continue
                                at += seg_base[segment]
                                k = limit[layer, e]
                            while k > 0:
                                x = at + k - 1
                                if stamp[x] == epoch:
                                    touched = True
                                    add(values, row, node, x)
                                    for m in range(extrema):
                                        ext[row, m] = max(ext[row, m], node_ext[x, m])
                                k &= k - 1
                    if touched:
                        link[row * slots] = -1
                        for k in range(1, numbers):
                            if weight_variable[k] == variable[q] and weights[k, e] != 0:
                                weigh(values, row, k, weights[k, e])
                        for m in range(extrema):
                            if extreme_variable[m] == variable[q]:
                                ext[row, m] = max(ext[row, m], extremes[m, e])

            # 2. they may precede what comes after
            for e in range(i, j):
                for q in range(states):
                    row = (e - row0) * states + q
                    if link[row * slots] == -2:
                        continue
                    for t in range(accept_of[q], accept_of[q + 1]):
                        may = True
                        for g in range(accept_t[t, 0], accept_t[t, 1]):
                            may = may and after[guards[g], e] >= we[task]
                        if may:
                            hit[task] = True
                            add(out, task, values, row)
                            for m in range(extrema):
                                out_ext[task, m] = max(out_ext[task, m], ext[row, m])
                            if emit.shape[0] > 0:
                                emit[e] = max(emit[e], ext[row, 0])
                            break
                    if linking != ANY:
                        for x in range(link_of[q], link_of[q + 1]):
                            to = following[link_t[x, 0], e]
                            if first <= to < last:
                                entry = row * slots + x - link_of[q]
                                link[entry] = head[to - first]
                                head[to - first] = entry
                        continue
                    if keep:
                        active[q, active_n[q]] = e
                        active_n[q] += 1
                    for store in range(store_of[q], store_of[q + 1]):
                        insert(
                            store_t[store, 1], store_t[store, 0], e, row, rank, seg_v, seg_base, seg_size,
                            values, ext, node, node_ext, stamp, epoch,
                        )  # fmt: skip
            i = j


@njit(cache=True)
def insert(
    at: int, layer: int, v: int, row: int, rank: Int32s, seg_v: Int32s, seg_base: Int64s, seg_size: Int64s,
    values: AnyArray, ext: Float64s, node: AnyArray, node_ext: Float64s, stamp: Int64s, epoch: int,
) -> None:  # fmt: skip
    """Add row (of event v) to the store of class `layer` whose nodes begin at `at`."""
    k: Any = np.int64(1)
    size: Any = np.int64(1)
    if layer >= 0:
        segment = seg_v[layer, v]
        if segment < 0:
            return
        at += seg_base[segment]
        size = seg_size[segment]
        k = np.int64(rank[layer, v]) + 1
    while k <= size:
        x = at + k - 1
        if stamp[x] != epoch:
            stamp[x] = epoch
            clear(node, x)
            for m in range(ext.shape[1]):
                node_ext[x, m] = -np.inf
        add(node, x, values, row)
        for m in range(ext.shape[1]):
            node_ext[x, m] = max(node_ext[x, m], ext[row, m])
        k += k & -k
