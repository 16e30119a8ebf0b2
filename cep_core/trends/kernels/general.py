"""The trends kernel: one pass over the events of a (partition, window), in time order.

For each event e and state q that it may take, row(e, q) sums over all partial trends that end with e in q (GRETA
section 4.3, with automaton states for template states and rows for counts):

    row(e, q) = [a trend may begin here] + sum of row(v, p) over transitions p -> q and predecessors v of e

Events of equal time are computed before any of them is inserted, so they never precede one another. Predecessor sums
are extremum as `predecessors` says.

Sizes: n events sorted by (partition, time); S states; T tasks; G guards; L layers; K numbers a row; M extrema.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import (
    ADDED,
    EACH,
    LATEST,
    SPAN,
    STARTS,
    Events,
    Guards,
    Nfa,
    Predecessors,
    Results,
    Tasks,
    Weights,
    Work,
)
from trendlake.cep_core.trends.kernels.divide_and_conquer import begin, conquer, cut
from trendlake.cep_core.trends.kernels.numbers import add, clear, one, too_large, weigh
from trendlake.cep_core.trends.kernels.predecessors import follow, halved, insert, linked, stored, tried

NEVER = -(2**63)
"""The bound of a NOT that nothing has matched yet; its counterpart for `after` is 2^63 - 1."""

ANY, NEXT, CONTIGUOUS, WHOLE = 0, 1, 2, 3
"""How predecessors are linked: all earlier ones; those whose next possible event is this time; the event just before;
the same, of trends that begin with the first event of a task and end with its last."""


@compiled.part
def bound_of(guards: Int64s, first: int, last: int, bounds: Int64s, w: int) -> Any:
    """The largest bound of guards[first:last] at w; NEVER when there is none."""
    latest: Any = np.int64(NEVER)
    for g in range(first, last):
        latest = max(latest, bounds[guards[g], w])
    return latest


@compiled.inlined
def _start(
    nfa: Nfa, guards: Guards, weights: Weights, work: Work, numbers: int, e: int, q: int, row: int, ws: int, may: bool
) -> bool:
    """Set a row to the trends that begin with event e in state q, if any `may`; whether there are any."""
    clear(work.values, row)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = -np.inf
    begins = False
    if not may:
        return begins
    for t in range(nfa.start_of[q], nfa.start_of[q + 1]):
        may = True
        for g in range(nfa.start[t, c.HOLDS], nfa.start[t, c.HOLDS_END]):
            may = may and guards.bounds[guards.lists[g], e] < ws
        for g in range(nfa.start[t, c.FAILS], nfa.start[t, c.FAILS_END]):
            may = may and guards.bounds[guards.lists[g], e] >= ws
        if may:
            begins = True
            one(work.values, row)
            for m in range(work.ext.shape[1]):
                if weights.how[m] == ADDED:
                    work.ext[row, m] = 0.0
                elif weights.extreme[m] == STARTS:
                    work.ext[row, m] = max(work.ext[row, m], weights.extremes[m, e])
    if begins:
        for k in range(1, numbers):
            if weights.variable[k] == SPAN and weights.weights[k, e] != 0:
                weigh(work.values, row, k, work.values, row, -weights.weights[k, e])
    return begins


@compiled.inlined
def _weigh(weights: Weights, work: Work, numbers: int, e: int, variable: int, row: int) -> None:
    """Add event e to the aggregates of a row."""
    for k in range(1, numbers):
        if (weights.variable[k] == variable or weights.variable[k] == EACH) and weights.weights[k, e] != 0:
            weigh(work.values, row, k, work.values, row, weights.weights[k, e])
    for m in range(work.ext.shape[1]):
        if weights.extreme[m] == variable or weights.extreme[m] == EACH:
            if weights.how[m] == ADDED:
                work.ext[row, m] += weights.extremes[m, e]
            else:
                work.ext[row, m] = max(work.ext[row, m], weights.extremes[m, e])


@compiled.inlined
def _end(
    nfa: Nfa,
    guards: Guards,
    weights: Weights,
    work: Work,
    results: Results,
    task: int,
    e: int,
    q: int,
    row: int,
    we: int,
) -> None:
    """Add a row to the results, if trends may end in state q."""
    for t in range(nfa.accept_of[q], nfa.accept_of[q + 1]):
        may = True
        for g in range(nfa.accept[t, c.HOLDS], nfa.accept[t, c.HOLDS_END]):
            may = may and guards.after[guards.lists[g], e] >= we
        if may:
            results.hit[task] = True
            add(results.sums, task, work.values, row)
            for k in range(1, results.sums.shape[1]):
                if weights.variable[k] == SPAN and weights.weights[k, e] != 0:
                    weigh(results.sums, task, k, work.values, row, weights.weights[k, e])
            for m in range(work.ext.shape[1]):
                extremum = work.ext[row, m]
                if weights.how[m] == LATEST:
                    extremum -= weights.extremes[m, e]
                results.extremes[task, m] = max(results.extremes[task, m], extremum)
            if results.emit.shape[0] > 0:
                results.emit[e] = max(results.emit[e], work.ext[row, 0])
            break


@compiled.entry
def run(
    tasks: Tasks,
    events: Events,
    nfa: Nfa,
    guards: Guards,
    predecessors: Predecessors,
    weights: Weights,
    work: Work,
    linking: int,
    keep: bool,
    results: Results,
) -> None:
    """Fill `results`; `large` where tier F gave up. `linking`: ANY, NEXT, CONTIGUOUS or WHOLE. `keep`: whether the rows
    of a whole task are kept, for scans, bounds and links."""
    tasks, events, nfa, guards = borrowed(tasks), borrowed(events), borrowed(nfa), borrowed(guards)
    ranks, ranges, fenwick, halves, divides, predicates, links = borrowed(predecessors)
    weights, work, results = borrowed(weights), borrowed(work), borrowed(results)
    time, ok, states, parts = events.time, events.ok, nfa.variable.shape[0], halves.halves.shape[0]
    numbers, extrema, reaches = results.sums.shape[1], results.extremes.shape[1], results.reach.shape[0] > 0
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
            begin(halves, divides, first, last, blocks)
            for x in range((last - first) * parts):
                halves.waiting[x] = False
                clear(halves.pending, x)
                for m in range(extrema):
                    halves.pending_ext[x, m] = -np.inf
        for q in range(states):
            work.active_n[q] = 0
        if linking != ANY:
            for e in range(first, last):
                work.head[e - first] = -1

        i = first
        while i < last and not results.large[task]:
            j = i + 1
            while j < last and time[j] == time[i]:
                j += 1
            row0 = first if keep else i
            if parts and done + 1 < blocks and i == halves.edges[done + 1]:
                done += 1
                tick = conquer(halves, divides, work, states, first, done, blocks, tick)

            # 1. what ends with each event of this time
            for e in range(i, j):
                for q in range(states):
                    row = (e - row0) * states + q
                    work.link[row, 0] = -2
                    if not (ok[e] >> np.uint64(nfa.variable[q])) & np.uint64(1):
                        continue
                    may = linking != WHOLE or e == first
                    touched = _start(nfa, guards, weights, work, numbers, e, q, row, ws, may)
                    for t in range(nfa.into_of[q], nfa.into_of[q + 1]):
                        low = bound_of(guards.lists, nfa.into[t, c.HOLDS], nfa.into[t, c.HOLDS_END], guards.bounds, e)
                        if linking != ANY:
                            target = i if linking == NEXT else e
                            more = linked(nfa, guards, links, predicates, time, work, first, target, t, e, row, low)
                        elif nfa.into[t, c.HALF] >= 0:
                            more = halved(nfa, halves, divides, work, first, halves.edges[done], t, e, row)
                        elif nfa.into[t, c.STORE] < 0:
                            more = tried(nfa, guards, predicates, time, work, first, t, e, row, low)
                        else:
                            more = stored(nfa, ranks, ranges, fenwick, work, epoch, nfa.into[t, c.STORE], e, row)
                        touched = touched or more
                    if touched:
                        work.link[row, 0] = -1
                        _weigh(weights, work, numbers, e, nfa.variable[q], row)
                        if too_large(work.values, row) and not reaches:
                            results.large[task] = True

            # 2. they may precede what comes after
            for e in range(i, j):
                for q in range(states):
                    row = (e - row0) * states + q
                    if work.link[row, 0] == -2:
                        continue
                    if reaches:
                        results.reach[e, q] = work.ext[row, 0]
                    if linking != WHOLE or e == last - 1:
                        _end(nfa, guards, weights, work, results, task, e, q, row, we)
                    if linking != ANY:
                        follow(links, work, first, last, e, q, row)
                        continue
                    if keep:
                        work.active[q, work.active_n[q]] = e
                        work.active_n[q] += 1
                    insert(nfa, ranks, ranges, fenwick, work, epoch, e, q, row)
            i = j
