"""Values and expressions: SQL's three-valued logic over Python's own numbers.

A value is int, float, str, bool or None (NULL); times are microseconds since the epoch, durations too are
microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from trendlake.cep_core.language import syntax as s

Value: TypeAlias = int | float | str | bool | None
Lookup: TypeAlias = Callable[[s.Attribute], Value]

_HOUR = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OutsideLanguageError(Exception):
    """The query or the events are outside what language.md gives a meaning to: refused, never guessed."""


def microseconds(moment: date | datetime) -> int:
    """A date or time (UTC where it has no zone) in microseconds since the epoch."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def value_of(raw: Any) -> Value:
    """A cell of a row as a value: NaN is NULL, times are microseconds."""
    match raw:
        case None | bool() | int() | str():
            return raw
        case float():
            if math.isinf(raw):
                raise OutsideLanguageError("an infinite attribute has no meaning in the language")
            return None if math.isnan(raw) else raw + 0.0  # -0.0 equals 0.0: one value, one group
        case date():
            return microseconds(raw)
    raise OutsideLanguageError(f"a {type(raw).__name__} is no value of the language")


def evaluate(node: s.Expr, lookup: Lookup) -> Value:
    """The value of an expression; `lookup` gives the attributes."""
    match node:
        case s.Literal(value=value):
            return value
        case s.Attribute():
            return lookup(node)
        case s.Unary(op=op, operand=operand):
            return _unary(op, evaluate(operand, lookup))
        case s.Binary(op=op, left=left, right=right):
            return binary(op, evaluate(left, lookup), evaluate(right, lookup))
        case s.In(operand=operand, choices=choices):
            result: Value = False
            for choice in choices:
                result = binary("or", result, binary("=", evaluate(operand, lookup), evaluate(choice, lookup)))
            return result
        case s.Call(function=function, arguments=arguments):
            return _call(function, [evaluate(argument, lookup) for argument in arguments])
    raise OutsideLanguageError(f"no such expression: {node}")


def _unary(op: str, value: Value) -> Value:
    if op == "isnull":
        return value is None
    if value is None:
        return None
    if op == "not":
        return not _truth(value)
    if op == "-":
        return _bounded(-_number(value))
    raise OutsideLanguageError(f"no such operator: {op}")


def binary(op: str, left: Value, right: Value) -> Value:
    """`left op right`. AND and OR are Kleene's; every other operator with a NULL operand is NULL."""
    if op in ("and", "or"):
        decisive = op == "or"  # TRUE decides an OR, FALSE an AND, whatever the other side
        sides = [None if side is None else _truth(side) for side in (left, right)]
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    if left is None or right is None:
        return None
    if op in _COMPARISONS:
        if _kind(left) != _kind(right):
            raise OutsideLanguageError(f"{left!r} {op} {right!r} compares different types")
        return _COMPARISONS[op](left, right)
    return _arithmetic(op, _number(left), _number(right))


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _arithmetic(op: str, left: int | float, right: int | float) -> Value:
    match op:
        case "+":
            return _bounded(left + right)
        case "-":
            return _bounded(left - right)
        case "*":
            return _bounded(left * right)
        case "/":
            return None if right == 0 else _bounded(float(left) / float(right))
        case "%":
            if right == 0:
                return None
            if isinstance(left, int) and isinstance(right, int):
                rest = abs(left) % abs(right)
                return rest if left >= 0 else -rest
            return math.fmod(left, right)
    raise OutsideLanguageError(f"no such operator: {op}")


def _call(function: str, arguments: list[Value]) -> Value:
    present = [argument for argument in arguments if argument is not None]
    match function:
        case "coalesce":
            return present[0] if present else None
        case "least" | "greatest":
            if len({_kind(value) for value in present}) > 1:
                raise OutsideLanguageError(f"{function} of different types: {present}")
            choose: Any = min if function == "least" else max
            return choose(present) if present else None
    if len(arguments) != 1:
        raise OutsideLanguageError(f"{function} of {len(arguments)} arguments")
    if arguments[0] is None and function in ("abs", "lower", "upper", "hour", "dayofweek", *_UNITS):
        return None
    match function, arguments[0]:
        case "abs", value:
            return _bounded(abs(_number(value)))
        case "lower", str() as text:
            return text.lower()
        case "upper", str() as text:
            return text.upper()
        case "hour", int() as time:
            return time // _HOUR % 24
        case "seconds" | "minutes" | "hours", int() as span:
            return span / _UNITS[function]
        case "dayofweek", int() as time:  # 1 = Sunday; the epoch was a Thursday
            return (time // (24 * _HOUR) + 4) % 7 + 1
    raise OutsideLanguageError(f"no such function: {function} of {arguments[0]!r}")


_UNITS = {"seconds": 1_000_000, "minutes": 60_000_000, "hours": 3_600_000_000}


def _kind(value: Value) -> str:
    return {bool: "boolean", str: "string"}.get(type(value), "number")


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise OutsideLanguageError(f"{value!r} is no condition")
    return value


def _number(value: Value) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OutsideLanguageError(f"{value!r} is no number")
    return value


def _bounded(number: int | float) -> Value:
    if isinstance(number, int):
        if not -(2**63) <= number < 2**63:
            raise OutsideLanguageError(f"{number} is beyond BIGINT")
        return number
    return None if math.isnan(number) else number
