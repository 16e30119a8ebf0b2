"""The order of numbers."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.events.array_types import AnyArray, Int64s
from trendlake.cep_core.events.arrays import read_only

SMALL = 2_000
"""So few numbers are sorted by comparison: counters of digits cost more."""

NARROW = 2**16
"""The numbers of a range that 16 bits hold need no kernel, which a first pattern would wait for."""


def order_of(values: AnyArray) -> Int64s:
    """The rows of whole numbers or float64s (no NaN) in their order, equal ones by row: as a stable argsort."""
    if len(values) < SMALL or values.dtype == np.uint64:
        return np.argsort(values, kind="stable")
    if (values[1:] >= values[:-1]).all():  # times mostly are in order
        return np.arange(len(values))
    if values.dtype.kind == "i" and int(values.max()) - (low := int(values.min())) < NARROW:
        return np.argsort((values - low).astype(np.uint16), kind="stable")  # numpy counts digits, too
    from trendlake.cep_core.events.kernels.order import sort_rows  # brings numba

    real = values.dtype.kind == "f"
    # a zero with a sign is equal to one without
    wide = (values + 0.0).astype(np.float64, copy=False).view(np.int64) if real else values.astype(np.int64, copy=False)
    rows, spare = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    bits = sort_rows(read_only(np.ascontiguousarray(wide)), real, rows, spare)
    if bits < 0:
        return np.argsort(values, kind="stable")
    rows &= np.uint64((1 << bits) - 1)
    return rows.view(np.int64)
