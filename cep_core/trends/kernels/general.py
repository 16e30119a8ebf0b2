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

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s
from cep_core.kernels.uncounted_arrays import borrowed
from cep_core.trends.kernels.arguments import Events, Fenwick, Guards, Nfa, Ranks, Results, Tasks, Weights
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


class Links(NamedTuple):
    """`following` (links, n): the index that an event may be followed at, -1 for none. `link_of` (S + 1): ranges of
    `link`, a state's leading links; `lists`: links of transitions, list after list."""

    following: Int64s
    link_of: Int64s
    link: Int64s
    lists: Int64s


class Halves(NamedTuple):
    """See `divide_and_conquer.conquer`: `halves` and its work space, and `edges`, where blocks begin."""

    halves: Int64s
    pending: AnyArray
    pending_ext: Float64s
    waiting: Bools
    branch: AnyArray
    branch_ext: Float64s
    branch_stamp: Int64s
    edges: Int64s


class Work(NamedTuple):
    """`values`, `ext`: what ends with an event in a state, (events * S + 1, K in a tier) and (.., M). `node`,
    `node_ext`, `stamp`: the stores' nodes. `active` (S, events), `active_n` (S): events with a row. `head` (events),
    `link` (rows * slots): lists of rows by the event that may follow; the first link of a row is -2 where there is no
    trend."""

    values: AnyArray
    ext: Float64s
    node: AnyArray
    node_ext: Float64s
    stamp: Int64s
    active: Int64s
    active_n: Int64s
    head: Int64s
    link: Int64s


class Way(NamedTuple):
    """How predecessors are linked (ANY ..); links of a state; whether the rows of a whole task are kept (for scans,
    bounds and links)."""

    linking: int
    slots: int
    keep: bool


@njit(cache=True, nogil=True, forceinline=True)
def _start(nfa: Nfa, guards: Guards, weights: Weights, work: Work, e: int, q: int, row: int, ws: int) -> bool:
    """Set a row to the trends that begin with event e in state q; whether there are any."""
    clear(work.values, row)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = -np.inf
    begins = False
    for t in range(nfa.start_of[q], nfa.start_of[q + 1]):
        may = True
        for g in range(nfa.start[t, 0], nfa.start[t, 1]):
            may = may and guards.bounds[guards.lists[g], e] < ws
        for g in range(nfa.start[t, 2], nfa.start[t, 3]):
            may = may and guards.bounds[guards.lists[g], e] >= ws
        if may:
            begins = True
            one(work.values, row)
            for m in range(work.ext.shape[1]):
                if weights.extreme[m] == -1:
                    work.ext[row, m] = max(work.ext[row, m], weights.extremes[m, e])
    return begins


@njit(cache=True, nogil=True, forceinline=True)
def _add_row(work: Work, row: int, h: int) -> None:
    """Add row h to another."""
    add(work.values, row, work.values, h)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = max(work.ext[row, m], work.ext[h, m])


@njit(cache=True, nogil=True, forceinline=True)
def _in_bounds(nfa: Nfa, guards: Guards, time: Int64s, t: int, v: int, e: int) -> bool:
    """Whether event v lies before the bound of each guard of transition t that is to fail."""
    may = True
    for g in range(nfa.into[t, 8], nfa.into[t, 9]):
        may = may and time[v] < guards.bounds[guards.lists[g], e]
    return may


@njit(cache=True, nogil=True, forceinline=True)
def _linked(
    nfa: Nfa, guards: Guards, links: Links, predicates: Any, time: Int64s, work: Work, slots: int, first: int,
    target: int, t: int, e: int, row: int, low: int,
) -> bool:  # fmt: skip
    """Add the predecessors that are linked to `target`; whether there are any."""
    states, into, touched = nfa.variable.shape[0], nfa.into, False
    lead = links.lists[into[t, 11]]
    entry = work.head[target - first]
    while entry >= 0:
        h = entry // slots
        v, source = h // states + first, h % states
        if source == into[t, 0] and time[v] >= low and links.link[links.link_of[source] + entry % slots, 0] == lead:
            may = True
            for g in range(into[t, 11] + 1, into[t, 12]):
                may = may and links.following[links.lists[g], v] == target
            for g in range(into[t, 13], into[t, 14]):
                may = may and links.following[links.lists[g], v] != target
            may = may and _in_bounds(nfa, guards, time, t, v, e)
            if may and pair_true(predicates, into[t, 2:6], v, e):
                touched = True
                _add_row(work, row, h)
        entry = work.link[entry]
    return touched


@njit(cache=True, nogil=True, forceinline=True)
def _halved(
    nfa: Nfa, halves: Halves, divides: Any, work: Work, first: int, block: int, t: int, e: int, row: int
) -> bool:
    """Add the predecessors of a divide: pairs of the block that begins at `block`, and what `conquer` has put aside;
    whether there are any."""
    states, p, half, touched = nfa.variable.shape[0], nfa.into[t, 0], nfa.into[t, 10], False
    for a in range(work.active_n[p] - 1, -1, -1):
        v = work.active[p, a]
        if v < block:
            break
        if holds(divides, halves.halves[half, 1], v, e):
            touched = True
            _add_row(work, row, (v - first) * states + p)
    x = (e - first) * halves.halves.shape[0] + half
    if halves.waiting[x]:
        touched = True
        add(work.values, row, halves.pending, x)
        for m in range(work.ext.shape[1]):
            work.ext[row, m] = max(work.ext[row, m], halves.pending_ext[x, m])
    return touched


@njit(cache=True, nogil=True, forceinline=True)
def _tried(
    nfa: Nfa, guards: Guards, predicates: Any, time: Int64s, work: Work, first: int, t: int, e: int, row: int, low: int
) -> bool:
    """Add the predecessors among all earlier events from `low` on, pair by pair; whether there are any."""
    states, p, touched = nfa.variable.shape[0], nfa.into[t, 0], False
    for a in range(work.active_n[p] - 1, -1, -1):
        v = work.active[p, a]
        if time[v] < low:
            break
        if _in_bounds(nfa, guards, time, t, v, e) and pair_true(predicates, nfa.into[t, 2:6], v, e):
            touched = True
            _add_row(work, row, (v - first) * states + p)
    return touched


@njit(cache=True, nogil=True, forceinline=True)
def _stored(nfa: Nfa, ranks: Ranks, fenwick: Fenwick, work: Work, epoch: int, store: int, e: int, row: int) -> bool:
    """Add the prefix of a store, or its total; whether there is any."""
    layer, at, touched = nfa.store[store, 0], nfa.store[store, 1], False
    k: Any = np.int64(1)
    if layer >= 0:
        segment = ranks.seg_w[layer, e]
        if segment < 0:
            return False
        at += fenwick.base[segment]
        k = np.int64(ranks.limit[layer, e])
    while k > 0:
        x = at + k - 1
        if work.stamp[x] == epoch:
            touched = True
            add(work.values, row, work.node, x)
            for m in range(work.ext.shape[1]):
                work.ext[row, m] = max(work.ext[row, m], work.node_ext[x, m])
        k &= k - 1
    return touched


@njit(cache=True, nogil=True, forceinline=True)
def _weigh(weights: Weights, work: Work, numbers: int, e: int, variable: int, row: int) -> None:
    """Add event e to the aggregates of a row."""
    for k in range(1, numbers):
        if weights.variable[k] == variable and weights.weights[k, e] != 0:
            weigh(work.values, row, k, weights.weights[k, e])
    for m in range(work.ext.shape[1]):
        if weights.extreme[m] == variable:
            work.ext[row, m] = max(work.ext[row, m], weights.extremes[m, e])


@njit(cache=True, nogil=True, forceinline=True)
def _end(nfa: Nfa, guards: Guards, work: Work, results: Results, task: int, e: int, q: int, row: int, we: int) -> None:
    """Add a row to the results, if trends may end in state q."""
    for t in range(nfa.accept_of[q], nfa.accept_of[q + 1]):
        may = True
        for g in range(nfa.accept[t, 0], nfa.accept[t, 1]):
            may = may and guards.after[guards.lists[g], e] >= we
        if may:
            results.hit[task] = True
            add(results.sums, task, work.values, row)
            for m in range(work.ext.shape[1]):
                results.extremes[task, m] = max(results.extremes[task, m], work.ext[row, m])
            if results.emit.shape[0] > 0:
                results.emit[e] = max(results.emit[e], work.ext[row, 0])
            break


@njit(cache=True, nogil=True, forceinline=True)
def _insert(nfa: Nfa, ranks: Ranks, fenwick: Fenwick, work: Work, epoch: int, v: int, q: int, row: int) -> None:
    """Add a row of event v to the stores of its state."""
    for store in range(nfa.store_of[q], nfa.store_of[q + 1]):
        layer, at = nfa.store[store, 0], nfa.store[store, 1]
        k: Any = np.int64(1)
        size: Any = np.int64(1)
        if layer >= 0:
            segment = ranks.seg_v[layer, v]
            if segment < 0:
                continue
            at += fenwick.base[segment]
            size = fenwick.size[segment]
            k = np.int64(ranks.rank[layer, v]) + 1
        while k <= size:
            x = at + k - 1
            if work.stamp[x] != epoch:
                work.stamp[x] = epoch
                clear(work.node, x)
                for m in range(work.ext.shape[1]):
                    work.node_ext[x, m] = -np.inf
            add(work.node, x, work.values, row)
            for m in range(work.ext.shape[1]):
                work.node_ext[x, m] = max(work.node_ext[x, m], work.ext[row, m])
            k += k & -k


@njit(cache=True, nogil=True, forceinline=True)
def _follow(links: Links, work: Work, slots: int, first: int, last: int, e: int, q: int, row: int) -> None:
    """Put a row of event e into the lists of the events that may follow it."""
    for x in range(links.link_of[q], links.link_of[q + 1]):
        to = links.following[links.link[x, 0], e]
        if first <= to < last:
            entry = row * slots + x - links.link_of[q]
            work.link[entry] = work.head[to - first]
            work.head[to - first] = entry


@njit(cache=True, nogil=True)
def run(
    tasks: Tasks, events: Events, nfa: Nfa, guards: Guards, ranks: Ranks, fenwick: Fenwick,
    halves: Halves, divides: Any,  # see `divide_and_conquer.conquer`
    predicates: Any,               # see `pair_predicates.pair_true`
    links: Links, weights: Weights, work: Work, way: Way, results: Results,
) -> None:  # fmt: skip
    """Fill `results`; `large` is not used."""
    tasks, events, nfa, guards, ranks = (
        borrowed(tasks), borrowed(events), borrowed(nfa), borrowed(guards), borrowed(ranks)
    )  # fmt: skip
    fenwick, halves, divides, predicates = borrowed(fenwick), borrowed(halves), borrowed(divides), borrowed(predicates)
    links, weights, work, results = borrowed(links), borrowed(weights), borrowed(work), borrowed(results)
    time, ok, states, parts, slots = events.time, events.ok, nfa.variable.shape[0], halves.halves.shape[0], way.slots
    numbers, extrema = results.sums.shape[1], results.extremes.shape[1]
    tick: Any = np.int64(0)

    for task in range(tasks.lo.shape[0]):
        first, last, ws, we = tasks.lo[task], tasks.hi[task], tasks.ws[task], tasks.we[task]
        clear(results.sums, task)
        for m in range(extrema):
            results.extremes[task, m] = -np.inf
        results.hit[task] = False
        tick += 1
        epoch = tick
        done = blocks = 0
        if parts:
            blocks = cut(time, first, last, halves.edges)
            for x in range((last - first) * parts):
                halves.waiting[x] = False
                clear(halves.pending, x)
                for m in range(extrema):
                    halves.pending_ext[x, m] = -np.inf
        for q in range(states):
            work.active_n[q] = 0
        if way.linking != ANY:
            for e in range(first, last):
                work.head[e - first] = -1

        i = first
        while i < last:
            j = i + 1
            while j < last and time[j] == time[i]:
                j += 1
            row0 = first if way.keep else i
            if parts and done + 1 < blocks and i == halves.edges[done + 1]:
                done += 1
                tick = conquer(
                    halves.halves, divides, halves.edges, done, blocks, first, states, work.link, work.values,
                    work.ext, halves.pending, halves.pending_ext, halves.waiting, halves.branch, halves.branch_ext,
                    halves.branch_stamp, tick,
                )  # fmt: skip

            # 1. what ends with each event of this time
            for e in range(i, j):
                for q in range(states):
                    row = (e - row0) * states + q
                    work.link[row * slots] = -2
                    if not (ok[e] >> np.uint64(nfa.variable[q])) & np.uint64(1):
                        continue
                    touched = _start(nfa, guards, weights, work, e, q, row, ws)
                    for t in range(nfa.into_of[q], nfa.into_of[q + 1]):
                        low = bound_of(guards.lists, nfa.into[t, 6], nfa.into[t, 7], guards.bounds, e)
                        if way.linking != ANY:
                            target = e if way.linking == CONTIGUOUS else i
                            more = _linked(
                                nfa, guards, links, predicates, time, work, slots, first, target, t, e, row, low
                            )
                        elif nfa.into[t, 10] >= 0:
                            more = _halved(nfa, halves, divides, work, first, halves.edges[done], t, e, row)
                        elif nfa.into[t, 1] < 0:
                            more = _tried(nfa, guards, predicates, time, work, first, t, e, row, low)
                        else:
                            more = _stored(nfa, ranks, fenwick, work, epoch, nfa.into[t, 1], e, row)
                        touched = touched or more
                    if touched:
                        work.link[row * slots] = -1
                        _weigh(weights, work, numbers, e, nfa.variable[q], row)

            # 2. they may precede what comes after
            for e in range(i, j):
                for q in range(states):
                    row = (e - row0) * states + q
                    if work.link[row * slots] == -2:
                        continue
                    _end(nfa, guards, work, results, task, e, q, row, we)
                    if way.linking != ANY:
                        _follow(links, work, slots, first, last, e, q, row)
                        continue
                    if way.keep:
                        work.active[q, work.active_n[q]] = e
                        work.active_n[q] += 1
                    _insert(nfa, ranks, fenwick, work, epoch, e, q, row)
            i = j
