"""Exact sums in two words, 128 bits, rounded once. Doubles are whole numbers of a unit, a power of two."""

from __future__ import annotations

import math

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s

_EXACT = 1 << 53
"""A double holds every whole number up to it."""
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@compiled.entry
def extent(values: Float64s, known: Bools) -> tuple[int, int]:
    """The least bit and the greatest that any of the doubles that are known has: powers of two. (1, 0) for none but
    zeros, and (0, 1024) where there is an infinity."""
    least, greatest = 1 << 20, -(1 << 20)
    for at in range(len(values)):
        value = values[at]
        if not known[at] or value == 0.0:
            continue
        whole, power = _taken_apart(value)
        greatest = max(greatest, power + 53)
        if power < least:
            while not whole & 1:
                whole >>= 1
                power += 1
            least = min(least, power)
    if greatest > 1024:
        return 0, 1024
    return (1, 0) if least > greatest else (least, greatest)


@compiled.entry
def in_words(values: Float64s, known: Bools, unit: int) -> Int64s:
    """(n, 2): each double in two words, in the unit 2^unit; 0 where it is not known."""
    result = np.zeros((len(values), 2), np.int64)
    for at in range(len(values)):
        if known[at]:
            result[at, 0], result[at, 1] = words_of(values[at], unit)
    return result


@compiled.part
def words_of(value: float, unit: int) -> tuple[int, int]:
    """A double in two words, in the unit 2^unit."""
    if value == 0.0:
        return 0, 0
    whole, power = _taken_apart(value)
    by = power - unit
    if by < 0:
        whole >>= -by
        return whole, whole >> 63
    if by >= 64:
        return 0, whole << (by - 64)
    return whole << by, whole >> (64 - by) if by else whole >> 63


@compiled.part
def _taken_apart(value: float) -> tuple[int, int]:
    """A double as a whole number of 53 bits times a power of two; infinity as one of a power beyond all others."""
    bits = int(np.float64(value).view(np.int64))
    power = (bits >> 52) & 2047
    whole = bits & ((1 << 52) - 1)
    if power:
        whole |= 1 << 52
    else:
        power = 1
    return -whole if bits < 0 else whole, power - 1075


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
