"""Expressions over columns: SQL's three-valued logic on Arrow arrays, vectorised.

Columns are those of `cep_core.events.normalise`. Errors: BadEventsError when integers overflow 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools
from trendlake.cep_core.events.arrays import arrow, numbers, repeated, valid
from trendlake.cep_core.events.normalise import comparable, reals
from trendlake.cep_core.events.schema import result_type
from trendlake.cep_core.expressions.functions import DAY, Function, function_of
from trendlake.cep_core.expressions.sql_functions import CASE, case_of_columns, of_columns
from trendlake.cep_core.language import syntax as s


def evaluate(node: s.Expr, column: Callable[[s.Attribute], pa.Array], length: int) -> pa.Array:
    """The value of `node` for each of `length` rows; `column` gives an attribute's normalised array."""
    try:
        return _evaluate(node, column, length)
    except pa.ArrowInvalid as error:
        raise BadEventsError(f"an expression cannot be computed: {error}") from None


def typed(values: pa.Array, family: str) -> pa.Array:
    """Computed values as a column of results; times and dates are microseconds until here. `family`: of the values, or
    the name of a type of it."""
    kind, values = result_type(family), reals(values)
    if pa.types.is_date(kind) and pa.types.is_int64(values.type):
        return arrow((numbers(values, 0) // DAY).astype(np.int32), ~valid(values)).cast(kind)
    return values.cast(kind)


def constant(node: s.Expr) -> Any:
    """The value of an expression without attributes."""

    def none(attribute: s.Attribute) -> pa.Array:
        raise AssertionError(attribute)  # pragma: no cover - callers check

    return evaluate(node, none, 1)[0].as_py()


def true_where(asked: Bools, node: s.Expr, column: Callable[[s.Attribute], pa.Array]) -> Bools:
    """Those of the rows `asked` (bool) for which a condition is true. It is computed for them only: a number of an
    event that cannot be bound does not have to fit in it."""
    rows = np.flatnonzero(asked)
    if len(rows) == len(asked):
        return true_rows(evaluate(node, column, len(rows)))
    holds = np.zeros(len(asked), bool)
    if len(rows):
        index = arrow(rows)
        holds[rows] = true_rows(evaluate(node, lambda attribute: column(attribute).take(index), len(rows)))
    return holds


def true_rows(condition: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rows where a condition is true (not false, not NULL)."""
    if pa.types.is_null(condition.type):
        return np.zeros(len(condition), dtype=bool)
    filled: np.ndarray[Any, np.dtype[np.bool_]] = numbers(condition, False)
    return filled


def _evaluate(node: s.Expr, column: Callable[[s.Attribute], pa.Array], length: int) -> pa.Array:
    def value(part: s.Expr) -> pa.Array:
        return _evaluate(part, column, length)

    match node:
        case s.Literal(value=literal):
            return _literal(literal, length)
        case s.Parameter(name=name):
            raise AssertionError(f"${name} is not bound")  # pragma: no cover - plans that run have no parameters
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
            equal: pa.Array = arrow(np.zeros(length, np.bool_))
            left = value(operand)
            for choice in choices:
                equal = pc.or_kleene(equal, compare("=", left, value(choice)))
            return equal
        case s.SqlCall(function=function, arguments=arguments):
            arrays = [value(a) for a in arguments]
            return case_of_columns(arrays, length) if function == CASE else of_columns(function, arrays, length)
        case s.Call(function=function, arguments=arguments):
            return _call(function_of(function), [value(a) for a in arguments])


COMPARISONS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`a op b` is `b FLIPPED[op] a`."""


def compare(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """NULL where either side is."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return pa.nulls(len(left), pa.bool_())
    return COMPARISONS[op](*comparable([left, right]))


def _literal(literal: Any, length: int) -> pa.Array:
    if literal is None:
        return pa.nulls(length)
    if type(literal) is int and not -(2**63) <= literal < 2**63:
        return repeated(float(literal), length)
    return repeated(literal, length)


def _booleans(array: pa.Array) -> pa.Array:
    return array.cast(pa.bool_()) if pa.types.is_null(array.type) else array


def _retyped(array: pa.Array, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    return array if pa.types.is_null(array.type) else function(array)


def _arithmetic(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
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


def _finite(array: pa.Array) -> pa.Array:
    """NaN (inf - inf) reads as NULL."""
    if not pa.types.is_floating(array.type):
        return array
    return pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)


def _truncated_remainder(left: pa.Array, divisor: pa.Array, dtype: type) -> pa.Array:
    """SQL's %: the remainder has the dividend's sign."""
    a: AnyArray = numbers(left, 0).astype(dtype)
    b: AnyArray = numbers(divisor, 1).astype(dtype)
    return arrow(np.fmod(a, b), ~(valid(left) & valid(divisor)))


def _call(function: Function, arguments: list[pa.Array]) -> pa.Array:
    typed = [array for array in arguments if not pa.types.is_null(array.type)]
    if not typed:
        return arguments[0]
    if function.takes:
        return function.columns(*typed) if len(typed) == function.arguments else pa.nulls(len(arguments[0]))
    typed = comparable(typed)
    if any(pa.types.is_floating(array.type) for array in typed):
        typed = [array.cast(pa.float64(), safe=False) for array in typed]
    return function.columns(*typed)
