"""The fast kernel: any match, predecessors from running totals, hashes and ordered prefixes, in any tier.

It computes the same as `general`, for the patterns most often written. Rows are kept for the events of one time only;
stores are those of `blocks`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import (
    ADDED,
    EACH,
    LATEST,
    SPAN,
    STARTS,
    Blocks,
    Events,
    Guards,
    Nfa,
    Ranks,
    Results,
    Tasks,
    Weights,
)
from trendlake.cep_core.trends.kernels.numbers import add, clear, one, some, too_large, weigh
from trendlake.cep_core.trends.kernels.prefix_sums import SHIFT, empty, pull, push


class Work(NamedTuple):
    """`rows`, `ext`: what ends with an event in a state, (widest tie * S, K in a tier) and (.., M). `total`,
    `total_ext`: running totals, as many rows as there are. `tree`, `tree_ext`: planes of `prefix_sums`, (K.., nodes)
    and (M, nodes). `at`: (levels)."""

    rows: AnyArray
    ext: Float64s
    total: AnyArray
    total_ext: Float64s
    tree: AnyArray
    tree_ext: Float64s
    at: Int64s


@compiled.inlined
def _start(
    nfa: Nfa, guards: Guards, weights: Weights, work: Work, numbers: int, x: int, q: int, row: int, ws: int
) -> None:
    """Set a row to the trend that begins with event x in state q, if one may."""
    clear(work.rows, row)
    for m in range(work.ext.shape[1]):
        work.ext[row, m] = -np.inf
    for t in range(nfa.start_of[q], nfa.start_of[q + 1]):
        may = True
        for g in range(nfa.start[t, c.HOLDS], nfa.start[t, c.HOLDS_END]):
            may = may and guards.bounds[guards.lists[g], x] < ws
        if may:
            one(work.rows, row)
            for m in range(work.ext.shape[1]):
                if weights.how[m] == ADDED:
                    work.ext[row, m] = 0.0
                elif weights.extreme[m] == STARTS:
                    work.ext[row, m] = weights.extremes[m, x]
    for k in range(1, numbers):
        if weights.variable[k] == SPAN and weights.weights[k, x] != 0 and some(work.rows, row):
            weigh(work.rows, row, k, work.rows, row, -weights.weights[k, x])


@compiled.inlined
def _extend(nfa: Nfa, ranks: Ranks, blocks: Blocks, work: Work, numbers: int, x: int, q: int, row: int) -> None:
    """Add to a row all trends that event x in state q goes on with: a total, or the prefix of a segment."""
    extrema = work.ext.shape[1]
    for t in range(nfa.into_of[q], nfa.into_of[q + 1]):
        s = nfa.into[t, c.STORE]
        layer, first = nfa.store[s, c.LAYER], nfa.store[s, c.NODE]
        if layer < 0:
            add(work.rows, row, work.total, first)
            for m in range(extrema):
                work.ext[row, m] = max(work.ext[row, m], work.total_ext[first, m])
            continue
        segment = ranks.seg_w[layer, x]
        if segment < 0:
            continue
        place: Any = np.int64(ranks.limit[layer, x])
        levels = blocks.height[segment]
        for level in range(levels):
            work.at[level] = first + blocks.roots[segment, level] + place
            place >>= SHIFT
        for k in range(numbers):
            pull(work.rows, row, k, work.tree, work.at, levels)
        for m in range(extrema):
            for level in range(levels):
                work.ext[row, m] = max(work.ext[row, m], work.tree_ext[m, work.at[level]])


@compiled.inlined
def _weigh(weights: Weights, work: Work, numbers: int, x: int, b: int, row: int) -> None:
    """Add event x, of variable b, to the aggregates of a row."""
    for k in range(1, numbers):
        if (weights.variable[k] == b or weights.variable[k] == EACH) and weights.weights[k, x] != 0:
            weigh(work.rows, row, k, work.rows, row, weights.weights[k, x])
    for m in range(work.ext.shape[1]):
        if weights.extreme[m] == b or weights.extreme[m] == EACH:
            if weights.how[m] == ADDED:
                work.ext[row, m] += weights.extremes[m, x]
            elif some(work.rows, row):
                work.ext[row, m] = max(work.ext[row, m], weights.extremes[m, x])


@compiled.inlined
def _end(
    nfa: Nfa,
    guards: Guards,
    weights: Weights,
    work: Work,
    results: Results,
    task: int,
    x: int,
    q: int,
    row: int,
    we: int,
) -> None:
    """Add a row to the results, if trends may end in state q."""
    for t in range(nfa.accept_of[q], nfa.accept_of[q + 1]):
        may = True
        for g in range(nfa.accept[t, c.HOLDS], nfa.accept[t, c.HOLDS_END]):
            may = may and guards.after[guards.lists[g], x] >= we
        if may:
            results.hit[task] = True
            add(results.sums, task, work.rows, row)
            for k in range(1, results.sums.shape[1]):
                if weights.variable[k] == SPAN and weights.weights[k, x] != 0:
                    weigh(results.sums, task, k, work.rows, row, weights.weights[k, x])
            for m in range(work.ext.shape[1]):
                extremum = work.ext[row, m]
                if weights.how[m] == LATEST:
                    extremum -= weights.extremes[m, x]
                results.extremes[task, m] = max(results.extremes[task, m], extremum)
            if results.emit.shape[0] > 0:
                results.emit[x] = max(results.emit[x], work.ext[row, 0])
            break


@compiled.inlined
def _insert(nfa: Nfa, ranks: Ranks, blocks: Blocks, work: Work, numbers: int, x: int, q: int, row: int) -> None:
    """Put a row of event x into the stores of its state, for the events that come after."""
    extrema = work.ext.shape[1]
    for s in range(nfa.store_of[q], nfa.store_of[q + 1]):
        layer, first = nfa.store[s, c.LAYER], nfa.store[s, c.NODE]
        if layer < 0:
            add(work.total, first, work.rows, row)
            for m in range(extrema):
                work.total_ext[first, m] = max(work.total_ext[first, m], work.ext[row, m])
            continue
        segment = ranks.seg_v[layer, x]
        if segment < 0:
            continue
        place: Any = np.int64(ranks.rank[layer, x])
        levels = blocks.height[segment]
        for level in range(levels):
            wide = blocks.width[segment, level]
            index = place if level + 1 == levels else place & (wide - 1)
            base = first + blocks.roots[segment, level] + place - index
            for k in range(numbers):
                push(work.tree, k, base, index, wide, work.rows, row)
            for m in range(extrema):
                for y in range(base + index + 1, base + wide):
                    work.tree_ext[m, y] = max(work.tree_ext[m, y], work.ext[row, m])
            place >>= SHIFT


@compiled.entry
def ordered(
    tasks_: Tasks,
    events_: Events,
    states_of: Int64s,
    states: Int64s,
    nfa_: Nfa,
    guards_: Guards,
    ranks_: Ranks,
    blocks_: Blocks,
    weights_: Weights,
    work_: Work,
    results_: Results,
) -> None:
    """Fill `results`. `states_of`, `states`: by variable, ranges into the list of its states."""
    tasks, events, nfa, guards = borrowed(tasks_), borrowed(events_), borrowed(nfa_), borrowed(guards_)
    ranks, blocks, weights = borrowed(ranks_), borrowed(blocks_), borrowed(weights_)
    work, results = borrowed(work_), borrowed(results_)
    time, ok, store = events.time, events.ok, nfa.store
    count, variables, numbers = nfa.into_of.shape[0] - 1, states_of.shape[0] - 1, results.sums.shape[1]
    reaches = results.reach.shape[0] > 0
    for task in range(tasks.lo.shape[0]):
        for s in range(store.shape[0]):
            if store[s, c.LAYER] < 0:
                clear(work.total, store[s, c.NODE])
                for m in range(work.ext.shape[1]):
                    work.total_ext[store[s, c.NODE], m] = -np.inf
        lo, hi, ws, we = tasks.lo[task], tasks.hi[task], tasks.ws[task], tasks.we[task]
        i = lo
        while i < hi and not results.large[task]:
            j = i + 1
            while j < hi and time[j] == time[i]:
                j += 1

            # 1. what ends with each event of this time
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        _start(nfa, guards, weights, work, numbers, x, q, row, ws)
                        _extend(nfa, ranks, blocks, work, numbers, x, q, row)
                        _weigh(weights, work, numbers, x, b, row)
                        if too_large(work.rows, row) and not reaches:
                            results.large[task] = True

            # 2. it may precede what comes after
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        if some(work.rows, row):
                            if reaches:
                                results.reach[x, q] = work.ext[row, 0]
                            _end(nfa, guards, weights, work, results, task, x, q, row, we)
                            _insert(nfa, ranks, blocks, work, numbers, x, q, row)
            i = j
        if task + 1 < tasks.lo.shape[0] and events.partition[tasks.lo[task + 1]] == events.partition[lo]:
            for s in range(store.shape[0]):
                if store[s, c.LAYER] >= 0:
                    _empty(store[s], lo, i, ranks, blocks, work)


@compiled.inlined
def _empty(store: Int64s, first: int, last: int, ranks: Ranks, blocks: Blocks, work: Work) -> None:
    """Set the nodes of a store to nothing, as far as the events [first, last) were put there."""
    empty(store, first, last, ranks, blocks, work.tree, 0.0)
    empty(store, first, last, ranks, blocks, work.tree_ext, -np.inf)
