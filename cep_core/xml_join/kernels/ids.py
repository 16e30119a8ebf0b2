"""Ids of answers: two lanes of 64 bits, mixed of digests column by column, and written as 32 hex digits.

The values of the constants are a part of stored data: an answer has the same id in every run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int64s, UInt8s, UInt64s

_FACTOR_0, _FACTOR_1 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_ADDED_0, _ADDED_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_ONE, _LATE, _EARLY = np.uint64(1), np.uint64(33), np.uint64(29)
_LOW, _FOUR, _TEN = np.uint64(15), np.uint64(4), np.uint64(10)
_DIGIT, _LETTER = np.uint64(ord("0")), np.uint64(ord("a") - 10)


@compiled.expanded
def _turned(value: Any, other: Any, added: Any, factor: Any) -> Any:
    value = value + added + (other << _ONE)
    value ^= value >> _LATE
    value *= factor
    return value ^ (value >> _EARLY)


@compiled.expanded
def _mixed(one: Any, two: Any, first: Any, second: Any) -> Any:
    one, two = one ^ first, two ^ second
    one = _turned(one, two, _ADDED_0, _FACTOR_0)
    two = _turned(two, one, _ADDED_1, _FACTOR_1)
    one = _turned(one, two, _ADDED_0, _FACTOR_1)
    two = _turned(two, one, _ADDED_1, _FACTOR_0)
    return one, two


@compiled.entry
def mix(state: UInt64s, digests: UInt64s, codes: Int64s, has: Bools) -> None:
    """One more column of each row, in place. `state` (rows, 2); `digests` (values, 2); `codes`: the value of each row;
    rows without `has` stay. The order of columns matters."""
    for row in range(len(state)):
        if has[row]:
            code = codes[row]
            one, two = _mixed(state[row, 0], state[row, 1], digests[code, 0], digests[code, 1])
            state[row, 0], state[row, 1] = one, two


@compiled.entry
def write_ids(state: UInt64s, take: Int64s, digests: UInt64s, codes: Int64s, digits: UInt8s) -> None:
    """The ids of rows: row i is `state[take[i]]` (n, 2) and one more column, `digests[codes[i]]`. `digits`: 32 bytes
    for each row, ASCII."""
    at = 0
    for row in range(len(take)):
        place, code = take[row], codes[row]
        lanes = _mixed(state[place, 0], state[place, 1], digests[code, 0], digests[code, 1])
        for lane in lanes:
            for _ in range(8):
                for digit in ((lane >> _FOUR) & _LOW, lane & _LOW):
                    digits[at] = digit + (_DIGIT if digit < _TEN else _LETTER)
                    at += 1
                lane >>= np.uint64(8)
