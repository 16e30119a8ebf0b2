"""Hashes of values, the same in every worker and every process: equal values of a group have equal hashes.

Equal as the engine has it (`cep_core.events.normalise`): a NaN is a NULL, zero has no sign.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import UInt64s
from trendlake.cep_core.events.arrays import numbers, valid
from trendlake.cep_core.events.normalise import normalise
from trendlake.pipelines.execute.kernels.hashes import fold, text_hashes

_START = np.uint64(0x243F6A8885A308D3)
_NULL = np.uint64(0x13198A2E03707344)


def row_hashes(columns: Sequence[pa.Array], length: int) -> UInt64s:
    """uint64 (length): one hash for the values of a row. `columns`: Arrow arrays, dictionaries among them."""
    hashes = np.full(length, _START, np.uint64)
    for column in columns:
        fold(hashes, _column(column))
    return hashes


def _column(column: pa.Array) -> UInt64s:
    """uint64: what is hashed of each value."""
    if pa.types.is_dictionary(column.type):
        known = np.append(_column(column.dictionary), _NULL)
        codes = numbers(column.indices, 0)
        return known[np.where(valid(column.indices), codes, len(known) - 1) if column.indices.null_count else codes]
    array = normalise(column)
    if pa.types.is_null(array.type):
        return np.full(len(array), _NULL, np.uint64)
    if pa.types.is_boolean(array.type):
        values = numbers(array, False).astype(np.uint64)
    elif pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        values = numbers(array, 0).view(np.uint64)
    else:
        values = _texts_of(array.cast(pa.string()))
    return np.where(valid(array), values, _NULL) if array.null_count else values


def _texts_of(array: pa.Array) -> UInt64s:
    hashes = np.empty(len(array), np.uint64)
    if len(array):
        _, ends, texts = array.buffers()
        data = np.zeros(0, np.uint8) if texts is None else np.frombuffer(texts, np.uint8)
        text_hashes(np.frombuffer(ends, np.int32)[array.offset :], data, hashes)
    return hashes
