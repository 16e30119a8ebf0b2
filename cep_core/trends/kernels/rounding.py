"""Whole numbers in parts of a few bits, and a sum of such parts rounded to a float64 once.

Every float64 is a whole number times a power of two, so the values of a column are whole numbers on one grid. Cut into
parts of at most `BITS` bits they are added as any whole numbers are: exactly, in any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s, UInt64s

BITS = 24
"""Bits of a part: float64 adds 2^29 such values exactly, and two or three parts are most columns."""

DIGIT = 32
"""Bits of a digit of the sum of all parts."""


@compiled.entry
def span(magnitude: UInt64s, exponent: Int64s, bounds: Int64s) -> None:
    """bounds[0]: the lowest bit of any magnitude (n, uint64) times 2^exponent (n, int64), bounds[1]: one more than the
    highest, or two; equal where all are 0."""
    low: Any = np.int64(1 << 62)
    high = -low
    some = False
    for i in range(magnitude.shape[0]):
        m = magnitude[i]
        if m == 0:
            continue
        some = True
        lowest = m & (~m + np.uint64(1))
        low = min(low, exponent[i] + math.frexp(float(lowest))[1] - 1)
        high = max(high, exponent[i] + math.frexp(float(m))[1])
    bounds[0], bounds[1] = (low, high) if some else (0, 0)


@compiled.entry
def part(magnitude: UInt64s, exponent: Int64s, negative: Bools, bit: int, bits: int, out: Float64s) -> float:
    """out (n, float64): `bits` bits from `bit` on of magnitude times 2^exponent, with its sign. The largest of them."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    largest = 0.0
    for i in range(magnitude.shape[0]):
        right = bit - exponent[i]
        if right >= 64 or right <= -bits:
            out[i] = 0.0
            continue
        m = magnitude[i]
        m = (m >> np.uint64(right) if right >= 0 else m << np.uint64(-right)) & mask
        value = float(m)
        largest = max(largest, value)
        out[i] = -value if negative[i] else value
    return largest


@compiled.part
def _carried(digits: Int64s) -> int:
    """Brings each digit into 0 .. 2^DIGIT - 1; what is carried out of the last one, -1 where the number is negative."""
    carry = np.int64(0)
    for d in range(digits.shape[0]):
        digit = digits[d] + carry
        carry = digit >> DIGIT
        digits[d] = digit & ((np.int64(1) << DIGIT) - 1)
    return int(carry)


@compiled.entry
def nearest(parts: Int64s, place: Int64s, bit: int, mantissa: Float64s, exponent: Int64s) -> None:
    """mantissa (C, 0 or 0.5 <= |m| < 1) and exponent (C, int64): the float64 next to the sum of parts (C, P; int64
    below 2^53) times 2^(bit + place) (P), of two the even one; past float64's range as well."""
    size = 4
    for p in range(place.shape[0]):
        size = max(size, place[p] // DIGIT + 4)
    digits = np.zeros(size, np.int64)
    mask = (np.int64(1) << DIGIT) - 1
    for c in range(parts.shape[0]):
        digits[:] = 0
        for p in range(place.shape[0]):
            d, left = place[p] // DIGIT, place[p] % DIGIT
            low, high = (parts[c, p] & mask) << left, (parts[c, p] >> DIGIT) << left
            digits[d] += low & mask
            digits[d + 1] += ((low >> DIGIT) & mask) + (high & mask)
            digits[d + 2] += high >> DIGIT
        sign = 1.0
        if _carried(digits) < 0:
            sign = -1.0
            for d in range(size):
                digits[d] = -digits[d]
            _carried(digits)
        top = size - 1
        while top >= 0 and digits[top] == 0:
            top -= 1
        if top < 0:
            mantissa[c], exponent[c] = 0.0, 0
            continue
        bits = np.int64(0)
        while digits[top] >> bits:
            bits += 1
        second = np.uint64(digits[top - 1]) if top >= 1 else np.uint64(0)
        third = np.uint64(digits[top - 2]) if top >= 2 else np.uint64(0)
        window = (
            np.uint64(digits[top]) << np.uint64(64 - bits)
            | second << np.uint64(DIGIT - bits)
            | third >> np.uint64(bits)
        )
        rest = window & np.uint64(0x7FF)
        below = (third & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))) != 0
        for d in range(top - 2):
            below = below or digits[d] != 0
        significand = np.int64(window >> np.uint64(11))
        half = np.uint64(0x400)
        if rest > half or (rest == half and (below or significand & 1)):
            significand += 1
        m, e = math.frexp(float(significand))
        mantissa[c] = sign * m
        exponent[c] = e + DIGIT * top + bits - 53 + bit


LARGEST_LOW, LARGEST_HIGH = np.uint64((10**38 - 1) & (2**64 - 1)), np.uint64((10**38 - 1) >> 64)
"""The largest count that is shown, in two words."""
DIGITS = 10
"""Digits of a logarithm of more: within 5e-10 of it, and the float64 tiers mostly know them."""


LOG10_E = 0.44
"""A relative error e of a number is less than this times e of its logarithm, for e up to 0.01."""


@compiled.part
def _nearest_of_words(low: np.uint64, high: np.uint64) -> tuple[float, Any]:
    """(m, e) of the float64 next to high 2^64 + low, of two the even one: the leading 64 bits, whose last one says
    whether any bit below them is set, are rounded once."""
    if high == 0:
        m, e = math.frexp(float(low))
        return m, np.int64(e)
    shift = 0
    while shift < 64 and high >> np.uint64(shift):
        shift += 1
    window, rest = high, low
    if shift < 64:
        window = high << np.uint64(64 - shift) | low >> np.uint64(shift)
        rest = low & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
    if rest:
        window |= np.uint64(1)
    m, e = math.frexp(float(window))
    return m, np.int64(e + shift)


@compiled.part
def _shown_digits(m: float, e: int, error: float) -> tuple[float, bool]:
    """log10(m 2^e), more than 38, in `DIGITS` digits; and whether these are sure for a number within `error` of it. As
    `exact_arithmetic.count_log10`, step by step."""
    logarithm = math.log10(m) + e * 0.30102999566398120
    places = DIGITS
    whole = np.int64(logarithm)
    while whole > 0:
        whole //= 10
        places -= 1
    if places < 0:
        return 0.0, False
    scale = 1.0
    for _ in range(places):
        scale *= 10.0
    scaled = logarithm * scale
    near = math.floor(scaled + 0.5)
    doubt = scale * (LOG10_E * error + 4.0 * math.ldexp(1.0, math.frexp(logarithm)[1] - 53))
    return near / scale, abs(scaled - near) + doubt < 0.5


@compiled.entry
def show_counts(
    words: UInt64s,
    exact: Bools,
    leading: Float64s,
    radix: int,
    error: Float64s,
    logarithm: Float64s,
    fits: Bools,
    sure: Bools,
) -> None:
    """Counts for a result, n each: `words` (n, 2: low, high) where `exact`, else `leading` (n, 2) of tier E, within
    `error`. Sets `logarithm` (0 of zero), `fits`: DECIMAL(38,0) holds the count, and `sure`: the digits are known."""
    for i in range(exact.shape[0]):
        if exact[i]:
            low, high = words[i, 0], words[i, 1]
            fits[i] = high < LARGEST_HIGH or (high == LARGEST_HIGH and low <= LARGEST_LOW)
            m, e = _nearest_of_words(low, high)
            off = 0.0
        else:
            fits[i] = False
            m, steps = math.frexp(leading[i, 0])
            e = np.int64(steps) + radix * np.int64(leading[i, 1])
            off = error[i]
        sure[i] = True
        if m == 0.0:
            logarithm[i] = 0.0
        elif fits[i]:
            logarithm[i] = math.log10(math.ldexp(m, e))
        else:
            logarithm[i], sure[i] = _shown_digits(m, e, off)


@compiled.entry
def log10(mantissa: Float64s, exponent: Int64s, out: Float64s) -> None:
    """out: log10(mantissa 2^exponent) for mantissas in [0.5, 1), one way for all."""
    for i in range(mantissa.shape[0]):
        m, e = mantissa[i], exponent[i]
        if -1000 < e < 1000:
            out[i] = math.log10(math.ldexp(m, e))
        else:
            out[i] = math.log10(m) + e * 0.30102999566398120
