"""Cells of files as values of a contract's types: exactly what the file says, or a refusal that names the cell.

| the file's cell | text | whole numbers | float, double | decimal | boolean | date | timestamp |
|---|---|---|---|---|---|---|---|
| text (CSV, JSON, Parquet) | itself | digits only | nearest | exact | true, false, 1, 0 | by format | by format |
| number in JSON | as it is written | digits only | nearest | exact | no | no | by format |
| true, false | no | no | no | no | itself | no | no |
| Parquet: whole number | its digits | in range | exact only | exact | no | no | by format |
| Parquet: float, double | no | whole, below 2^53 | exact only | no | no | no | no |
| Parquet: decimal | of scale 0: its digits | whole, in range | up to 15 digits | exact | no | no | no |
| Parquet: date | no | no | no | no | no | itself | midnight |
| Parquet: timestamp | no | no | no | no | no | no | itself |

The format is the `timeFormat` of the contract, else ISO 8601, which numbers do not have. Times without an offset, and
midnights, are those of the contract's `timeZone`, else UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.pipelines.contracts.time_formats import ISO, TimeFormat
from trendlake.pipelines.ingest.readers.refusals import Refusals
from trendlake.pipelines.ingest.readers.times import in_zone, iso_texts, read_moments, refuse_years

WHOLE = r"^-?[0-9]+$"
EXACT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
INFINITE = r"(?i)^[+-]?inf(inity)?$"
MOST_DIGITS = 38
"""Of a decimal."""
DIGITS_OF_A_DOUBLE = 15
"""So many decimal digits go into a double and come back as they were."""
ISO_IN_UTC = TimeFormat()


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


def values_of(cells: Cells, kind: pa.DataType, words: Sequence[str], how: TimeFormat = ISO_IN_UTC) -> pa.Array:
    """The cells as values of `kind`, a type of `arrow_type`. `words`: texts that mean NULL where `kind` is no text;
    `how`: how dates and times are written. Raises BadCellsError with the cells that the type does not take as they
    are."""
    values = cells.values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    refusals = Refusals(values)
    result = refuse_years(_converted(values, kind, words, how, refusals, literal=cells.literal), refusals)
    refusals.check()
    return result


def _converted(
    values: pa.Array, kind: pa.DataType, words: Sequence[str], how: TimeFormat, refusals: Refusals, *, literal: bool
) -> pa.Array:
    if literal:
        return _of_literals(values, kind, how, refusals)
    if is_text(values.type):
        values = values.cast(pa.string())
        return values if pa.types.is_string(kind) else _of_texts(_without(values, words), kind, how, refusals)
    if pa.types.is_timestamp(kind) and pa.types.is_integer(values.type) and how.format != ISO:
        return read_moments(values.cast(pa.string()), how, refusals)
    return _of_arrow(values, kind, how, refusals)


def _without(texts: pa.Array, words: Sequence[str]) -> pa.Array:
    """Texts without the space around them; NULL for empty ones and for `words`."""
    trimmed = pc.utf8_trim_whitespace(texts)
    nothing = pc.is_in(trimmed, value_set=pa.array(["", *words], pa.string()))
    return pc.if_else(nothing, pa.scalar(None, pa.string()), trimmed)


def _of_literals(literals: pa.Array, kind: pa.DataType, how: TimeFormat, refusals: Refusals) -> pa.Array:
    if pa.types.is_string(kind):
        return refusals.drop(literals, pc.invert(pc.match_substring_regex(literals, EXACT)))  # NaN and Infinity
    formatted = pa.types.is_timestamp(kind) and how.format != ISO
    if not (formatted or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        literals = refusals.drop(literals, pc.is_valid(literals))
    return _of_texts(literals, kind, how, refusals)


def _of_texts(texts: pa.Array, kind: pa.DataType, how: TimeFormat, refusals: Refusals) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return read_moments(texts, how, refusals)
    if pa.types.is_date(kind):
        texts = iso_texts(texts, how, refusals)
    if pa.types.is_integer(kind):
        texts = refusals.drop(texts, pc.invert(pc.match_substring_regex(texts, WHOLE)))
    if pa.types.is_decimal(kind):
        texts = refusals.drop(texts, pc.invert(pc.match_substring_regex(texts, EXACT)))
    values = refusals.convert(texts, lambda part: part.cast(kind))
    if pa.types.is_floating(kind):  # a number that is too large for the type comes as infinite
        infinite = pc.invert(pc.match_substring_regex(texts, INFINITE))
        return refusals.drop(values, pc.and_(pc.is_inf(values), infinite))
    return values


def _of_arrow(values: pa.Array, kind: pa.DataType, how: TimeFormat, refusals: Refusals) -> pa.Array:
    """Values of a Parquet file, or truth values of JSON: see the table above."""
    have = values.type
    if not _takes(kind, have):
        refusals.drop(values, pc.is_valid(values))
        return pa.nulls(len(values), kind)
    if pa.types.is_floating(have) and pa.types.is_integer(kind):
        large = pc.greater_equal(pc.abs(values.cast(pa.float64())), float(2 ** _mantissa(have)))
        values = refusals.drop(values, large)
    if pa.types.is_integer(have) and pa.types.is_decimal(kind):  # Arrow looks at the types alone otherwise
        values = values.cast(pa.decimal128(MOST_DIGITS, 0))
    if pa.types.is_timestamp(kind) and (pa.types.is_date(have) or have.tz is None):
        local = refusals.convert(values, lambda part: part.cast(pa.timestamp("us")))
        return in_zone(local, how.zone, refusals)
    result = refusals.convert(values, lambda part: part.cast(kind))
    if pa.types.is_floating(have) and pa.types.is_floating(kind):
        # a float that is not the double it came from; NaN is not equal to itself
        changed = pc.not_equal(result.cast(pa.float64()), values.cast(pa.float64()))
        return refusals.drop(result, pc.and_(changed, pc.invert(pc.is_nan(values.cast(pa.float64())))))
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
