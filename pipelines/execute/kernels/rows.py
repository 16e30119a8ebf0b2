"""Loops over row numbers and codes."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Codes, Int32s, Int64s


@compiled.entry
def rows_by_key(key: Codes, count: int) -> tuple[Int64s, Int64s]:
    """Row numbers by key (of `count`), in their order; where each key's start, and the end."""
    starts = np.zeros(count + 1, np.int64)
    for i in range(key.shape[0]):
        starts[key[i] + 1] += 1
    for k in range(count):
        starts[k + 1] += starts[k]
    order = np.empty(key.shape[0], np.int64)
    at = starts[:-1].copy()
    for i in range(key.shape[0]):
        order[at[key[i]]] = i
        at[key[i]] += 1
    return order, starts


@compiled.entry
def renumber(codes: Int32s, numbers: Int32s, fresh: Int32s, used: Int64s) -> int:
    count = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        if code >= 0:
            if numbers[code] < 0:
                numbers[code] = count
                used[count] = code
                count += 1
            fresh[i] = numbers[code]
        else:
            fresh[i] = 0
    for k in range(count):
        numbers[used[k]] = -1
    return count
