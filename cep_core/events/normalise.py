"""Columns brought to few types: int64, float64 (NaN read as NULL, zero without a sign), string and bool.

Timestamps, dates (at midnight) and durations become int64 microseconds. Decimals that float64 tells apart, of up to
15 digits, are float64; longer ones stay decimals: as keys, and compared with one another and with whole numbers, they
are exact, and to compute with them or compare them with a float64 takes the nearest one (`reals`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.arrays import numbers

FLOAT64_DIGITS = 15
"""Different decimals of so many digits still have different nearest float64 values."""


_DAY = 86_400_000_000


def normalise(column: Any) -> pa.Array:
    """An Arrow column as one array of int64, float64, decimal, string, bool or null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    kind = array.type
    try:
        if pa.types.is_dictionary(kind):
            return normalise(array.dictionary_decode())
        if pa.types.is_integer(kind):
            return array.cast(pa.int64())
        if long_decimal(kind):
            return array
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            from trendlake.cep_core.events.kernels.values import (
                plain,  # brings numba, which compiling a pattern needs not
            )

            values = doubles(array)
            if plain(numbers(values, 0.0)):
                return values
            values = pc.add(values, 0.0)  # -0.0 is 0.0
            return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        if pa.types.is_timestamp(kind):
            # microseconds are whole numbers already: no value is copied
            return array.view(pa.int64()) if kind.unit == "us" else array.cast(pa.timestamp("us")).cast(pa.int64())
        if pa.types.is_date(kind):
            return pc.multiply(array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), _DAY)
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return array.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BadEventsError(f"a value does not fit: {error}") from None
    return array


def canonical(column: Any) -> pa.Array:
    """A column in which equal values have equal bits, for `group_codes` and hashes: every NaN is the same one, -0.0 is
    0.0; nothing else changes, and no value is rounded. NULL stays NULL. Equal as Spark compares (`<=>`, GROUP BY)."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_dictionary(kind) and pa.types.is_floating(kind.value_type):
        array, kind = array.dictionary_decode(), kind.value_type
    if not pa.types.is_floating(kind):
        return array
    return pc.if_else(pc.is_nan(array), pa.scalar(math.nan, kind), pc.add(array, pa.scalar(0.0, kind)))


def long_decimal(kind: pa.DataType) -> bool:
    """Whether a type is of decimals that float64 may not tell apart."""
    return bool(pa.types.is_decimal(kind)) and kind.precision > FLOAT64_DIGITS


def distinct_reals(arrays: Sequence[pa.Array], place: str) -> list[pa.Array]:
    """`reals` of normalised arrays that are then compared. Raises BadEventsError where two decimals become one float64:
    `place` says what compares them."""
    longer = [array for array in arrays if pa.types.is_decimal(array.type)]
    if longer:
        every = pc.unique(pa.concat_arrays(_common(longer)).drop_null())
        if pc.count_distinct(doubles(every)).as_py() < len(every):
            raise BadEventsError(
                f"{place} compares decimals that differ only past the digits of a double",
                hint="compare whole columns, a.x = b.x, or let the contract give the column at most 15 digits",
            )
    return [reals(array) for array in arrays]


def _common(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Decimals and int64 as decimals of one type that holds all of them."""
    kinds = [array.type if pa.types.is_decimal(array.type) else pa.decimal128(19, 0) for array in arrays]
    if len(set(kinds)) == 1 and not any(pa.types.is_integer(array.type) for array in arrays):
        return list(arrays)
    scale = max(kind.scale for kind in kinds)
    digits = scale + max(kind.precision - kind.scale for kind in kinds)
    common = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)
    wide = [array.cast(pa.decimal128(19, 0)) if pa.types.is_integer(array.type) else array for array in arrays]
    return [array.cast(common) for array in wide]


def comparable(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Numbers of different types in one in which they are compared: float64, where one of them is, else exact."""
    kinds = [array.type for array in arrays]
    if not any(pa.types.is_decimal(kind) for kind in kinds):
        return list(arrays)
    if any(pa.types.is_floating(kind) for kind in kinds):
        return [reals(array) for array in arrays]
    return _common(arrays)


def doubles(array: Any) -> Any:
    """Floats and decimals as float64: of a decimal the nearest one, as a literal of a pattern is read. Arrow's own cast
    multiplies by a power of ten that is rounded itself: -3.30 would be -3.3000000000000003."""
    return (array.cast(pa.string()) if pa.types.is_decimal(array.type) else array).cast(pa.float64(), safe=False)


def reals(array: pa.Array) -> pa.Array:
    """A normalised array as one to compute with: decimals as the nearest float64, all else as it is."""
    return doubles(array) if pa.types.is_decimal(array.type) else array
