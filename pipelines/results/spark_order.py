"""Values of rows that this process has read, compared and written as Spark does it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from trendlake.pipelines.errors import LocalUnsupportedError


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


def spark_texts(values: pa.ChunkedArray) -> list[str | None]:
    """`values` as Spark casts them to STRING. Raises LocalUnsupportedError for types whose text is Java's own."""
    kind = values.type
    whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if not (whole or pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind)):
        raise LocalUnsupportedError(f"the text of {kind}")
    return [None if value is None else _text(value) for value in values.to_pylist()]


def _text(value: str | bool | int | Decimal | date) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, Decimal) else str(value)
