"""Values of rows that this process has read, compared and written as Spark does it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.pipelines.lake.road import NotHere


def comparable(value: Any) -> tuple[Any, ...]:
    """A key that Python orders, and finds equal, as Spark does with `value` (`ORDER BY`, `<=>`): NULL is the least and
    equals itself, so does NaN, the greatest of the numbers; -0.0 is 0.0. Hashable."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return (1, tuple(map(comparable, value)))
    return (1, value)


def texts_here(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | NotHere:
    """`values` as Spark casts them to STRING, but for types and days whose text is Java's own."""
    kind = values.type
    whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if not (whole or pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind)):
        return NotHere(f"the text of {kind}")
    if pa.types.is_date(kind) and not _four_digits(values):
        return NotHere("the text of a day whose year has not four digits")
    return values.cast(pa.string())


def _four_digits(days: pa.Array | pa.ChunkedArray) -> bool:
    ends = pc.min_max(days.cast(pa.date32()).cast(pa.int32())).as_py()
    first, last = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))
    return ends["min"] is None or bool(first <= ends["min"] and ends["max"] <= last)
