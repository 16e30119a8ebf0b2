"""Aggregates over the events of one part of each match."""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Bools, Int32s, Int64s
from trendlake.cep_core.expressions.opcodes import ADD
from trendlake.cep_core.kernels.vm import fits

SUM, MIN, MAX = range(3)


@compiled.entry
def whole(
    function: int, events: Int32s, bounds: Int64s, k: int, values: AnyArray, null: Bools, out: AnyArray, counts: Int64s
) -> bool:
    """out[m] of int64 values, NULLs skipped; counts[m]: how many were not. False where a sum overflows."""
    for m in range(bounds.shape[0]):
        total, count = values[0], 0
        for i in range(bounds[m, k], bounds[m, k + 1]):
            e = events[i]
            if null[e]:
                continue
            value = values[e]
            if count == 0:
                total = value
            elif function == SUM:
                if not fits(ADD, total, value):
                    return False
                total += value
            else:
                total = min(total, value) if function == MIN else max(total, value)
            count += 1
        out[m], counts[m] = total, count
    return True


@compiled.entry
def real(
    function: int, events: Int32s, bounds: Int64s, k: int, values: AnyArray, null: Bools, out: AnyArray, counts: Int64s
) -> None:
    """`whole` of float64 values; sums from left to right, NaN where infinities cancel."""
    for m in range(bounds.shape[0]):
        total, count = values[0], 0
        for i in range(bounds[m, k], bounds[m, k + 1]):
            e = events[i]
            if null[e]:
                continue
            value = values[e]
            if count == 0:
                total = value
            elif function == SUM:
                total += value
            else:
                total = min(total, value) if function == MIN else max(total, value)
            count += 1
        out[m], counts[m] = total, count
