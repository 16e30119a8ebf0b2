"""Hashes of values, the same in every worker and every process: equal values of a group have equal hashes.

Equal as the engine has it (`cep_core.expressions.columnar.normalise`): a NaN is a NULL, zero has no sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from cep_core.events.arrays import numbers, valid
from cep_core.events.normalise import normalise

Array = Any

_START = np.uint64(0x243F6A8885A308D3)
_NULL = np.uint64(0x13198A2E03707344)
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)


def row_hashes(columns: Sequence[Array], length: int) -> Array:
    """uint64 (length): one hash for the values of a row. `columns`: Arrow arrays, dictionaries among them."""
    found = np.full(length, _START, np.uint64)
    for column in columns:
        fold(found, _column(column))
    return found


def fold(hashes: Array, values: Array) -> None:
    """Each hash becomes that of itself and its value (uint64), in place."""
    _fold(hashes, values)


def _column(column: Array) -> Array:
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


def _texts_of(array: Array) -> Array:
    found = np.empty(len(array), np.uint64)
    if len(array):
        _, ends, texts = array.buffers()
        data = np.zeros(0, np.uint8) if texts is None else np.frombuffer(texts, np.uint8)
        _texts(np.frombuffer(ends, np.int32)[array.offset :], data, found)
    return found


@njit(cache=True, nogil=True)
def _texts(ends: Array, data: Array, found: Array) -> None:
    """FNV-1a of each text, mixed."""
    for i in range(found.shape[0]):
        x = _FNV_START
        for at in range(ends[i], ends[i + 1]):
            x = (x ^ np.uint64(data[at])) * _FNV_PRIME
        found[i] = _mixed(x)


@njit(cache=True, nogil=True)
def _fold(hashes: Array, values: Array) -> None:
    for i in range(hashes.shape[0]):
        hashes[i] = _mixed((hashes[i] ^ values[i]) + np.uint64(0x9E3779B97F4A7C15))


@njit(cache=True, nogil=True)
def _mixed(x: Any) -> Any:
    """The last steps of splitmix64: every bit of x tells on every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
