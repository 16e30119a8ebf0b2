"""Where the event that follows each event stands, for selections that do not skip at will."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Events, Ranks
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates, pair_true


@compiled.entry
def nearest_later(time: Int64s, ends: Int64s, ranks: Ranks, base: Int64s, within: int, out: Int64s) -> None:
    """Lower out[v] (-1: nowhere) to the first position of the time of the nearest later w of v's segment whose limit is
    above v's rank, O(n log n). `ranks`: (n) each, of one layer.

    From the last event to the first, each segment keeps the w's that may be nearest to some v: one with a limit no
    larger than a nearer one's never is. So limits rise with distance, and the nearest that is large enough is found by
    halving."""
    rank, limit, seg_v, seg_w = borrowed(ranks)
    held = np.zeros(base.shape[0], np.int64)
    candidates = np.empty(base[-1], np.int64)
    x = time.shape[0]
    while x > 0:
        i = x - 1
        end = ends[i]
        if x == end:
            held[:] = 0
        while i > 0 and time[i - 1] == time[x - 1] and ends[i - 1] == end:
            i -= 1
        for v in range(i, x):
            segment = seg_v[v]
            if segment < 0 or held[segment] == 0:
                continue
            first = base[segment]
            low, high = -1, held[segment] - 1
            # low: the nearest (highest place) whose limit is above the rank
            bottom = 0
            while bottom <= high:
                middle = (bottom + high) // 2
                if limit[candidates[first + middle]] > rank[v]:
                    low = middle
                    bottom = middle + 1
                else:
                    high = middle - 1
            if low < 0:
                continue
            w = candidates[first + low]
            if time[w] - time[v] < within and (out[v] < 0 or time[w] < time[out[v]]):
                out[v] = w
        for w in range(x - 1, i - 1, -1):
            segment = seg_w[w]
            if segment < 0:
                continue
            first = base[segment]
            while held[segment] > 0 and limit[candidates[first + held[segment] - 1]] <= limit[w]:
                held[segment] -= 1
            candidates[first + held[segment]] = w
            held[segment] += 1
        x = i
    for v in range(time.shape[0]):
        w = out[v]
        while w > 0 and time[w - 1] == time[w] and ends[w - 1] == ends[w]:
            w -= 1
        out[v] = w


@compiled.entry
def first_true(
    events: Events, ends: Int64s, pairs: Int64s, conditions: Int64s, predicates: Predicates, within: int, out: Int64s
) -> None:
    """Lower out[link, v] to the first position of the time of the nearest later event with which one of the link's
    pairs is true."""
    time, ok, _ = borrowed(events)
    predicates = borrowed(predicates)
    for v in range(time.shape[0]):
        for x in range(pairs.shape[0]):
            a, b, link = pairs[x, c.EARLIER], pairs[x, c.LATER], pairs[x, c.LINK]
            if not (ok[v] >> np.uint64(a)) & np.uint64(1):
                continue
            group = v
            for u in range(v + 1, ends[v]):
                if time[u] != time[group]:
                    group = u
                if time[u] - time[v] >= within or (out[link, v] >= 0 and time[u] >= time[out[link, v]]):
                    break
                if time[u] == time[v] or not (ok[u] >> np.uint64(b)) & np.uint64(1):
                    continue
                if pair_true(predicates, conditions[x], v, u):
                    out[link, v] = group
                    break
