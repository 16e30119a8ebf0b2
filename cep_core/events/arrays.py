"""Between numpy and Arrow without a copy where none is needed, and without pandas: pyarrow's own `to_numpy`, `array`
and `scalar` import it, and a worker would start half as fast again without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import AnyArray, Bools

_WORD = 16
"""Bytes of a decimal128."""


def numbers(array: pa.Array, null: Any = None) -> AnyArray:
    """The values of an Arrow array of numbers, moments or booleans; `null` where NULL. Read-only where nothing is
    copied. Raises ValueError for a NULL that `null` gives no value."""
    values = _stored(array)
    if not array.null_count:
        return values
    if null is None:
        raise ValueError("an array with NULLs has no plain values")
    return np.where(valid(array), values, values.dtype.type(null))


def values_at(array: pa.Array, rows: AnyArray) -> AnyArray:
    """As `numbers` of some rows, where any value may be in the place of a NULL."""
    return _stored(array)[rows]


def _stored(array: pa.Array) -> AnyArray:
    kind, count, first = array.type, len(array), array.offset
    data = array.buffers()[1]
    if pa.types.is_boolean(kind):
        return _bits(data, first, count)
    simple = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    dtype = np.dtype(kind.to_pandas_dtype() if simple else f"int{kind.bit_width}")
    size = first * dtype.itemsize
    return np.zeros(count, dtype) if data is None else np.frombuffer(data, dtype, count=count, offset=size)


def valid(array: pa.Array) -> Bools:
    """Where an Arrow array is not NULL."""
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    return _bits(array.buffers()[0], array.offset, len(array))


def _bits(data: pa.Buffer, first: int, count: int) -> Bools:
    if data is None:
        return np.zeros(count, np.bool_)
    used = np.frombuffer(data, np.uint8, count=-(-(first + count) // 8))
    return np.unpackbits(used, count=first + count, bitorder="little")[first:].view(np.bool_)


def read_only(values: AnyArray) -> AnyArray:
    """The same values, which may not be written: a view. Arrow's memory is read-only, and numba compiles a kernel
    once more for arrays that may be written, in half a minute where it is large."""
    view = values.view()
    view.flags.writeable = False
    return view


def arrow(values: AnyArray, missing: Bools | None = None) -> pa.Array:
    """An Arrow array of numbers or booleans; NULL where `missing`."""
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return _array(pa.from_numpy_dtype(values.dtype), len(values), missing, pa.py_buffer(data))


def decimals(values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Whole numbers, None for NULL, as an Arrow array of a decimal128 type of scale 0, which must hold them."""
    data = b"".join((value or 0).to_bytes(_WORD, "little", signed=True) for value in values)
    return _array(kind, len(values), np.array([value is None for value in values], np.bool_), pa.py_buffer(data))


def decimals_of_words(words: AnyArray, missing: Bools, kind: pa.DataType) -> pa.Array:
    """The same of whole numbers in two words, uint64 (n, 2): low, high."""
    return _array(kind, len(words), missing, pa.py_buffer(np.ascontiguousarray(words).astype("<u8", copy=False)))


def repeated(value: bool | int | float | str, count: int) -> pa.Array:
    """An Arrow array of one value."""
    if isinstance(value, str):
        data = value.encode()
        ends = pa.py_buffer(np.array([0, len(data)], np.int32))
        return pa.repeat(_array(pa.string(), 1, None, ends, pa.py_buffer(data))[0], count)
    return arrow(np.full(count, value))


def _array(kind: pa.DataType, count: int, missing: Bools | None, *data: pa.Buffer) -> pa.Array:
    known = None
    if missing is not None and missing.any():
        known = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(kind, count, [known, *data])
