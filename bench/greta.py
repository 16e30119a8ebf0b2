"""GRETA's own algorithm, compiled: for each event, add the count of every predecessor in the graph (Poppe et al. 2017,
algorithm 2), O(n^2). Vertices are kept by price, as its Vertex Tree does, so that only predecessors are visited.
Counts are those of our tier E: the published 64-bit counts would overflow after 63 events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from trendlake.cep_core.trends.kernels.scaled import e_add

Array = Any


@njit(cache=True)
def falling_prices(level: Array, levels: int) -> tuple[float, float]:
    """Trends of `S+` with falling prices over n events in time order, in tier E; `level` (n): ranks of the prices."""
    n = level.shape[0]
    size = np.zeros(levels, np.int64)
    for i in range(n):
        size[level[i]] += 1
    first = np.zeros(levels + 1, np.int64)
    first[1:] = np.cumsum(size)
    filled = first[:-1].copy()
    m, e = np.zeros(n), np.zeros(n)
    total_m, total_e = 0.0, 0.0
    for i in range(n):
        count_m, count_e = 1.0, 0.0
        for price in range(level[i] + 1, levels):
            for v in range(first[price], filled[price]):
                count_m, count_e = e_add(count_m, count_e, m[v], e[v])
        at = filled[level[i]]
        m[at], e[at] = count_m, count_e
        filled[level[i]] += 1
        total_m, total_e = e_add(total_m, total_e, count_m, count_e)
    return total_m, total_e
