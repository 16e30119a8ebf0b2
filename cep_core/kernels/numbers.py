"""Rows of numbers in three tiers, one row a partial result: [trends, aggregate, aggregate, ...].

| tier | array | exact |
| --- | --- | --- |
| F | float64 (rows, K) | additions of whole numbers, while the result stays below 2^53 |
| U | uint64 (rows, K, 2): low, high | whole numbers modulo 2^128, whatever lies between |
| E | float64 (rows, K, 2): mantissa m, exponent e; m 2^(2000 e), 2^-1000 <= |m| < 2^1000 or 0 | as float64, any size|

The functions below are chosen by the array's type at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

RADIX = 2000
"""Exponents of tier E count powers of 2^RADIX: nearly float64's range, so that neighbours seldom differ in theirs."""
BIG = 2.0 ** (RADIX // 2)
SMALL = 2.0 ** -(RADIX // 2)
UP = BIG
"""Half a step of the exponent; a whole one does not fit a float64."""
DOWN = SMALL
QUARTER_UP = 2.0 ** (RADIX // 4)
QUARTER_DOWN = 2.0 ** -(RADIX // 4)

Rows = Any


@njit(cache=True)
def e_add(m1: float, e1: float, m2: float, e2: float) -> tuple[float, float]:
    """(m1, e1) + (m2, e2) in tier E."""
    if m2 == 0.0:
        return m1, e1
    if m1 == 0.0:
        return m2, e2
    if e1 == e2:
        m, e = m1 + m2, e1
    elif e1 > e2:
        if e1 - e2 >= 2.0:
            return m1, e1
        m, e = m1 + m2 * DOWN * DOWN, e1
    else:
        if e2 - e1 >= 2.0:
            return m2, e2
        m, e = m2 + m1 * DOWN * DOWN, e2
    return e_normal(m, e)


@njit(cache=True)
def e_normal(m: float, e: float) -> tuple[float, float]:
    """Bring a mantissa back into its range."""
    size = abs(m)
    if size == 0.0:
        return 0.0, 0.0
    if size >= BIG:
        return m * DOWN * DOWN, e + 1.0
    if size < SMALL:
        return m * UP * UP, e - 1.0
    return m, e


@njit(cache=True)
def u_mul(low: np.uint64, high: np.uint64, w: np.int64) -> tuple[np.uint64, np.uint64]:
    """(low, high) * w modulo 2^128, w signed."""
    negative = w < 0
    b = np.uint64(-w) if negative else np.uint64(w)
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1, b0, b1 = low & mask, low >> half, b & mask, b >> half
    p00, p01, p10, p11 = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (p00 >> half) + (p01 & mask) + (p10 & mask)
    lo = (p00 & mask) | (middle << half)
    hi = p11 + (p01 >> half) + (p10 >> half) + (middle >> half) + high * b
    if negative:
        lo = ~lo + np.uint64(1)
        hi = ~hi + (np.uint64(1) if lo == np.uint64(0) else np.uint64(0))
    return lo, hi


def clear(a: Rows, i: int) -> None:
    """a[i] = 0"""


def add(a: Rows, i: int, b: Rows, j: int) -> None:
    """a[i] += b[j]"""


def one(a: Rows, i: int) -> None:
    """a[i][0] += 1: a trend begins."""


def weigh(a: Rows, i: int, k: int, w: float) -> None:
    """a[i][k] += a[i][0] * w: the event adds w to aggregate k of every trend through it."""


def _is_float(a: types.Array) -> bool:
    return bool(a.dtype == types.float64)


@overload(clear)
def _clear(a: Rows, i: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: Rows, i: int) -> None:
            for k in range(a.shape[1]):
                a[i, k] = 0.0

        return flat

    def pair(a: Rows, i: int) -> None:
        for k in range(a.shape[1]):
            a[i, k, 0] = 0
            a[i, k, 1] = 0

    return pair


@overload(add)
def _add(a: Rows, i: int, b: Rows, j: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: Rows, i: int, b: Rows, j: int) -> None:
            for k in range(a.shape[1]):
                a[i, k] += b[j, k]

        return flat
    if _is_float(a):

        def scaled(a: Rows, i: int, b: Rows, j: int) -> None:
            for k in range(a.shape[1]):
                a[i, k, 0], a[i, k, 1] = e_add(a[i, k, 0], a[i, k, 1], b[j, k, 0], b[j, k, 1])

        return scaled

    def wide(a: Rows, i: int, b: Rows, j: int) -> None:
        for k in range(a.shape[1]):
            low = a[i, k, 0] + b[j, k, 0]
            carry = np.uint64(1) if low < b[j, k, 0] else np.uint64(0)
            a[i, k, 1] += b[j, k, 1] + carry
            a[i, k, 0] = low

    return wide


@overload(one)
def _one(a: Rows, i: int) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: Rows, i: int) -> None:
            a[i, 0] += 1.0

        return flat
    if _is_float(a):

        def scaled(a: Rows, i: int) -> None:
            a[i, 0, 0], a[i, 0, 1] = e_add(a[i, 0, 0], a[i, 0, 1], 1.0, 0.0)

        return scaled

    def wide(a: Rows, i: int) -> None:
        a[i, 0, 0] += np.uint64(1)
        if a[i, 0, 0] == np.uint64(0):
            a[i, 0, 1] += np.uint64(1)

    return wide


@overload(weigh)
def _weigh(a: Rows, i: int, k: int, w: float) -> Callable[..., None]:
    if a.ndim == 2:

        def flat(a: Rows, i: int, k: int, w: float) -> None:
            a[i, k] += a[i, 0] * w

        return flat
    if _is_float(a):

        def scaled(a: Rows, i: int, k: int, w: float) -> None:
            m, e = e_multiply(a[i, 0, 0], a[i, 0, 1], w)
            a[i, k, 0], a[i, k, 1] = e_add(a[i, k, 0], a[i, k, 1], m, e)

        return scaled

    def wide(a: Rows, i: int, k: int, w: float) -> None:
        low, high = u_mul(a[i, 0, 0], a[i, 0, 1], np.int64(w))
        total = a[i, k, 0] + low
        carry = np.uint64(1) if total < low else np.uint64(0)
        a[i, k, 1] += high + carry
        a[i, k, 0] = total

    return wide


@njit(cache=True)
def e_multiply(m: float, e: float, w: float) -> tuple[float, float]:
    """(m, e) * w in tier E. The factors are brought near 1 first, by 2^500 each, so that their product is a float64."""
    shift = 0
    if abs(m) >= 1.0:
        m, shift = m * QUARTER_DOWN, shift + 1
    else:
        m, shift = m * QUARTER_UP, shift - 1
    if abs(w) >= 1.0:
        w, shift = w * QUARTER_DOWN, shift + 1
    else:
        w, shift = w * QUARTER_UP, shift - 1
    product = m * w
    if shift == 2:
        if abs(product) < 1.0:
            product *= UP
        else:
            product, e = product * DOWN, e + 1.0
    elif shift == -2:
        if abs(product) >= 1.0:
            product *= DOWN
        else:
            product, e = product * UP, e - 1.0
    return e_normal(product, e)
