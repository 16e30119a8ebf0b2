"""Exact sums in two words, 128 bits, rounded once."""

from __future__ import annotations

import math

import numpy as np

from trendlake.cep_core import compiled

_EXACT = 1 << 53
"""A double holds every whole number up to it."""
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@compiled.part
def carried(low: int, high: int, low_part: int, high_part: int) -> tuple[int, int]:
    """The sum of two numbers in two words each. The low word has no sign."""
    total = np.uint64(low) + np.uint64(low_part)
    carry = np.int64(1) if total < np.uint64(low_part) else np.int64(0)
    return np.int64(total), np.int64(high + high_part + carry)  # type: ignore[return-value]


@compiled.part
def rounded(low: int, high: int, divisor: int, unit: int) -> float:
    """(high * 2^64 + low) * 2^unit / divisor, rounded once. `divisor`: from 1 to 2^31."""
    upper, lower = np.uint64(high), np.uint64(low)
    negative = high < 0
    if negative:
        lower = ~lower + np.uint64(1)
        upper = ~upper + (np.uint64(1) if lower == np.uint64(0) else np.uint64(0))
    if upper == np.uint64(0) and lower <= np.uint64(_EXACT):
        small = float(np.float64(lower)) / divisor
        if unit:
            small = math.ldexp(small, unit)
        return -small + 0.0 if negative else small
    upper, lower, moved = _shifted(upper, lower)
    scale = unit - moved
    rest = np.uint64(0)
    if divisor > 1:
        by = np.uint64(divisor)
        first, rest = _divided(rest, upper >> _HALF, by)
        second, rest = _divided(rest, upper & _LOW_HALF, by)
        third, rest = _divided(rest, lower >> _HALF, by)
        fourth, rest = _divided(rest, lower & _LOW_HALF, by)
        upper, lower, moved = _shifted((first << _HALF) | second, (third << _HALF) | fourth)
        scale -= moved
    if lower != np.uint64(0) or rest != np.uint64(0):
        upper |= np.uint64(1)  # below the bits that a double keeps: only so that a half is none
    value = math.ldexp(float(np.float64(upper)), scale + 64)
    return -value if negative else value


@compiled.part
def _divided(rest: np.uint64, half: np.uint64, by: np.uint64) -> tuple[np.uint64, np.uint64]:
    """One step of a division by hand: quotient and rest."""
    number = (rest << _HALF) | half
    quotient = number // by
    return quotient, number - quotient * by


@compiled.part
def _shifted(upper: np.uint64, lower: np.uint64) -> tuple[np.uint64, np.uint64, int]:
    """A number that is not 0, moved to the left until its highest bit is set; and by how many bits."""
    moved = 0
    if upper == np.uint64(0):
        upper, lower, moved = lower, np.uint64(0), 64
    step = 32
    while step:
        bits = np.uint64(step)
        if upper >> (np.uint64(64) - bits) == np.uint64(0):
            upper = (upper << bits) | (lower >> (np.uint64(64) - bits))
            lower <<= bits
            moved += step
        step >>= 1
    return upper, lower, moved
