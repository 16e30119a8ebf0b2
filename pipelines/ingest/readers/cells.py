"""Cells of files as values of a contract's types: exactly what the file says, or a refusal that names the cell.

| the file's cell | text | whole numbers | float, double | decimal | boolean | date | timestamp |
|---|---|---|---|---|---|---|---|
| text (CSV, JSON, Parquet) | itself | digits only | nearest | exact | true, false, 1, 0 | ISO 8601 | ISO 8601 |
| number in JSON | as it is written | digits only | nearest | exact | no | no | no |
| true, false | no | no | no | no | itself | no | no |
| Parquet: whole number | its digits | in range | exact only | exact | no | no | no |
| Parquet: float, double | no | whole, below 2^53 | exact only | no | no | no | no |
| Parquet: decimal | of scale 0: its digits | whole, in range | up to 15 digits | exact | no | no | no |
| Parquet: date | no | no | no | no | no | itself | midnight UTC |
| Parquet: timestamp | no | no | no | no | no | no | itself |

Times without a zone are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MOMENT = pa.timestamp("us", "UTC")
ZONED = r"(Z|[+-]\d{2}:?\d{2})$"
"""How a time ends that says its zone."""
WHOLE = r"^-?[0-9]+$"
EXACT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
INFINITE = r"(?i)^[+-]?inf(inity)?$"
DAY_US = 86_400_000_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970: what Spark and Python can hold."""
MOST_DIGITS = 38
"""Of a decimal."""
DIGITS_OF_A_DOUBLE = 15
"""So many decimal digits go into a double and come back as they were."""


class BadCellError(Exception):
    """The cell number `row` (from 0) of a block of a column, `shown`, is not what the column's type takes."""

    def __init__(self, row: int, shown: str) -> None:
        super().__init__(row, shown)
        self.row = row
        self.shown = shown


@dataclass(frozen=True)
class Cells:
    """A column of a block of rows, as a file has it. `values`: texts, booleans, or of whatever type Parquet says; with
    `literal`, numbers of JSON as they are written, as texts."""

    values: pa.Array
    literal: bool = False

    @property
    def texts(self) -> bool:
        return not self.literal and is_text(self.values.type)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def values_of(cells: Cells, kind: pa.DataType, words: Sequence[str]) -> pa.Array:
    """The cells as values of `kind`, a type of `arrow_type`. `words`: texts that mean NULL where `kind` is no text.
    Raises BadCellError for the first cell that the type does not take as it is."""
    values = cells.values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    if cells.literal:
        return _of_literals(values, kind)
    if is_text(values.type):
        values = values.cast(pa.string())
        return values if pa.types.is_string(kind) else _of_texts(_without(values, words), kind)
    return _of_arrow(values, kind)


def _without(texts: pa.Array, words: Sequence[str]) -> pa.Array:
    """Texts without the space around them; NULL for empty ones and for `words`."""
    trimmed = pc.utf8_trim_whitespace(texts)
    nothing = pc.is_in(trimmed, value_set=pa.array(["", *words], pa.string()))
    return pc.if_else(nothing, pa.scalar(None, pa.string()), trimmed)


def _of_literals(literals: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        _refuse(literals, pc.invert(pc.match_substring_regex(literals, EXACT)))  # NaN and Infinity
        return literals
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        _refuse(literals, pc.is_valid(literals))
    return _of_texts(literals, kind)


def _of_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind):
        _refuse(texts, pc.invert(pc.match_substring_regex(texts, WHOLE)))
    if pa.types.is_decimal(kind):
        _refuse(texts, pc.invert(pc.match_substring_regex(texts, EXACT)))
    values = _cast(texts, _moments if pa.types.is_timestamp(kind) else lambda part: part.cast(kind))
    if pa.types.is_floating(kind):  # a number that is too large for the type comes as infinite
        _refuse(texts, pc.and_(pc.is_inf(values), pc.invert(pc.match_substring_regex(texts, INFINITE))))
    _refuse_years(texts, values)
    return values


def _moments(texts: pa.Array) -> pa.Array:
    """ISO 8601 texts as moments; UTC where they say no zone."""
    zoned = pc.match_substring_regex(texts, ZONED)
    none = pa.scalar(None, pa.string())
    with_zone = pc.if_else(zoned, texts, none).cast(MOMENT)
    without = pc.if_else(zoned, none, texts).cast(pa.timestamp("us")).cast(MOMENT)
    return pc.coalesce(with_zone, without)


def _of_arrow(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a Parquet file, or truth values of JSON: see the table above."""
    have = values.type
    if not _takes(kind, have):
        _refuse(values, pc.is_valid(values))
        return pa.nulls(len(values), kind)
    if pa.types.is_floating(have) and pa.types.is_integer(kind):
        _refuse(values, pc.greater_equal(pc.abs(values.cast(pa.float64())), float(2 ** _mantissa(have))))
    if pa.types.is_integer(have) and pa.types.is_decimal(kind):  # Arrow looks at the types alone otherwise
        values = values.cast(pa.decimal128(MOST_DIGITS, 0))
    result = _cast(values, lambda part: part.cast(kind))
    if pa.types.is_floating(have) and pa.types.is_floating(kind):
        # a float that is not the double it came from; NaN is not equal to itself
        changed = pc.not_equal(result.cast(pa.float64()), values.cast(pa.float64()))
        _refuse(values, pc.and_(changed, pc.invert(pc.is_nan(values.cast(pa.float64())))))
    _refuse_years(values, result)
    return result


def _takes(kind: pa.DataType, have: pa.DataType) -> bool:
    whole = pa.types.is_integer(have) or (pa.types.is_decimal(have) and have.scale == 0)
    if pa.types.is_string(kind):
        return bool(whole)
    if pa.types.is_integer(kind):
        return bool(whole or pa.types.is_floating(have) or pa.types.is_decimal(have))
    if pa.types.is_floating(kind):
        short = pa.types.is_decimal(have) and have.precision <= DIGITS_OF_A_DOUBLE
        return bool(pa.types.is_integer(have) or pa.types.is_floating(have) or short)
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_integer(have) or pa.types.is_decimal(have))
    if pa.types.is_boolean(kind):
        return bool(pa.types.is_boolean(have))
    if pa.types.is_date(kind):
        return bool(pa.types.is_date(have))
    return bool(pa.types.is_date(have) or pa.types.is_timestamp(have))


def _mantissa(kind: pa.DataType) -> int:
    return {16: 11, 32: 24, 64: 53}[kind.bit_width]


def _refuse_years(cells: pa.Array, values: pa.Array) -> None:
    """Raises BadCellError for a day or moment outside of the years 1 to 9999."""
    if pa.types.is_date(values.type):
        days, unit = values.cast(pa.int32()), 1
    elif pa.types.is_timestamp(values.type):
        days, unit = values.cast(pa.int64()), DAY_US
    else:
        return
    outside = pc.or_(pc.less(days, FIRST_DAY * unit), pc.greater_equal(days, (LAST_DAY + 1) * unit))
    _refuse(cells, outside)


def _refuse(cells: pa.Array, bad: Any) -> None:
    """Raises BadCellError for the first cell where `bad` is true."""
    row = pc.index(bad, True).as_py()
    if row >= 0:
        raise BadCellError(row, _shown(cells, row))


def _cast(cells: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The cells converted. Raises BadCellError for the first that cannot be: looked for by halves."""
    try:
        return convert(cells)
    except pa.ArrowException:
        low, high = 0, len(cells)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(cells.slice(low, middle - low))
            low = middle
        except pa.ArrowException:
            high = middle
    raise BadCellError(low, _shown(cells, low))


def _shown(cells: pa.Array, row: int) -> str:
    try:
        value = cells[row].as_py()
    except (ValueError, OverflowError):  # a year that Python does not have
        return f"{cells[row].value} ({cells.type})"
    text = f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:50]} [...]"
