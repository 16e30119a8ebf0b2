"""Overlapping windows without adjacent conditions: the cost of an event does not grow with the number of its windows.

Without adjacent conditions the events of a stretch of time act on the running totals as a matrix: entry (p, q) is how
many ways lead from total p to total q, total 0 being the constant 1 that trends begin from. A window's answer is the
product of its stretches, and a product of matrices can be cut anywhere: before a fixed moment, where the product is
made backwards, once for all windows that begin there (`front`, one row of it a window); and after it, where it grows
with the events (`back`). When a window begins after the moment, the moment moves to that window's end. So an event is
met twice, once backwards and once forwards (two stacks make a queue).

Events of one time are one factor: none of them precedes another. A product of rows is that of sums over pairs of ways:
counts multiply, and each aggregate is the one's times the other's count. Extrema take the larger of both, or the sum
where they are the largest of sums.

Numbers are pairs: (low, high) of tier U, or (mantissa, exponent) of tier E. They are held in two planes and passed by
value: numba counts the references of every array that a function is given, which here would cost more than the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Bools, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels.arguments import ADDED, EACH, Events, Results, Tasks, Weights
from trendlake.cep_core.trends.kernels.numbers import u_mul, u_wide
from trendlake.cep_core.trends.kernels.scaled import e_add, e_multiply, e_normal

FROM, TO = range(2)
"""Columns of `Edges.edges`: running totals."""


class Edges(NamedTuple):
    """By variable, `ranges` into `edges`. `ends` (S): trends may end in the state."""

    ranges: Int64s
    edges: Int64s
    ends: Bools


class Ways(NamedTuple):
    """Work space, two planes of counts and sums each, and maxima. W = S + 1 totals. `front`, `front_ext` (2, windows
    that begin in one * W, K), (.., M); `way`, `way_ext`, `fresh`, `fresh_ext` (2, W * W, K), (W * W, M)."""

    front: AnyArray
    front_ext: Float64s
    way: AnyArray
    way_ext: Float64s
    fresh: AnyArray
    fresh_ext: Float64s


@compiled.inlined
def _add_event(edges: Edges, weights: Weights, work: Ways, wide: int, b: int, y: int, forwards: bool) -> None:
    """Add to `fresh` the ways that go over event y, of variable b."""
    way, way_ext, fresh, fresh_ext = work.way, work.way_ext, work.fresh, work.fresh_ext
    for edge in range(edges.ranges[b], edges.ranges[b + 1]):
        p, q = edges.edges[edge, FROM], edges.edges[edge, TO]
        for c in range(wide):
            # a way c -> p goes on to q; a way q -> c is reached from p too
            source = c * wide + p if forwards else q * wide + c
            target = c * wide + q if forwards else p * wide + c
            count0, count1 = way[0, source, 0], way[1, source, 0]
            if count0 == 0 and count1 == 0:
                continue
            for k in range(way.shape[2]):
                n0, n1 = way[0, source, k], way[1, source, k]
                adds = weights.variable[k] == b or weights.variable[k] == EACH
                if k > 0 and adds and weights.weights[k, y] != 0:
                    m0, m1 = by(count0, count1, weights.weights[k, y])
                    n0, n1 = plus(n0, n1, m0, m1)
                n0, n1 = plus(n0, n1, fresh[0, target, k], fresh[1, target, k])
                fresh[0, target, k], fresh[1, target, k] = n0, n1
            for m in range(way_ext.shape[1]):
                best = way_ext[source, m]
                if weights.extreme[m] == b or weights.extreme[m] == EACH:
                    if weights.how[m] == ADDED:
                        best += weights.extremes[m, y]
                    else:
                        best = max(best, weights.extremes[m, y])
                fresh_ext[target, m] = max(best, fresh_ext[target, m])


@compiled.inlined
def _merge(work: Ways) -> None:
    """Add `fresh` to `way`, and empty it."""
    way, way_ext, fresh, fresh_ext = work.way, work.way_ext, work.fresh, work.fresh_ext
    for z in range(way.shape[1]):
        for k in range(way.shape[2]):
            if fresh[0, z, k] != 0 or fresh[1, z, k] != 0:
                way[0, z, k], way[1, z, k] = plus(way[0, z, k], way[1, z, k], fresh[0, z, k], fresh[1, z, k])
                fresh[0, z, k] = fresh[1, z, k] = 0
        for m in range(way_ext.shape[1]):
            way_ext[z, m] = max(way_ext[z, m], fresh_ext[z, m])
            fresh_ext[z, m] = -np.inf


@compiled.inlined
def _read_out(edges: Edges, weights: Weights, work: Ways, results: Results, task: int, base: int, wide: int) -> None:
    """The product of both stacks: what leads from the beginning of a window, rows `base` of `front`, to its end."""
    way, way_ext, front, front_ext, out = work.way, work.way_ext, work.front, work.front_ext, results.sums
    for p in range(wide):
        f = base + p
        for q in range(wide - 1):
            z = p * wide + q + 1
            if not edges.ends[q]:
                continue
            if front[0, f, 0] == 0 and front[1, f, 0] == 0:
                continue
            if way[0, z, 0] == 0 and way[1, z, 0] == 0:
                continue
            results.hit[task] = True
            for k in range(way.shape[2]):
                n0, n1 = times(front[0, f, 0], front[1, f, 0], way[0, z, k], way[1, z, k])
                if k > 0:
                    m0, m1 = times(front[0, f, k], front[1, f, k], way[0, z, 0], way[1, z, 0])
                    n0, n1 = plus(n0, n1, m0, m1)
                out[task, k, 0], out[task, k, 1] = plus(out[task, k, 0], out[task, k, 1], n0, n1)
            for m in range(way_ext.shape[1]):
                if weights.how[m] == ADDED:
                    results.extremes[task, m] = max(results.extremes[task, m], front_ext[f, m] + way_ext[z, m])
                else:
                    results.extremes[task, m] = max(results.extremes[task, m], front_ext[f, m], way_ext[z, m])


@compiled.entry
def two_stacks(
    tasks_: Tasks, events_: Events, edges_: Edges, weights_: Weights, work_: Ways, results_: Results
) -> None:
    """Fill `sums`, `extremes` and `hit` of the results. Tasks by (partition, time)."""
    tasks, events, edges = borrowed(tasks_), borrowed(events_), borrowed(edges_)
    weights, work, results = borrowed(weights_), borrowed(work_), borrowed(results_)
    lo, hi, time, ok = tasks.lo, tasks.hi, events.time, events.ok
    wide, variables = edges.ends.shape[0] + 1, edges.ranges.shape[0] - 1
    first = 0
    while first < lo.shape[0]:
        middle = hi[first]
        last = first
        while last < lo.shape[0] and lo[last] < middle and (last - first + 1) * wide <= work.front.shape[1]:
            last += 1
        # backwards from the moment: what leads from the beginning of each window to it;
        # then forwards: what leads from it to the end of each window
        for forwards in (False, True):
            work.way[:] = 0
            work.way_ext[:] = -np.inf
            for p in range(wide):
                work.way[0, p * wide + p, 0] = 1
                for m in range(work.way_ext.shape[1]):
                    if weights.how[m] == ADDED:
                        work.way_ext[p * wide + p, m] = 0.0
            x = middle
            for step in range(last - first):
                task = first + step if forwards else last - 1 - step
                while x < hi[task] if forwards else x > lo[task]:
                    if forwards:
                        i, j = x, x + 1
                        while j < hi[task] and time[j] == time[x]:
                            j += 1
                        x = j
                    else:
                        i, j = x - 1, x
                        while i > lo[task] and time[i - 1] == time[x - 1]:
                            i -= 1
                        x = i
                    for y in range(i, j):
                        for b in range(variables):
                            if (ok[y] >> np.uint64(b)) & np.uint64(1):
                                _add_event(edges, weights, work, wide, b, y, forwards)
                    _merge(work)
                base = (task - first) * wide
                if forwards:
                    _read_out(edges, weights, work, results, task, base, wide)
                else:
                    work.front[:, base : base + wide] = work.way[:, :wide]
                    work.front_ext[base : base + wide] = work.way_ext[:wide]
        first = last


def plus(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    """a + b"""


def by(a0: Any, a1: Any, w: float) -> Any:
    """a * w"""


def times(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    """a * b"""


def _of_tier_e(number: Any) -> bool:
    return isinstance(number, types.Float)


@overload(plus)
def _plus(a0: Any, a1: Any, b0: Any, b1: Any) -> Callable[..., Any]:
    if _of_tier_e(a0):

        def scaled(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
            return e_add(a0, a1, b0, b1)

        return scaled

    def wide(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
        low = a0 + b0
        return low, a1 + b1 + (np.uint64(1) if low < b0 else np.uint64(0))

    return wide


@overload(by)
def _by(a0: Any, a1: Any, w: float) -> Callable[..., Any]:
    if _of_tier_e(a0):

        def scaled(a0: Any, a1: Any, w: float) -> Any:
            return e_multiply(a0, a1, w)

        return scaled

    def wide(a0: Any, a1: Any, w: float) -> Any:
        return u_mul(a0, a1, np.int64(w))

    return wide


@overload(times)
def _times(a0: Any, a1: Any, b0: Any, b1: Any) -> Callable[..., Any]:
    if _of_tier_e(a0):

        def scaled(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
            return e_normal(a0 * b0, a1 + b1)

        return scaled

    def wide(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
        low, high = u_wide(a0, b0)
        return low, high + a1 * b0 + a0 * b1

    return wide
