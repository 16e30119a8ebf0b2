"""Sums of 128-bit whole numbers by owner."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s, UInt64s


@compiled.entry
def add_wide(sums: UInt64s, owner: Int64s, out: UInt64s) -> None:
    """out[owner[t]] += sums[t], (.., K, 2) modulo 2^128."""
    for t in range(sums.shape[0]):
        c = owner[t]
        for k in range(sums.shape[1]):
            low = out[c, k, 0] + sums[t, k, 0]
            out[c, k, 1] += sums[t, k, 1] + (np.uint64(1) if low < sums[t, k, 0] else np.uint64(0))
            out[c, k, 0] = low
