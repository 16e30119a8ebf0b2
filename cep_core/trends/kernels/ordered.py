"""The fast kernel: any match, predecessors from running totals, hashes and ordered prefixes, in any tier.

What `trends.run` computes, for the patterns most often written. Rows are kept for the events of one time only; stores
are those of `blocks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.events.array_types import AnyArray, Bools, Float64s, Int32s, Int64s, UInt64s
from cep_core.trends.kernels.numbers import add, clear, one, some, too_large, weigh
from cep_core.trends.kernels.prefix_sums import SHIFT, empty, pull, push


@njit(cache=True, nogil=True)
def ordered(
    lo: Int64s, hi: Int64s, ws: Int64s, we: Int64s,  # T: events [lo, hi) in the window [ws, we), microseconds
    time: Int64s, ok: UInt64s, partition: Int32s,    # n
    states_of: Int64s, states: Int64s,             # by variable: ranges into the list of its states
    start_of: Int64s, start_t: Int64s, into_of: Int64s, into_t: Int64s, accept_of: Int64s,
    accept_t: Int64s,  # see `trends`
    guards: Int64s, bounds: Int64s, after: Int64s,  # guard lists; (G, n), for the first and last event of a trend
    store_of: Int64s, store: Int64s,               # S+1 ranges; rows: layer or -1, first node or total
    rank: Int32s, limit: Int32s, seg_v: Int32s, seg_w: Int32s,    # (L, n)
    roots: Int64s, height: Int64s, width: Int64s,   # by segment: first node of each level; levels; their blocks' widths
    weight_variable: Int64s, weights: Float64s, extreme_variable: Int64s, extremes: Float64s,  # as in `trends.run`
    rows: AnyArray, ext: Float64s, total: AnyArray, total_ext: Float64s, tree: AnyArray, tree_ext: Float64s,  # work
    out: AnyArray, out_ext: Float64s, hit: Bools, large: Bools,  # T results
    emit: Float64s,                                 # n, or empty: extreme 0 of what ends at each event
) -> None:  # fmt: skip
    """Results per task in `out` (sums), `out_ext` (maxima), `hit` (there is a trend), `large` (given up: too large)."""
    count, variables = into_of.shape[0] - 1, states_of.shape[0] - 1
    numbers, extrema = out.shape[1], out_ext.shape[1]
    stores = store.shape[0]
    at = np.zeros(roots.shape[1], np.int64)
    for task in range(lo.shape[0]):
        for s in range(stores):
            if store[s, 0] < 0:
                clear(total, store[s, 1])
                for m in range(extrema):
                    total_ext[store[s, 1], m] = -np.inf
        i = lo[task]
        while i < hi[task] and not large[task]:
            j = i + 1
            while j < hi[task] and time[j] == time[i]:
                j += 1

            # 1. what ends with each event of this time
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        clear(rows, row)
                        for m in range(extrema):
                            ext[row, m] = -np.inf
                        for t in range(start_of[q], start_of[q + 1]):
                            may = True
                            for g in range(start_t[t, 0], start_t[t, 1]):
                                may = may and bounds[guards[g], x] < ws[task]
                            if may:
                                one(rows, row)
                                for m in range(extrema):
                                    if extreme_variable[m] == -1:
                                        ext[row, m] = extremes[m, x]
                        for t in range(into_of[q], into_of[q + 1]):
                            s = into_t[t, 1]
                            layer, first = store[s, 0], store[s, 1]
                            if layer < 0:
                                add(rows, row, total, first)
                                for m in range(extrema):
                                    ext[row, m] = max(ext[row, m], total_ext[first, m])
                                continue
                            segment = seg_w[layer, x]
                            if segment < 0:
                                continue
                            place: Any = np.int64(limit[layer, x])
                            levels = height[segment]
                            for level in range(levels):
                                at[level] = first + roots[segment, level] + place
                                place >>= SHIFT
                            for k in range(numbers):
                                pull(rows, row, k, tree, at, levels)
                            for m in range(extrema):
                                for level in range(levels):
                                    ext[row, m] = max(ext[row, m], tree_ext[m, at[level]])
                        for k in range(1, numbers):
                            if weight_variable[k] == b and weights[k, x] != 0:
                                weigh(rows, row, k, weights[k, x])
                        for m in range(extrema):
                            if extreme_variable[m] == b and some(rows, row):
                                ext[row, m] = max(ext[row, m], extremes[m, x])
                        if too_large(rows, row):
                            large[task] = True

            # 2. it may precede what comes after
            for x in range(i, j):
                for b in range(variables):
                    if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                        continue
                    for a in range(states_of[b], states_of[b + 1]):
                        q = states[a]
                        row = (x - i) * count + q
                        if not some(rows, row):
                            continue
                        for t in range(accept_of[q], accept_of[q + 1]):
                            may = True
                            for g in range(accept_t[t, 0], accept_t[t, 1]):
                                may = may and after[guards[g], x] >= we[task]
                            if may:
                                hit[task] = True
                                add(out, task, rows, row)
                                for m in range(extrema):
                                    out_ext[task, m] = max(out_ext[task, m], ext[row, m])
                                if emit.shape[0] > 0:
                                    emit[x] = max(emit[x], ext[row, 0])
                                break
                        for s in range(store_of[q], store_of[q + 1]):
                            layer, first = store[s, 0], store[s, 1]
                            if layer < 0:
                                add(total, first, rows, row)
                                for m in range(extrema):
                                    total_ext[first, m] = max(total_ext[first, m], ext[row, m])
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
                                for k in range(numbers):
                                    push(tree, k, base, index, wide, rows, row)
                                for m in range(extrema):
                                    for y in range(base + index + 1, base + wide):
                                        tree_ext[m, y] = max(tree_ext[m, y], ext[row, m])
                                place >>= SHIFT
            i = j
        if task + 1 < lo.shape[0] and partition[lo[task + 1]] == partition[lo[task]]:
            for s in range(stores):
                if store[s, 0] >= 0:
                    empty(store[s], lo[task], i, rank, seg_v, roots, height, width, tree, 0.0)
                    empty(store[s], lo[task], i, rank, seg_v, roots, height, width, tree_ext, -np.inf)
