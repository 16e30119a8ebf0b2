"""Rows of numbers in tiers, one row a partial result: [trends, aggregate, aggregate, ...].

| tier | array | exact |
| --- | --- | --- |
| F | float64 (rows, K) | additions of whole numbers, while the result stays below 2^53 |
| U | uint64 (rows, K, 2): low, high | whole numbers modulo 2^128, for intermediate sums of any size |
| E | float64 (rows, K, 2): mantissa |m| < 2^300, exponent e >= 0: m 2^(600 e) | as float64, any size |
| D | float64 (rows, K, 3): mantissa in two floats, high + low, and the exponent of E | 2^-104 an addition, any size |

The functions below are chosen by the array's type at compile time. Tier E has its own kernels (`counting`,
`two_stacks`), so rows of three dimensions are of U or D here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types
from numba.extending import overload

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Int64s, UInt64s
from trendlake.cep_core.trends.kernels.scaled import d_add, d_multiply

LARGEST = 2.0**960
"""A float64 row beyond this ends a pass in tier F: sums of 2^60 such rows are still finite."""


@compiled.part
def u_wide(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(low, high) of a * b."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    p00, p01, p10, p11 = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (p00 >> half) + (p01 & mask) + (p10 & mask)
    return (p00 & mask) | (middle << half), p11 + (p01 >> half) + (p10 >> half) + (middle >> half)


@compiled.part
def u_mul(low: np.uint64, high: np.uint64, w: np.int64) -> tuple[np.uint64, np.uint64]:
    """(low, high) * w modulo 2^128, w signed."""
    negative = w < 0
    b = np.uint64(-w) if negative else np.uint64(w)
    lo, hi = u_wide(low, b)
    hi += high * b
    if negative:
        lo = ~lo + np.uint64(1)
        hi = ~hi + (np.uint64(1) if lo == np.uint64(0) else np.uint64(0))
    return lo, hi


def some(a: AnyArray, i: int) -> bool:
    """Whether a[i] is not nothing. Where there is a trend, tiers F and D never count 0; modulo 2^128 it may be."""
    raise NotImplementedError


def too_large(a: AnyArray, i: int) -> bool:
    """Whether the count a[i][0] is beyond what a pass of its tier goes on with: tier F ends before it overflows."""
    raise NotImplementedError


def clear(a: AnyArray, i: int) -> None:
    """a[i] = 0"""


def add(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
    """a[i] += b[j]"""


def one(a: AnyArray, i: int) -> None:
    """a[i][0] += 1: a trend begins."""


def weigh(a: AnyArray, i: int, k: int, b: AnyArray, j: int, w: float) -> None:
    """a[i][k] += b[j][0] * w: the event adds w to aggregate k of every trend that b[j] counts."""


def is_float(a: AnyArray) -> bool:
    """At compile time: whether an array is of tier F or D, not U."""
    return bool(a.dtype == types.float64)


@overload(some)
def _some(a: AnyArray, i: int) -> Callable[..., bool]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int) -> bool:
            return bool(a[i, 0] != 0.0)

        return flat
    if is_float(a):

        def scaled(a: AnyArray, i: int) -> bool:
            return bool(a[i, 0, 0] != 0.0)

        return scaled

    def wide(a: AnyArray, i: int) -> bool:
        any_set = False
        for k in range(a.shape[1]):
            any_set = any_set or a[i, k, 0] != 0 or a[i, k, 1] != 0
        return any_set

    return wide


@overload(too_large)
def _too_large(a: AnyArray, i: int) -> Callable[..., bool]:
    if a.ndim == 3:

        def never(a: AnyArray, i: int) -> bool:
            return False

        return never

    def flat(a: AnyArray, i: int) -> bool:
        return bool(a[i, 0] > LARGEST)

    return flat


@overload(clear)
def _clear(a: AnyArray, i: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int) -> None:
            for k in range(a.shape[1]):
                a[i, k] = 0.0

        return flat

    if is_float(a):

        def scaled(a: AnyArray, i: int) -> None:
            for k in range(a.shape[1]):
                a[i, k, 0] = a[i, k, 1] = a[i, k, 2] = 0.0

        return scaled

    def pair(a: AnyArray, i: int) -> None:
        for k in range(a.shape[1]):
            a[i, k, 0] = 0
            a[i, k, 1] = 0

    return pair


@overload(add)
def _add(a: AnyArray, i: int, b: AnyArray, j: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
            for k in range(a.shape[1]):
                a[i, k] += b[j, k]

        return flat
    if is_float(a):

        def scaled(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
            for k in range(a.shape[1]):
                a[i, k, 0], a[i, k, 1], a[i, k, 2] = d_add(
                    a[i, k, 0], a[i, k, 1], a[i, k, 2], b[j, k, 0], b[j, k, 1], b[j, k, 2]
                )

        return scaled

    def wide(a: AnyArray, i: int, b: AnyArray, j: int) -> None:
        for k in range(a.shape[1]):
            low = a[i, k, 0] + b[j, k, 0]
            carry = np.uint64(1) if low < b[j, k, 0] else np.uint64(0)
            a[i, k, 1] += b[j, k, 1] + carry
            a[i, k, 0] = low

    return wide


@overload(one)
def _one(a: AnyArray, i: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int) -> None:
            a[i, 0] += 1.0

        return flat
    if is_float(a):

        def scaled(a: AnyArray, i: int) -> None:
            a[i, 0, 0], a[i, 0, 1], a[i, 0, 2] = d_add(a[i, 0, 0], a[i, 0, 1], a[i, 0, 2], 1.0, 0.0, 0.0)

        return scaled

    def wide(a: AnyArray, i: int) -> None:
        a[i, 0, 0] += np.uint64(1)
        if a[i, 0, 0] == np.uint64(0):
            a[i, 0, 1] += np.uint64(1)

    return wide


@overload(weigh)
def _weigh(a: AnyArray, i: int, k: int, b: AnyArray, j: int, w: float) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: AnyArray, i: int, k: int, b: AnyArray, j: int, w: float) -> None:
            a[i, k] += b[j, 0] * w

        return flat
    if is_float(a):

        def scaled(a: AnyArray, i: int, k: int, b: AnyArray, j: int, w: float) -> None:
            top, low, e = d_multiply(b[j, 0, 0], b[j, 0, 1], b[j, 0, 2], w)
            a[i, k, 0], a[i, k, 1], a[i, k, 2] = d_add(a[i, k, 0], a[i, k, 1], a[i, k, 2], top, low, e)

        return scaled

    def wide(a: AnyArray, i: int, k: int, b: AnyArray, j: int, w: float) -> None:
        low, high = u_mul(b[j, 0, 0], b[j, 0, 1], np.int64(w))
        total = a[i, k, 0] + low
        carry = np.uint64(1) if total < low else np.uint64(0)
        a[i, k, 1] += high + carry
        a[i, k, 0] = total

    return wide


@compiled.entry
def add_wide(sums: UInt64s, owner: Int64s, out: UInt64s) -> None:
    """out[owner[t]] += sums[t], (.., K, 2) modulo 2^128."""
    for t in range(sums.shape[0]):
        c = owner[t]
        for k in range(sums.shape[1]):
            low = out[c, k, 0] + sums[t, k, 0]
            out[c, k, 1] += sums[t, k, 1] + (np.uint64(1) if low < sums[t, k, 0] else np.uint64(0))
            out[c, k, 0] = low
