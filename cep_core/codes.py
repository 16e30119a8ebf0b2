"""Values as small whole numbers: equal values share a code; ordered codes keep the order. NULL is -1 where it is
nobody's equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

Array = Any


def dense_ranks(values: Array) -> tuple[Array, int]:
    """int64 ranks 0.. of numbers, equal ones sharing theirs; and how many there are. One sort, one pass."""
    order = np.argsort(values)
    ranks = np.empty(len(values), np.int64)
    return ranks, int(_dense(values, order, ranks))


@njit(cache=True, nogil=True)
def _dense(values: Array, order: Array, ranks: Array) -> int:
    rank = -1
    for i in range(order.shape[0]):
        if i == 0 or values[order[i]] != values[order[i - 1]]:
            rank += 1
        ranks[order[i]] = rank
    return rank + 1


def group_codes(columns: Sequence[Array], length: int) -> Array:
    """int64 codes 0..: rows agree on every column exactly when their codes do. NULL agrees with NULL, as in GROUP
    BY."""
    codes = np.zeros(length, dtype=np.int64)
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        encoded = column.dictionary_encode(null_encoding="encode")
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        size = max(1, len(encoded.dictionary))
        codes = codes * size + indices
        if size > 1 and len(columns) > 1:
            codes = dense_ranks(codes)[0]
    return codes


def ordered_codes(*parts: Array) -> tuple[list[Array], int]:
    """One order over several normalised Arrow arrays: int64 codes 0.. for each, -1 for NULL; and how many codes
    there are.

    Numbers of different types are compared as float64.
    """
    if any(pa.types.is_null(part.type) for part in parts):
        parts = tuple(part for part in parts)
        typed = [part.type for part in parts if not pa.types.is_null(part.type)]
        parts = tuple(
            pa.nulls(len(p), typed[0] if typed else pa.int64()) if pa.types.is_null(p.type) else p for p in parts
        )
    if len({part.type for part in parts}) > 1:
        parts = tuple(part.cast(pa.float64(), safe=False) for part in parts)
    both = pa.concat_arrays(list(parts))
    codes = np.full(len(both), -1, dtype=np.int64)
    valid = pc.is_valid(both).to_numpy(zero_copy_only=False)
    size = 0
    if valid.any():
        if pa.types.is_string(both.type):
            ranks = pc.rank(both.drop_null(), "ascending", tiebreaker="dense").to_numpy().astype(np.int64) - 1
            size = int(ranks.max()) + 1
        else:
            ranks, size = dense_ranks(both.drop_null().to_numpy(zero_copy_only=False))
        codes[valid] = ranks
    ends = np.cumsum([len(part) for part in parts])
    return [codes[end - len(part) : end] for end, part in zip(ends, parts, strict=True)], size
