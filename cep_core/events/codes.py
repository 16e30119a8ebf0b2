"""Values as small whole numbers: equal values share a code; ordered codes keep the order. NULL is -1 where it equals no
value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Codes, Int32s
from trendlake.cep_core.events.arrays import numbers, valid
from trendlake.cep_core.events.normalise import comparable, normalise
from trendlake.cep_core.events.order import order_of

FEW = 1_000


def dense_ranks(values: Codes) -> tuple[Int32s, int]:
    """int32 ranks 0.. of numbers or booleans (no NaN), equal ones sharing theirs; and how many there are.

    Whole numbers close together are counted, O(n); others are sorted. `FEW` are sorted without compiled code: to load
    it takes longer."""
    if len(values) <= FEW:
        distinct, few = np.unique(values, return_inverse=True)
        return few.astype(np.int32), len(distinct)
    from trendlake.cep_core.events.kernels.values import counted_ranks, sorted_ranks, whole_range  # brings numba

    if values.dtype == np.bool_:
        values = values.astype(np.int64)
    ranks = np.empty(len(values), np.int32)
    whole, low, high = whole_range(values)
    if len(values) and whole and high - low <= 2 * len(values):
        return ranks, int(counted_ranks(values, values.dtype.type(low), int(high - low) + 1, ranks))
    return ranks, int(sorted_ranks(values, order_of(values), ranks))


def group_codes(columns: Sequence[pa.Array], length: int) -> Int32s:
    """int64 codes 0..: rows agree on every column exactly when their codes do. NULL agrees with NULL, as in GROUP
    BY. `columns`: normalised (see `cep_core.events.normalise`), or dictionaries of values that are not."""
    codes = np.zeros(length, dtype=np.int32)
    several = False
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        indices, size = _indices(column)
        if several:
            codes = dense_ranks(codes.astype(np.int64) * max(1, size) + indices)[0]
        else:
            codes, several = indices, True
    return codes


def _indices(column: pa.Array) -> tuple[Int32s, int]:
    """A column's values as int32 numbers below the size that is returned too; NULL has a number of its own."""
    if not pa.types.is_dictionary(column.type):
        encoded = column.dictionary_encode(null_encoding="encode")
        return numbers(encoded.indices), len(encoded.dictionary)
    values = normalise(column.dictionary)  # several may be one value then, or NULL
    codes, size = _indices(values) if len(values) else (np.zeros(0, np.int32), 0)
    if not column.indices.null_count and size == len(values):
        return numbers(column.indices).astype(np.int32, copy=False), size
    nothing = codes[np.argmin(valid(values))] if values.null_count else size
    indices = np.where(valid(column.indices), numbers(column.indices, 0), len(values))
    return np.append(codes, np.int32(nothing))[indices], size + 1


def ordered_codes(*parts: pa.Array) -> tuple[list[Int32s], int]:
    """One order over several normalised Arrow arrays: int32 codes 0.. for each, -1 for NULL; and how many codes
    there are.

    Numbers of different types are compared as `values.comparable` has it.
    """
    if any(pa.types.is_null(part.type) for part in parts):
        parts = tuple(part for part in parts)
        typed = [part.type for part in parts if not pa.types.is_null(part.type)]
        parts = tuple(
            pa.nulls(len(p), typed[0] if typed else pa.int64()) if pa.types.is_null(p.type) else p for p in parts
        )
    parts = tuple(comparable(parts))
    if len({part.type for part in parts}) > 1:
        parts = tuple(part.cast(pa.float64(), safe=False) for part in parts)
    both = parts[0] if len(parts) == 1 else pa.concat_arrays(list(parts))
    values = both.drop_null() if both.null_count else both
    size = 0
    if not len(values):
        ranks = np.zeros(0, np.int32)
    elif pa.types.is_string(both.type) or pa.types.is_decimal(both.type):
        ranks = numbers(pc.rank(values, "ascending", tiebreaker="dense")).astype(np.int32) - 1
        size = int(ranks.max()) + 1
    else:
        ranks, size = dense_ranks(numbers(values))
    codes = ranks
    if both.null_count:
        codes = np.full(len(both), -1, dtype=np.int32)
        codes[valid(both)] = ranks
    ends = np.cumsum([len(part) for part in parts])
    return [codes[end - len(part) : end] for end, part in zip(ends, parts, strict=True)], size
