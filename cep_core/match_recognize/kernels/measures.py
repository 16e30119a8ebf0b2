"""Measures of the rows of matches so far, compiled."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int64s


@compiled.entry
def first_best(codes: Int64s, known: Bools, offset: Int64s) -> Int64s:
    """Of each row of matches (those of match m from offset[m] on) the first row of the match up to it that has the
    greatest code of those that are known; -1 for none."""
    result = np.empty(len(codes), np.int64)
    for match in range(len(offset) - 1):
        best = -1
        for at in range(offset[match], offset[match + 1]):
            if known[at] and (best < 0 or codes[at] > codes[best]):
                best = at
            result[at] = best
    return result
