"""Numbers of tiers E and D: a mantissa, of one float64 or of two, and an exponent, so that none is too large."""

from __future__ import annotations

from trendlake.cep_core import compiled

RADIX = 600
"""Exponents of tier E count powers of 2^RADIX. A mantissa shifted by one step is still a normal float64, so numbers are
aligned without a loss; two steps apart, the smaller one is nothing compared with the larger (2^-600)."""
BIG = 2.0 ** (RADIX // 2)
SMALL = 2.0 ** -(RADIX // 2)
STEP_UP = 2.0**RADIX
STEP_DOWN = 2.0**-RADIX


@compiled.entry
def e_add(m1: float, e1: float, m2: float, e2: float) -> tuple[float, float]:
    """(m1, e1) + (m2, e2) in tier E."""
    if e1 == e2:
        return e_normal(m1 + m2, e1)
    if m2 == 0.0:
        return m1, e1
    if m1 == 0.0:
        return m2, e2
    if e1 > e2:
        return e_normal(m1 + m2 * STEP_DOWN, e1) if e1 - e2 < 2.0 else (m1, e1)
    return e_normal(m2 + m1 * STEP_DOWN, e2) if e2 - e1 < 2.0 else (m2, e2)


@compiled.part
def e_normal(m: float, e: float) -> tuple[float, float]:
    """Bring a mantissa below 2^900 back into its range."""
    size = abs(m)
    if size >= BIG:
        return m * STEP_DOWN, e + 1.0
    if size < SMALL and e > 0.0:
        return (m * STEP_UP, e - 1.0) if size > 0.0 else (0.0, 0.0)
    return m, e


@compiled.part
def e_multiply(m: float, e: float, w: float) -> tuple[float, float]:
    """(m, e) * w in tier E, for any finite w. Both factors are within 2^-300..2^300 (or at exponent 0) when they meet,
    so that their product is a float64."""
    while abs(w) >= BIG:
        w, e = w * STEP_DOWN, e + 1.0
    while 0.0 < abs(w) < SMALL and e > 0.0:
        w, e = w * STEP_UP, e - 1.0
    return e_normal(m * w, e)


@compiled.part
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as a float64 and what its rounding left out (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@compiled.part
def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as a float64 and what its rounding left out (Dekker); |a|, |b| < 2^900."""
    product = a * b
    x, y = 134217729.0 * a, 134217729.0 * b
    ah, bh = x - (x - a), y - (y - b)
    al, bl = a - ah, b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


@compiled.part
def d_normal(top: float, low: float, e: float) -> tuple[float, float, float]:
    """Bring a mantissa below 2^900 back into its range."""
    size = abs(top)
    if size >= BIG:
        return top * STEP_DOWN, low * STEP_DOWN, e + 1.0
    if size < SMALL and e > 0.0:
        return (top * STEP_UP, low * STEP_UP, e - 1.0) if size > 0.0 else (0.0, 0.0, 0.0)
    return top, low, e


@compiled.part
def d_add(h1: float, l1: float, e1: float, h2: float, l2: float, e2: float) -> tuple[float, float, float]:
    """The sum of two numbers of tier D, within 2^-104 of the sum of their magnitudes."""
    if h2 == 0.0 or e1 - e2 > 1.0:
        return h1, l1, e1
    if h1 == 0.0 or e2 - e1 > 1.0:
        return h2, l2, e2
    if e1 > e2:
        h2, l2 = h2 * STEP_DOWN, l2 * STEP_DOWN
    elif e2 > e1:
        h1, l1, e1 = h1 * STEP_DOWN, l1 * STEP_DOWN, e2
    total, rest = two_sum(h1, h2)
    rest += l1 + l2
    high = total + rest
    return d_normal(high, rest - (high - total), e1)


@compiled.part
def d_multiply(top: float, low: float, e: float, w: float) -> tuple[float, float, float]:
    """A number of tier D times any finite w."""
    while abs(w) >= BIG:
        w, e = w * STEP_DOWN, e + 1.0
    while 0.0 < abs(w) < SMALL and e > 0.0:
        w, e = w * STEP_UP, e - 1.0
    product, rest = two_product(top, w)
    rest += low * w
    high = product + rest
    return d_normal(high, rest - (high - product), e)
