"""The fast kernels: any match, no NOT, no extrema, numbers in tier E. What `trends.run` computes, with less around it.

`linear`: no adjacent condition at all. A state's partial trends are one running total (COGRA: state per type, not per
event), so an event costs its transitions and nothing else.

`ordered`: predecessors by running totals and by ranks. Ranks are kept in a tree of blocks of 32 sums: level 0 holds
the rank's own sum, each node above the sum of a block below. A prefix is at most 31 nodes of each level, next to each
other in memory, so that it is added in vector registers. A block whose sums have one exponent is added as plain
float64; one with several goes number by number (small and large lineages stand side by side at no loss).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.kernels.numbers import BIG, DOWN, SMALL, e_add, e_multiply, e_normal

Array = Any

WIDTH = 32
SHIFT = 5


@njit(cache=True, nogil=True, inline="always")
def _accumulate(m: Array, e: Array, i: int, m2: float, e2: float) -> None:
    """(m, e)[i] += (m2, e2), both not negative in the common case of one exponent."""
    if e[i] == e2:
        s = m[i] + m2
        if SMALL <= abs(s) < BIG:
            m[i] = s
            return
    m[i], e[i] = e_add(m[i], e[i], m2, e2)


@njit(cache=True, nogil=True)
def linear_count(
    lo: Array, hi: Array, time: Array, ok: Array, states_of: Array, states: Array, begins: Array, into_of: Array,
    into: Array, ends: Array, out: Array, hit: Array,
) -> None:  # fmt: skip
    """`linear` where trends are counted and nothing else, and no two events of a task share a time."""
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


@njit(cache=True, nogil=True)
def linear(
    lo: Array, hi: Array, time: Array, ok: Array,  # T tasks of n events
    states_of: Array, states: Array,               # by variable: ranges into the list of its states
    begins: Array, into_of: Array, into: Array,    # S; S+1 ranges into the list of sources
    ends: Array,                                   # S: a trend may end here
    weight_variable: Array, weights: Array,        # K; (K, n)
    variable: Array, out: Array, hit: Array,       # S; (T, K, 2); T
) -> None:  # fmt: skip
    """Sums per task, in tier E, of an automaton without adjacent conditions."""
    count, numbers = variable.shape[0], out.shape[1]
    variables = states_of.shape[0] - 1
    total_m, total_e = np.zeros(count * numbers), np.zeros(count * numbers)
    fresh_m, fresh_e = np.zeros(count * numbers), np.zeros(count * numbers)
    alive = np.zeros(count, np.bool_)
    born = np.zeros(count, np.bool_)
    end_m, end_e = np.zeros(numbers), np.zeros(numbers)
    row_m, row_e = np.zeros(numbers), np.zeros(numbers)
    for task in range(lo.shape[0]):
        total_m[:] = 0.0
        total_e[:] = 0.0
        alive[:] = False
        i = lo[task]
        while i < hi[task]:
            j = i + 1
            while j < hi[task] and time[j] == time[i]:
                j += 1
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        reached = begins[q]
                        for k in range(numbers):
                            row_m[k] = 0.0
                            row_e[k] = 0.0
                        if reached:
                            row_m[0] = 1.0
                        for t in range(into_of[q], into_of[q + 1]):
                            p = into[t]
                            if alive[p]:
                                reached = True
                                for k in range(numbers):
                                    _accumulate(row_m, row_e, k, total_m[p * numbers + k], total_e[p * numbers + k])
                        if not reached:
                            continue
                        for k in range(1, numbers):
                            if weight_variable[k] == b and weights[k, x] != 0.0:
                                wm, we = e_multiply(row_m[0], row_e[0], weights[k, x])
                                _accumulate(row_m, row_e, k, wm, we)
                        born[q] = True
                        for k in range(numbers):
                            _accumulate(fresh_m, fresh_e, q * numbers + k, row_m[k], row_e[k])
            for q in range(count):
                if born[q]:
                    born[q] = False
                    alive[q] = True
                    for k in range(numbers):
                        y = q * numbers + k
                        _accumulate(total_m, total_e, y, fresh_m[y], fresh_e[y])
                        fresh_m[y] = 0.0
                        fresh_e[y] = 0.0
            i = j
        end_m[:] = 0.0
        end_e[:] = 0.0
        for q in range(count):
            if ends[q] and alive[q]:
                hit[task] = True
                for k in range(numbers):
                    _accumulate(end_m, end_e, k, total_m[q * numbers + k], total_e[q * numbers + k])
        for k in range(numbers):
            out[task, k, 0] = end_m[k]
            out[task, k, 1] = end_e[k]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _plain(m: Array, first: int, last: int) -> float:
    """Sum of float64s, free to be added in vector registers."""
    s = 0.0
    for x in range(first, last):
        s += m[x]
    return s


@njit(cache=True, nogil=True)
def _block(m: Array, e: Array, shared: Array, first: int, last: int) -> Any:
    """Sum of nodes first..last-1, all of one block, in tier E."""
    if first == last:
        return 0.0, 0.0
    one = shared[first >> SHIFT]
    if one >= 0.0:
        return e_normal(_plain(m, first, last), one) if one > 0.0 else (_plain(m, first, last), 0.0)
    top = _largest(m, e, first, last)
    high, low = _two(m, e, first, last, top)
    return e_normal(high + low * DOWN * DOWN, top)


@njit(cache=True, nogil=True, fastmath={"reassoc", "nnan"})
def _largest(m: Array, e: Array, first: int, last: int) -> float:
    """The largest exponent of nodes that are not zero."""
    top = -1e300
    for x in range(first, last):
        top = max(top, e[x] if m[x] != 0.0 else -1e300)
    return top


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _two(m: Array, e: Array, first: int, last: int, top: float) -> tuple[float, float]:
    """Sums of the mantissas at the largest exponent and at the one below; what lies lower is nothing beside them."""
    high = low = 0.0
    for x in range(first, last):
        high += m[x] if e[x] == top else 0.0
        low += m[x] if e[x] == top - 1.0 else 0.0
    return high, low


@njit(cache=True, nogil=True)
def ordered_count(
    lo: Array, hi: Array, time: Array, ok: Array, states_of: Array, states: Array, begins: Array, into_of: Array,
    into: Array, ends: Array, store_of: Array, store: Array, rank: Array, limit: Array, seg_v: Array, seg_w: Array,
    roots: Array, height: Array, m: Array, e: Array, shared: Array, used: Array, total_m: Array, total_e: Array,
    out: Array, hit: Array,
) -> None:  # fmt: skip
    """`ordered` where trends are counted and nothing else, and no two events of a task share a time: sums stay in
    registers. Arrays as there, K = 1."""
    count, variables = begins.shape[0], states_of.shape[0] - 1
    row_m, row_e = np.zeros(count), np.zeros(count)
    for task in range(lo.shape[0]):
        end_m, end_e = 0.0, 0.0
        total_m[:] = 0.0
        total_e[:] = 0.0
        marks = 0
        for x in range(lo[task], hi[task]):
            left = ok[x]
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    rm, re = (1.0, 0.0) if begins[q] else (0.0, 0.0)
                    for t in range(into_of[q], into_of[q + 1]):
                        s = into[t, 1]
                        layer, first = store[s, 0], store[s, 1]
                        if layer < 0:
                            rm, re = e_add(rm, re, total_m[first, 0], total_e[first, 0])
                            continue
                        segment = seg_w[layer, x]
                        if segment < 0:
                            continue
                        at = np.int64(limit[layer, x])
                        level = 0
                        while at > 0:
                            low = (at >> SHIFT) << SHIFT
                            if low < at:
                                base = first + roots[segment, level]
                                one = shared[(base + low) >> SHIFT]
                                if one >= 0.0:
                                    sm, se = _plain(m, base + low, base + at), one
                                else:
                                    se = _largest(m, e, base + low, base + at)
                                    high, under = _two(m, e, base + low, base + at, se)
                                    sm = high + under * DOWN * DOWN
                                if se == re:
                                    rm += sm
                                else:
                                    sm, se = e_normal(sm, se)
                                    rm, re = e_add(rm, re, sm, se)
                            at >>= SHIFT
                            level += 1
                    if not SMALL <= rm < BIG:
                        rm, re = e_normal(rm, re)
                    row_m[q], row_e[q] = rm, re
            for b in range(variables):
                if not (left >> np.uint64(b)) & np.uint64(1):
                    continue
                for a in range(states_of[b], states_of[b + 1]):
                    q = states[a]
                    rm, re = row_m[q], row_e[q]
                    if rm == 0.0:
                        continue
                    if ends[q]:
                        hit[task] = True
                        end_m, end_e = e_add(end_m, end_e, rm, re)
                    for s in range(store_of[q], store_of[q + 1]):
                        layer, first = store[s, 0], store[s, 1]
                        if layer < 0:
                            tm, te = e_add(total_m[first, 0], total_e[first, 0], rm, re)
                            total_m[first, 0], total_e[first, 0] = tm, te
                            continue
                        segment = seg_v[layer, x]
                        if segment < 0:
                            continue
                        at = np.int64(rank[layer, x])
                        for level in range(height[segment]):
                            y = first + roots[segment, level] + at
                            if marks < used.shape[0]:
                                used[marks] = y
                            marks += 1
                            s2 = m[y] + rm
                            if e[y] == re and s2 < BIG and m[y] != 0.0:
                                m[y] = s2
                            else:
                                _raise(m, e, shared, y, rm, re)
                            at >>= SHIFT
        out[task, 0, 0] = end_m
        out[task, 0, 1] = end_e
        if task + 1 == lo.shape[0]:
            break
        if marks > used.shape[0]:
            m[:] = 0.0
            e[:] = 0.0
            shared[:] = 0.0
        else:
            for z in range(marks):
                y = np.int64(used[z])
                m[y] = 0.0
                e[y] = 0.0
                shared[y >> SHIFT] = 0.0


@njit(cache=True, nogil=True)
def ordered(
    lo: Array, hi: Array, time: Array, ok: Array,
    states_of: Array, states: Array, begins: Array,
    into_of: Array, into: Array,                   # S+1 ranges; rows: source, store
    ends: Array, store_of: Array, store: Array,    # S+1 ranges into stores; store: layer or -1, first tree or total
    rank: Array, limit: Array, seg_v: Array, seg_w: Array,  # (L, n)
    roots: Array, height: Array,                   # per segment: first node of each level, (segments, 7); levels
    weight_variable: Array, weights: Array, variable: Array,
    row_m: Array, row_e: Array, reached: Array,    # (widest tie * S, K); (widest tie * S)
    nodes: int, tree_m: Array, tree_e: Array, shared: Array,  # K * nodes; blocks' shared exponent, -1 several
    used: Array,                                   # nodes touched in a task, to be cleared; all when they are more
    total_m: Array, total_e: Array, alive: Array,  # (totals, K); totals
    out: Array, hit: Array,
) -> None:  # fmt: skip
    """Sums per task, in tier E, of an automaton whose predecessors are prefixes of ranks or running totals."""
    count, numbers = variable.shape[0], out.shape[1]
    variables = states_of.shape[0] - 1
    end_m, end_e = np.zeros(numbers), np.zeros(numbers)
    for task in range(lo.shape[0]):
        end_m[:] = 0.0
        end_e[:] = 0.0
        total_m[:] = 0.0
        total_e[:] = 0.0
        alive[:] = False
        marks = 0
        i = lo[task]
        while i < hi[task]:
            j = i + 1
            while j < hi[task] and time[j] == time[i]:
                j += 1
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        may = begins[q]
                        for k in range(numbers):
                            row_m[row, k] = 0.0
                            row_e[row, k] = 0.0
                        if may:
                            row_m[row, 0] = 1.0
                        for t in range(into_of[q], into_of[q + 1]):
                            s = into[t, 1]
                            layer, first = store[s, 0], store[s, 1]
                            if layer < 0:
                                if alive[first]:
                                    may = True
                                    for k in range(numbers):
                                        m, e = e_add(row_m[row, k], row_e[row, k], total_m[first, k], total_e[first, k])
                                        row_m[row, k], row_e[row, k] = m, e
                                continue
                            segment = seg_w[layer, x]
                            at = limit[layer, x]
                            if segment < 0 or at == 0:
                                continue
                            for level in range(height[segment]):
                                low = (at >> SHIFT) << SHIFT
                                base = first + roots[segment, level]
                                if low < at:
                                    for k in range(numbers):
                                        m, e = _block(
                                            tree_m, tree_e, shared, k * nodes + base + low, k * nodes + base + at
                                        )
                                        if m != 0.0:
                                            may = True
                                            m, e = e_add(row_m[row, k], row_e[row, k], m, e)
                                            row_m[row, k], row_e[row, k] = m, e
                                at >>= SHIFT
                        reached[row] = may
                        if may:
                            for k in range(1, numbers):
                                if weight_variable[k] == b and weights[k, x] != 0.0:
                                    m, e = e_multiply(row_m[row, 0], row_e[row, 0], weights[k, x])
                                    row_m[row, k], row_e[row, k] = e_add(row_m[row, k], row_e[row, k], m, e)
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
                            hit[task] = True
                            for k in range(numbers):
                                end_m[k], end_e[k] = e_add(end_m[k], end_e[k], row_m[row, k], row_e[row, k])
                        for s in range(store_of[q], store_of[q + 1]):
                            layer, first = store[s, 0], store[s, 1]
                            if layer < 0:
                                alive[first] = True
                                for k in range(numbers):
                                    m, e = e_add(total_m[first, k], total_e[first, k], row_m[row, k], row_e[row, k])
                                    total_m[first, k], total_e[first, k] = m, e
                                continue
                            segment = seg_v[layer, x]
                            if segment < 0:
                                continue
                            at = rank[layer, x]
                            for level in range(height[segment]):
                                y = first + roots[segment, level] + at
                                if marks < used.shape[0]:
                                    used[marks] = y
                                marks += 1
                                for k in range(numbers):
                                    _raise(tree_m, tree_e, shared, k * nodes + y, row_m[row, k], row_e[row, k])
                                at >>= SHIFT
            i = j
        for k in range(numbers):
            out[task, k, 0] = end_m[k]
            out[task, k, 1] = end_e[k]
            if marks > used.shape[0]:
                tree_m[k * nodes : (k + 1) * nodes] = 0.0
                tree_e[k * nodes : (k + 1) * nodes] = 0.0
                shared[(k * nodes) >> SHIFT : ((k + 1) * nodes) >> SHIFT] = 0.0
                continue
            for z in range(marks):
                y = k * nodes + used[z]
                tree_m[y] = 0.0
                tree_e[y] = 0.0
                shared[y >> SHIFT] = 0.0


@njit(cache=True, nogil=True, inline="always")
def _raise(m: Array, e: Array, shared: Array, y: int, m2: float, e2: float) -> None:
    """Add (m2, e2) to a node, keeping its block's shared exponent true: -1 once two nodes differ."""
    if m2 == 0.0:
        return
    block = y >> SHIFT
    one = shared[block]
    if m[y] == 0.0:
        m[y], e[y] = m2, e2
    elif e[y] == e2 and SMALL <= abs(m[y] + m2) < BIG:
        m[y] += m2
    else:
        m[y], e[y] = e_add(m[y], e[y], m2, e2)
    if one >= 0.0 and e[y] != one:
        alone = True
        for z in range(block << SHIFT, (block + 1) << SHIFT):
            if z != y and m[z] != 0.0:
                alone = False
                break
        shared[block] = e[y] if alone and e[y] >= 0.0 else -1.0
