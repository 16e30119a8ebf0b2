"""Loops over arrays of values: what kind of numbers they are, and their dense ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Float64s, Int32s, Int64s


@compiled.entry
def plain(doubles: Float64s) -> bool:
    """Whether none is a NaN or a zero with a sign."""
    odd = 0
    for x in doubles:
        odd += x != x or (x == 0.0 and np.signbit(x))
    return odd == 0


@compiled.entry
def whole_range(values: AnyArray) -> tuple[bool, float, float]:
    """Whether all are whole numbers float64 holds; the smallest and the largest."""
    whole, low, high = True, np.inf, -np.inf
    for i in range(values.shape[0]):
        value = float(values[i])
        whole = whole and value == np.floor(value)
        low, high = min(low, value), max(high, value)
    return whole and low > -(2.0**53) and high < 2.0**53, low, high


@compiled.entry
def counted_ranks(values: AnyArray, low: Any, size: int, ranks: Int32s) -> int:
    seen = np.zeros(size, np.int32)
    for i in range(values.shape[0]):
        seen[np.int64(values[i] - low)] = 1
    rank = 0
    for x in range(size):
        occurs = seen[x]
        seen[x] = rank
        rank += occurs
    for i in range(values.shape[0]):
        ranks[i] = seen[np.int64(values[i] - low)]
    return rank


@compiled.entry
def sorted_ranks(values: AnyArray, order: Int64s, ranks: Int32s) -> int:
    rank = -1
    for i in range(order.shape[0]):
        if i == 0 or values[order[i]] != values[order[i - 1]]:
            rank += 1
        ranks[order[i]] = rank
    return rank + 1
