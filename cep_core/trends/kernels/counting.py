"""The fastest kernels: trends counted and nothing else, no NOT, no two events of a task at one time. A number stays in
registers from where it is read to where it is added.

`linear`: no adjacent condition at all. A state's partial trends are one running total (COGRA: state per type, not per
event), so an event costs its transitions and nothing else. `plain` and `scaled`: predecessors from running totals and
`blocks`, in tiers F and E.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Blocks, Events, Ranks, Steps, Tasks
from trendlake.cep_core.trends.kernels.numbers import LARGEST
from trendlake.cep_core.trends.kernels.prefetch import fetch, fetch_chain
from trendlake.cep_core.trends.kernels.prefix_sums import SHIFT, empty, raise_block
from trendlake.cep_core.trends.kernels.scaled import BIG, SMALL, STEP_DOWN, e_add, e_normal

AHEAD = 6
"""Events between asking for the memory of one and reading it."""

CACHED = 1 << 13
"""Planes of fewer nodes stay in the cache by themselves."""


@compiled.entry
def linear(tasks_: Tasks, events_: Events, steps_: Steps, out: Float64s, hit: Bools) -> None:
    """Trends per task, in tier E, of an automaton without adjacent conditions; no two events of a task share a time.
    `out` (T, 1, 2), `hit` (T)."""
    tasks, events, steps = borrowed(tasks_), borrowed(events_), borrowed(steps_)
    lo, hi, ok = tasks.lo, tasks.hi, events.ok
    states_of, states, begins, ends = steps.states_of, steps.states, steps.begins, steps.ends
    into_of, into = steps.into_of, steps.into
    count, variables = begins.shape[0], states_of.shape[0] - 1
    m, e = np.zeros(count), np.zeros(count)
    fresh_m, fresh_e = np.zeros(count), np.zeros(count)
    for task in range(lo.shape[0]):
        m[:] = 0.0
        e[:] = 0.0
        for x in range(lo[task], hi[task]):
            left = ok[x]
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    rm, re = (1.0, 0.0) if begins[q] else (0.0, 0.0)
                    for t in range(into_of[q], into_of[q + 1]):
                        p = into[t]
                        if e[p] == re:
                            rm += m[p]
                        else:
                            rm, re = e_add(rm, re, m[p], e[p])
                    fresh_m[q], fresh_e[q] = rm, re
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    if fresh_e[q] == e[q] and m[q] + fresh_m[q] < BIG:
                        m[q] += fresh_m[q]
                    else:
                        fresh_m[q], fresh_e[q] = e_normal(fresh_m[q], fresh_e[q])
                        m[q], e[q] = e_add(m[q], e[q], fresh_m[q], fresh_e[q])
        em, ee = 0.0, 0.0
        for q in range(count):
            if ends[q] and m[q] != 0.0:
                hit[task] = True
                em, ee = e_add(em, ee, m[q], e[q])
        out[task, 0, 0] = em
        out[task, 0, 1] = ee


@compiled.entry
def plain(
    tasks_: Tasks,
    events_: Events,
    steps_: Steps,
    ranks_: Ranks,
    blocks_: Blocks,
    total_: Float64s,
    tree_: Float64s,
    out: Float64s,
    hit: Bools,
    large: Bools,
) -> None:
    """Trends per task in tier F; `large` where it gave up. `total`: running totals; `tree`: nodes; `out` (T, 1); `hit`,
    `large` (T)."""
    tasks, events, steps = borrowed(tasks_), borrowed(events_), borrowed(steps_)
    ranks, blocks = borrowed(ranks_), borrowed(blocks_)
    lo, hi, ok, partition = tasks.lo, tasks.hi, events.ok, events.partition
    states_of, states, begins, ends = steps.states_of, steps.states, steps.begins, steps.ends
    into_of, into, store_of, store = steps.into_of, steps.into, steps.store_of, steps.store
    rank, limit, seg_v, seg_w = ranks
    roots, height, width = blocks
    total, tree = borrowed(total_), borrowed(tree_)
    variables = states_of.shape[0] - 1
    fresh = np.zeros(begins.shape[0])
    kleene = variables == 1 and begins.shape[0] == 1 and begins[0] and ends[0]
    kleene = kleene and into.shape[0] == 1 and store[0, c.LAYER] >= 0
    for task in range(lo.shape[0]):
        total[:] = 0.0
        trends = 0.0
        x: Any = lo[task]
        if kleene:
            layer, first = store[0, c.LAYER], store[0, c.NODE]
            rows = slice(lo[task], hi[task])
            of_task = Ranks(rank[layer, rows], limit[layer, rows], seg_v[layer, rows], seg_w[layer, rows])
            trends = chain(of_task, blocks, tree[first:])
            x = hi[task]
        while x < hi[task] and trends <= LARGEST:
            if tree.shape[0] > CACHED and x + AHEAD < hi[task]:
                fetch(store, x + AHEAD, ranks, roots, tree)
            left = ok[x]
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    value = 1.0 if begins[q] else 0.0
                    for t in range(into_of[q], into_of[q + 1]):
                        s = into[t]
                        layer, first = store[s, c.LAYER], store[s, c.NODE]
                        if layer < 0:
                            value += total[first]
                            continue
                        segment = seg_w[layer, x]
                        if segment < 0:
                            continue
                        place: Any = np.int64(limit[layer, x])
                        for level in range(height[segment]):
                            value += tree[first + roots[segment, level] + place]
                            place >>= SHIFT
                    fresh[q] = value
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    value = fresh[q]
                    if value == 0.0:
                        continue
                    if ends[q]:
                        trends += value
                    elif value > LARGEST:
                        trends = np.inf
                    for s in range(store_of[q], store_of[q + 1]):
                        layer, first = store[s, c.LAYER], store[s, c.NODE]
                        if layer < 0:
                            total[first] += value
                            continue
                        segment = seg_v[layer, x]
                        if segment < 0:
                            continue
                        place = np.int64(rank[layer, x])
                        levels = height[segment]
                        for level in range(levels):
                            wide = width[segment, level]
                            index = place if level + 1 == levels else place & (wide - 1)
                            base = first + roots[segment, level] + place - index
                            block = tree[base : base + wide]
                            for z in range(wide):
                                block[z] += value if z > index else 0.0
                            place >>= SHIFT
            x += 1
        out[task, 0] = trends
        hit[task] = trends > 0.0
        large[task] = trends > LARGEST
        if task + 1 < lo.shape[0] and partition[lo[task + 1]] == partition[lo[task]]:
            for s in range(store.shape[0]):
                if store[s, c.LAYER] >= 0:
                    empty(store[s], lo[task], x, ranks, blocks, tree, 0.0)


@compiled.part
def chain(ranks: Ranks, blocks: Blocks, tree_: Float64s) -> float:
    """`plain` for a task of `S+` with ordered conditions, every event an S: the same steps without the tables. Ends
    early, with what it has, once that is too large. `ranks`: (n) each, of the task."""
    rank, limit, seg_v, seg_w = borrowed(ranks)
    roots, height, width = borrowed(blocks)
    tree = borrowed(tree_)
    total = 0.0
    for x in range(rank.shape[0]):
        value = 1.0
        segment = seg_w[x]
        if segment >= 0:
            place = np.int64(limit[x])
            for level in range(height[segment]):
                value += tree[roots[segment, level] + place]
                place >>= SHIFT
        total += value
        if total > LARGEST:
            break
        segment = seg_v[x]
        if segment < 0:
            continue
        place = np.int64(rank[x])
        levels = height[segment]
        for level in range(levels):
            wide = width[segment, level]
            index = place if level + 1 == levels else place & (wide - 1)
            base = roots[segment, level] + place - index
            block = tree[base : base + wide]
            for z in range(wide):
                block[z] += value if z > index else 0.0
            place >>= SHIFT
    return total


@compiled.part
def scaled_chain(ranks: Ranks, blocks: Blocks, tree_m_: Float64s, tree_e_: Float64s) -> tuple[float, float]:
    """`scaled` for such a task, as `chain`: the same sums in the same order, without the tables, and with the memory of
    two levels asked for before it is read."""
    rank, limit, seg_v, seg_w = borrowed(ranks)
    roots, height, width = borrowed(blocks)
    tree_m, tree_e = borrowed(tree_m_), borrowed(tree_e_)
    total_m, total_e = 0.0, 0.0
    n, far = rank.shape[0], tree_m.shape[0] > CACHED
    for x in range(n):
        if far and x + AHEAD < n:
            y = x + AHEAD
            fetch_chain(seg_w[y], limit[y], seg_v[y], rank[y], roots, height, tree_m, tree_e)
        m, e = 1.0, 0.0
        segment = seg_w[x]
        if segment >= 0:
            place: Any = np.int64(limit[x])
            for level in range(height[segment]):
                y = roots[segment, level] + place
                m2, e2 = tree_m[y], tree_e[y]
                if e2 == e:
                    m += m2
                elif e2 > e:
                    m, e = m2 + (m * STEP_DOWN if e2 - e < 2.0 else 0.0), e2
                elif e - e2 < 2.0:
                    m += m2 * STEP_DOWN
                place >>= SHIFT
            if not SMALL <= m < BIG:
                m, e = e_normal(m, e)
        if e == total_e and total_m + m < BIG:
            total_m += m
        else:
            total_m, total_e = e_add(total_m, total_e, m, e)
        segment = seg_v[x]
        if segment < 0:
            continue
        place = np.int64(rank[x])
        levels = height[segment]
        for level in range(levels):
            wide = width[segment, level]
            index = place if level + 1 == levels else place & (wide - 1)
            base = roots[segment, level] + place - index
            raise_block(tree_m[base : base + wide], tree_e[base : base + wide], index, m, e)
            place >>= SHIFT
    return total_m, total_e


@compiled.entry
def scaled(
    tasks_: Tasks,
    events_: Events,
    steps_: Steps,
    ranks_: Ranks,
    blocks_: Blocks,
    totals: tuple[Float64s, Float64s],
    trees: tuple[Float64s, Float64s],
    out: Float64s,
    hit: Bools,
) -> None:
    """Trends per task in tier E. Arrays as in `plain`, mantissas and exponents apart; `out` (T, 1, 2)."""
    tasks, events, steps = borrowed(tasks_), borrowed(events_), borrowed(steps_)
    ranks, blocks = borrowed(ranks_), borrowed(blocks_)
    lo, hi, ok, partition = tasks.lo, tasks.hi, events.ok, events.partition
    states_of, states, begins, ends = steps.states_of, steps.states, steps.begins, steps.ends
    into_of, into, store_of, store = steps.into_of, steps.into, steps.store_of, steps.store
    rank, limit, seg_v, seg_w = ranks
    roots, height, width = blocks
    total_m, total_e = borrowed(totals)
    tree_m, tree_e = borrowed(trees)
    variables = states_of.shape[0] - 1
    fresh_m, fresh_e = np.zeros(begins.shape[0]), np.zeros(begins.shape[0])
    kleene = variables == 1 and begins.shape[0] == 1 and begins[0] and ends[0]
    kleene = kleene and into.shape[0] == 1 and store[0, c.LAYER] >= 0
    for task in range(lo.shape[0]):
        total_m[:] = 0.0
        total_e[:] = 0.0
        trends_m, trends_e = 0.0, 0.0
        if kleene:
            layer, first = store[0, c.LAYER], store[0, c.NODE]
            rows = slice(lo[task], hi[task])
            of_task = Ranks(rank[layer, rows], limit[layer, rows], seg_v[layer, rows], seg_w[layer, rows])
            trends_m, trends_e = scaled_chain(of_task, blocks, tree_m[first:], tree_e[first:])
        for x in range(hi[task] if kleene else lo[task], hi[task]):
            if tree_m.shape[0] > CACHED and x + AHEAD < hi[task]:
                fetch(store, x + AHEAD, ranks, roots, tree_m)
                fetch(store, x + AHEAD, ranks, roots, tree_e)
            left = ok[x]
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    m, e = (1.0, 0.0) if begins[q] else (0.0, 0.0)
                    for t in range(into_of[q], into_of[q + 1]):
                        s = into[t]
                        layer, first = store[s, c.LAYER], store[s, c.NODE]
                        if layer < 0:
                            m, e = e_add(m, e, total_m[first], total_e[first])
                            continue
                        segment = seg_w[layer, x]
                        if segment < 0:
                            continue
                        place: Any = np.int64(limit[layer, x])
                        for level in range(height[segment]):
                            y = first + roots[segment, level] + place
                            m2, e2 = tree_m[y], tree_e[y]
                            if e2 == e:
                                m += m2
                            elif e2 > e:
                                m, e = m2 + (m * STEP_DOWN if e2 - e < 2.0 else 0.0), e2
                            elif e - e2 < 2.0:
                                m += m2 * STEP_DOWN
                            place >>= SHIFT
                        if not SMALL <= m < BIG:
                            m, e = e_normal(m, e)
                    fresh_m[q], fresh_e[q] = m, e
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    m, e = fresh_m[q], fresh_e[q]
                    if m == 0.0:
                        continue
                    if ends[q]:
                        trends_m, trends_e = e_add(trends_m, trends_e, m, e)
                    for s in range(store_of[q], store_of[q + 1]):
                        layer, first = store[s, c.LAYER], store[s, c.NODE]
                        if layer < 0:
                            total_m[first], total_e[first] = e_add(total_m[first], total_e[first], m, e)
                            continue
                        segment = seg_v[layer, x]
                        if segment < 0:
                            continue
                        place = np.int64(rank[layer, x])
                        levels = height[segment]
                        for level in range(levels):
                            wide = width[segment, level]
                            index = place if level + 1 == levels else place & (wide - 1)
                            base = first + roots[segment, level] + place - index
                            raise_block(tree_m[base : base + wide], tree_e[base : base + wide], index, m, e)
                            place >>= SHIFT
        out[task, 0, 0] = trends_m
        out[task, 0, 1] = trends_e
        hit[task] = trends_m > 0.0
        if task + 1 < lo.shape[0] and partition[lo[task + 1]] == partition[lo[task]]:
            for s in range(store.shape[0]):
                if store[s, c.LAYER] >= 0:
                    empty(store[s], lo[task], hi[task], ranks, blocks, tree_m, 0.0)
                    empty(store[s], lo[task], hi[task], ranks, blocks, tree_e, 0.0)
