"""Expressions over columns: SQL's three-valued logic on Arrow arrays, vectorised.

Columns are brought to few types first (`normalise`): int64, float64 (NaN read as NULL, zero without a sign), string,
bool; timestamps, dates (at midnight) and durations as int64 microseconds. Decimals that float64 tells apart, of up to
15 digits, are float64; longer ones stay decimals: as keys, and compared with one another and with whole numbers, they
are exact, and to compute with them or compare them with a float64 takes the nearest one (`reals`). Errors:
BadEventsError when integers overflow 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from cep_core.errors import BadEventsError
from cep_core.events.arrays import arrow, numbers, repeated, valid
from cep_core.language import syntax as s

Array: TypeAlias = Any  # pyarrow.Array: the package has no type stubs

FLOAT64_DIGITS = 15
"""Decimals of so many digits are still told apart by the float64 next to each."""

_DAY = 86_400_000_000
_HOUR = 3_600_000_000


def normalise(column: Any) -> Array:
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
            values = doubles(array)
            if not values.null_count and _plain(numbers(values)):
                return values
            values = pc.add(values, 0.0)  # -0.0 is 0.0
            return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        if pa.types.is_timestamp(kind):
            return array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        if pa.types.is_date(kind):
            return pc.multiply(array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), _DAY)
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return array.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BadEventsError(f"a value does not fit: {error}") from None
    return array


def long_decimal(kind: pa.DataType) -> bool:
    """Whether a type is of decimals that float64 may not tell apart."""
    return bool(pa.types.is_decimal(kind)) and kind.precision > FLOAT64_DIGITS


def distinct_reals(arrays: Sequence[Array], place: str) -> list[Array]:
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


def _common(arrays: Sequence[Array]) -> list[Array]:
    """Decimals and int64 as decimals of one type that holds all of them."""
    kinds = [array.type if pa.types.is_decimal(array.type) else pa.decimal128(19, 0) for array in arrays]
    if len(set(kinds)) == 1 and not any(pa.types.is_integer(array.type) for array in arrays):
        return list(arrays)
    scale = max(kind.scale for kind in kinds)
    digits = scale + max(kind.precision - kind.scale for kind in kinds)
    common = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)
    wide = [array.cast(pa.decimal128(19, 0)) if pa.types.is_integer(array.type) else array for array in arrays]
    return [array.cast(common) for array in wide]


def comparable(arrays: Sequence[Array]) -> list[Array]:
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


def reals(array: Array) -> Array:
    """A normalised array as one to compute with: decimals as the nearest float64, all else as it is."""
    return doubles(array) if pa.types.is_decimal(array.type) else array


@njit(cache=True, nogil=True)
def _plain(doubles: Array) -> bool:
    """Whether none is a NaN or a zero with a sign."""
    odd = 0
    for x in doubles:
        odd += x != x or (x == 0.0 and np.signbit(x))
    return odd == 0


def evaluate(node: s.Expr, column: Callable[[s.Attribute], Array], length: int) -> Array:
    """The value of `node` for each of `length` rows; `column` gives an attribute's normalised array."""
    try:
        return _evaluate(node, column, length)
    except pa.ArrowInvalid as error:
        raise BadEventsError(f"an expression cannot be computed: {error}") from None


def constant(node: s.Expr) -> Any:
    """The value of an expression without attributes."""

    def none(attribute: s.Attribute) -> Array:
        raise AssertionError(attribute)  # pragma: no cover - callers check

    return evaluate(node, none, 1)[0].as_py()


def true_where(asked: Array, node: s.Expr, column: Callable[[s.Attribute], Array]) -> Array:
    """Which of the rows `asked` (bool) a condition is true of. It is computed of them only: a number of an event that
    can't be bound need not fit in it."""
    rows = np.flatnonzero(asked)
    if len(rows) == len(asked):
        return true_rows(evaluate(node, column, len(rows)))
    found = np.zeros(len(asked), bool)
    if len(rows):
        index = arrow(rows)
        found[rows] = true_rows(evaluate(node, lambda attribute: column(attribute).take(index), len(rows)))
    return found


def true_rows(condition: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rows where a condition is true (not false, not NULL)."""
    if pa.types.is_null(condition.type):
        return np.zeros(len(condition), dtype=bool)
    filled: np.ndarray[Any, np.dtype[np.bool_]] = numbers(condition, False)
    return filled


def _evaluate(node: s.Expr, column: Callable[[s.Attribute], Array], length: int) -> Array:
    def value(part: s.Expr) -> Array:
        return _evaluate(part, column, length)

    match node:
        case s.Literal(value=literal):
            return _literal(literal, length)
        case s.Attribute():
            return column(node)
        case s.Unary(op="isnull", operand=operand):
            return pc.is_null(value(operand))
        case s.Unary(op="not", operand=operand):
            return pc.invert(_booleans(value(operand)))
        case s.Unary(operand=operand):
            return _retyped(value(operand), lambda a: pc.negate_checked(a))
        case s.Binary(op="and", left=left, right=right):
            return pc.and_kleene(_booleans(value(left)), _booleans(value(right)))
        case s.Binary(op="or", left=left, right=right):
            return pc.or_kleene(_booleans(value(left)), _booleans(value(right)))
        case s.Binary(op=op, left=left, right=right) if op in COMPARISONS:
            return compare(op, value(left), value(right))
        case s.Binary(op=op, left=left, right=right):
            return _arithmetic(op, value(left), value(right))
        case s.In(operand=operand, choices=choices):
            found: Array = arrow(np.zeros(length, np.bool_))
            left = value(operand)
            for choice in choices:
                found = pc.or_kleene(found, compare("=", left, value(choice)))
            return found
        case s.Call(function=function, arguments=arguments):
            return _call(function, [value(a) for a in arguments])


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`a op b` is `b FLIPPED[op] a`."""


def compare(op: str, left: Array, right: Array) -> Array:
    """NULL where either side is."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return pa.nulls(len(left), pa.bool_())
    return COMPARISONS[op](*comparable([left, right]))


def _literal(literal: Any, length: int) -> Array:
    if literal is None:
        return pa.nulls(length)
    if type(literal) is int and not -(2**63) <= literal < 2**63:
        return repeated(float(literal), length)
    return repeated(literal, length)


def _booleans(array: Array) -> Array:
    return array.cast(pa.bool_()) if pa.types.is_null(array.type) else array


def _retyped(array: Array, function: Callable[[Array], Array]) -> Array:
    return array if pa.types.is_null(array.type) else function(array)


def _arithmetic(op: str, left: Array, right: Array) -> Array:
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return pa.nulls(len(left), pa.float64())
    left, right = reals(left), reals(right)
    if op == "+":
        return _finite(pc.add_checked(left, right))
    if op == "-":
        return _finite(pc.subtract_checked(left, right))
    if op == "*":
        return _finite(pc.multiply_checked(left, right))
    divisor = pc.if_else(pc.equal(right, 0), pa.scalar(None, right.type), right)
    if op == "/":
        return _finite(pc.divide(left.cast(pa.float64(), safe=False), divisor.cast(pa.float64(), safe=False)))
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return _truncated_remainder(left, divisor, np.int64)
    return _truncated_remainder(left, divisor, np.float64)


def _finite(array: Array) -> Array:
    """NaN (inf - inf) reads as NULL."""
    if not pa.types.is_floating(array.type):
        return array
    return pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)


def _truncated_remainder(left: Array, divisor: Array, dtype: type) -> Array:
    """SQL's %: the remainder has the dividend's sign."""
    a, b = numbers(left, 0).astype(dtype), numbers(divisor, 1).astype(dtype)
    return arrow(np.fmod(a, b), ~(valid(left) & valid(divisor)))


def _call(function: str, arguments: list[Array]) -> Array:
    first = arguments[0]
    if function in ("least", "greatest", "coalesce"):
        typed = [a for a in arguments if not pa.types.is_null(a.type)]
        if not typed:
            return first
        typed = comparable(typed)
        if any(pa.types.is_floating(a.type) for a in typed):
            typed = [a.cast(pa.float64(), safe=False) for a in typed]
        if function == "coalesce":
            return pc.coalesce(*typed)
        chosen = pc.min_element_wise if function == "least" else pc.max_element_wise
        return chosen(*typed, skip_nulls=True)
    if pa.types.is_null(first.type):
        return first
    if function == "abs":
        return pc.abs_checked(first)
    if function == "lower":
        return pc.utf8_lower(first)
    if function == "upper":
        return pc.utf8_upper(first)
    return _calendar(function, first)


def _calendar(function: str, array: Array) -> Array:
    """`hour` (0-23) and `dayofweek` (1 = Sunday) of int64 microseconds, in UTC."""
    us = numbers(array, 0)
    found = (us // _HOUR) % 24 if function == "hour" else ((us // _DAY) + 4) % 7 + 1
    return arrow(found.astype(np.int64), ~valid(array))
