"""Overlapping windows without adjacent conditions: what an event costs does not grow with the windows it lies in.

Without adjacent conditions the events of a stretch of time act on the running totals as a matrix: entry (p, q) is how
many ways lead from total p to total q, total 0 being the constant 1 that trends begin from. A window's answer is the
product of its stretches, and a product of matrices can be cut anywhere: before a fixed moment, where the product is
made backwards, once for all windows that begin there (`front`, one row of it a window); and after it, where it grows
with the events (`back`). When a window begins after the moment, the moment moves to that window's end. So an event is
met twice, once backwards and once forwards (two stacks make a queue).

Events of one time are one factor: none of them precedes another. Numbers are rows of any tier, and a product of rows
is that of sums over pairs of ways: counts multiply, and each aggregate is the one's times the other's count. Extrema
take the larger of both where both have a way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from cep_core.kernels.numbers import Rows, add, clear, e_add, e_normal, is_float, one, some, u_wide, weigh

Array = Any


@njit(cache=True, nogil=True)
def two_stacks(
    lo: Array, hi: Array, time: Array, ok: Array,  # T windows by (partition, time); n
    states_of: Array, states: Array, begins: Array, into_of: Array, into: Array, ends: Array,  # as in `counting.linear`
    weight_variable: Array, weights: Array, extreme_variable: Array, extremes: Array,  # as in `trends.run`
    front: Rows, front_ext: Array,               # work, rows: windows that may begin in one window * (S+1)
    back: Rows, back_ext: Array, fresh: Rows, fresh_ext: Array, row: Rows, row_ext: Array,  # (S+1)^2; same; 1
    out: Rows, out_ext: Array, hit: Array,       # T results
) -> None:  # fmt: skip
    """Results per task in `out` (sums), `out_ext` (maxima) and `hit` (there is a trend)."""
    wide = begins.shape[0] + 1
    tables = (states_of, states, begins, into_of, into)
    measures = (weight_variable, weights, extreme_variable, extremes)
    tasks = lo.shape[0]
    first = 0
    while first < tasks:
        middle = hi[first]
        last = first
        while last < tasks and lo[last] < middle and (last - first + 1) * wide <= front.shape[0]:
            last += 1

        # backwards from the moment: what leads from the beginning of each window to it
        identity(back, back_ext, wide)
        x = middle
        for task in range(last - 1, first - 1, -1):
            while x > lo[task]:
                i = x - 1
                while i > lo[task] and time[i - 1] == time[x - 1]:
                    i -= 1
                lead(i, x, ok, tables, measures, back, back_ext, fresh, fresh_ext, row, row_ext, wide)
                x = i
            for p in range(wide):
                clear(front, (task - first) * wide + p)
                add(front, (task - first) * wide + p, back, p)
                front_ext[(task - first) * wide + p] = back_ext[p]

        # forwards from it, up to the end of each window
        identity(back, back_ext, wide)
        x = middle
        for task in range(first, last):
            while x < hi[task]:
                j = x + 1
                while j < hi[task] and time[j] == time[x]:
                    j += 1
                follow(x, j, ok, tables, measures, back, back_ext, fresh, fresh_ext, row, row_ext, wide)
                x = j
            for p in range(wide):
                left = (task - first) * wide + p
                if not some(front, left):
                    continue
                for q in range(1, wide):
                    right = p * wide + q
                    if ends[q - 1] and some(back, right):
                        hit[task] = True
                        multiply(out, task, front, left, back, right)
                        for m in range(out_ext.shape[1]):
                            best = max(front_ext[left, m], back_ext[right, m])
                            out_ext[task, m] = max(out_ext[task, m], best)
        first = last


@njit(cache=True, nogil=True)
def identity(rows: Rows, ext: Array, wide: int) -> None:
    """The matrix of no event."""
    for p in range(wide):
        for q in range(wide):
            clear(rows, p * wide + q)
        one(rows, p * wide + p)
    ext[:] = -np.inf


@njit(cache=True, nogil=True)
def pass_event(measures: Any, b: int, x: int, rows: Rows, ext: Array) -> None:
    """Row 0 of `rows`, of ways that go on with event x under variable b."""
    weight_variable, weights, extreme_variable, extremes = measures
    if not some(rows, 0):
        return
    for k in range(1, weights.shape[0]):
        if weight_variable[k] == b and weights[k, x] != 0:
            weigh(rows, 0, k, weights[k, x])
    for m in range(extremes.shape[0]):
        if extreme_variable[m] == b:
            ext[0, m] = max(ext[0, m], extremes[m, x])


@njit(cache=True, nogil=True)
def gather(rows: Rows, ext: Array, i: int, more: Rows, more_ext: Array, j: int) -> None:
    """rows[i] += more[j], where there is a way."""
    if some(more, j):
        add(rows, i, more, j)
        for m in range(ext.shape[1]):
            ext[i, m] = max(ext[i, m], more_ext[j, m])


@njit(cache=True, nogil=True)
def settle(rows: Rows, ext: Array, fresh: Rows, fresh_ext: Array, wide: int) -> None:
    """Add what the events of one time have given, and forget it."""
    for y in range(wide * wide):
        if some(fresh, y):
            gather(rows, ext, y, fresh, fresh_ext, y)
            clear(fresh, y)
            fresh_ext[y] = -np.inf


@njit(cache=True, nogil=True)
def follow(
    i: int, j: int, ok: Array, tables: Any, measures: Any, rows: Rows, ext: Array, fresh: Rows, fresh_ext: Array,
    row: Rows, row_ext: Array, wide: int,
) -> None:  # fmt: skip
    """rows := rows * the events [i, j) of one time."""
    states_of, states, begins, into_of, into = tables
    for x in range(i, j):
        for b in range(states_of.shape[0] - 1):
            if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                continue
            for a in range(states_of[b], states_of[b + 1]):
                q = states[a]
                for p in range(wide):
                    clear(row, 0)
                    row_ext[0] = -np.inf
                    if begins[q]:
                        gather(row, row_ext, 0, rows, ext, p * wide)
                    for t in range(into_of[q], into_of[q + 1]):
                        gather(row, row_ext, 0, rows, ext, p * wide + into[t] + 1)
                    pass_event(measures, b, x, row, row_ext)
                    gather(fresh, fresh_ext, p * wide + q + 1, row, row_ext, 0)
    settle(rows, ext, fresh, fresh_ext, wide)


@njit(cache=True, nogil=True)
def lead(
    i: int, j: int, ok: Array, tables: Any, measures: Any, rows: Rows, ext: Array, fresh: Rows, fresh_ext: Array,
    row: Rows, row_ext: Array, wide: int,
) -> None:  # fmt: skip
    """rows := the events [i, j) of one time * rows."""
    states_of, states, begins, into_of, into = tables
    for x in range(i, j):
        for b in range(states_of.shape[0] - 1):
            if not (ok[x] >> np.uint64(b)) & np.uint64(1):
                continue
            for a in range(states_of[b], states_of[b + 1]):
                q = states[a]
                for c in range(wide):
                    clear(row, 0)
                    row_ext[0] = -np.inf
                    gather(row, row_ext, 0, rows, ext, (q + 1) * wide + c)
                    pass_event(measures, b, x, row, row_ext)
                    if begins[q]:
                        gather(fresh, fresh_ext, c, row, row_ext, 0)
                    for t in range(into_of[q], into_of[q + 1]):
                        gather(fresh, fresh_ext, (into[t] + 1) * wide + c, row, row_ext, 0)
    settle(rows, ext, fresh, fresh_ext, wide)


def multiply(out: Rows, i: int, a: Rows, j: int, b: Rows, h: int) -> None:
    """out[i] += a[j] * b[h]"""


@overload(multiply)
def _multiply(out: Rows, i: int, a: Rows, j: int, b: Rows, h: int) -> Callable[..., None]:
    if out.ndim == 2:

        def flat(out: Rows, i: int, a: Rows, j: int, b: Rows, h: int) -> None:
            for k in range(1, out.shape[1]):
                out[i, k] += a[j, 0] * b[h, k] + a[j, k] * b[h, 0]
            out[i, 0] += a[j, 0] * b[h, 0]

        return flat
    if is_float(out):

        def scaled(out: Rows, i: int, a: Rows, j: int, b: Rows, h: int) -> None:
            for k in range(out.shape[1]):
                m, e = e_normal(a[j, 0, 0] * b[h, k, 0], a[j, 0, 1] + b[h, k, 1])
                out[i, k, 0], out[i, k, 1] = e_add(out[i, k, 0], out[i, k, 1], m, e)
                if k > 0:
                    m, e = e_normal(a[j, k, 0] * b[h, 0, 0], a[j, k, 1] + b[h, 0, 1])
                    out[i, k, 0], out[i, k, 1] = e_add(out[i, k, 0], out[i, k, 1], m, e)

        return scaled

    def wide(out: Rows, i: int, a: Rows, j: int, b: Rows, h: int) -> None:
        for k in range(out.shape[1]):
            u_times(out, i, k, a[j, 0], b[h, k])
            if k > 0:
                u_times(out, i, k, a[j, k], b[h, 0])

    return wide


@njit(cache=True, nogil=True)
def u_times(out: Rows, i: int, k: int, a: Array, b: Array) -> None:
    """out[i][k] += a * b modulo 2^128, both (low, high)."""
    low, high = u_wide(a[0], b[0])
    high += a[1] * b[0] + a[0] * b[1]
    total = out[i, k, 0] + low
    out[i, k, 1] += high + (np.uint64(1) if total < low else np.uint64(0))
    out[i, k, 0] = total
