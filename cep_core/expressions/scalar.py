"""Expressions over single values: SQL's three-valued logic, composed of functions once and called many times.

Values are those of `cep_core.events.normalise`, one at a time: int (64 bits; times and durations in microseconds),
float, str, bool, None for NULL. Meaning is that of `values.evaluate` on columns.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.expressions.functions import Function, Value, function_of
from trendlake.cep_core.expressions.sql_functions import CASE, SQL_FUNCTIONS
from trendlake.cep_core.language import syntax as s

Reader: TypeAlias = Callable[[Any, int, Any], Value]
"""(register, event, iterations) -> value; see `registers`."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compiled(node: s.Expr, leaf: Callable[[s.Attribute], Reader]) -> Reader:
    """The expression as one function; `leaf` gives those of its attributes."""

    def part(child: s.Expr) -> Reader:
        return compiled(child, leaf)

    match node:
        case s.Literal(value=value):
            constant = float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value
            return lambda register, event, at: constant
        case s.Parameter(name=name):
            raise AssertionError(f"${name} is not bound")  # pragma: no cover - plans that run have no parameters
        case s.Attribute():
            return leaf(node)
        case s.Unary(op=op, operand=operand):
            return _unary(op, part(operand))
        case s.Binary(op="and" | "or" as op, left=left, right=right):
            return _logic(op == "or", [part(left), part(right)])
        case s.Binary(op=op, left=left, right=right) if op in COMPARISONS:
            return _strict(COMPARISONS[op], part(left), part(right))
        case s.Binary(op=op, left=left, right=right):
            return _strict(ARITHMETIC[op], part(left), part(right))
        case s.In(operand=operand, choices=choices):
            tested = part(operand)
            return _logic(True, [_strict(operator.eq, tested, part(choice)) for choice in choices])
        case s.SqlCall(function=function, arguments=arguments):
            return _sql_call(function, [part(argument) for argument in arguments])
        case s.Call(function=function, arguments=arguments):
            return _call(function_of(function), [part(argument) for argument in arguments])


def _strict(function: Callable[[Any, Any], Value], left: Reader, right: Reader) -> Reader:
    """NULL where either side is."""

    def run(register: Any, event: int, at: Any) -> Value:
        a = left(register, event, at)
        if a is None:
            return None
        b = right(register, event, at)
        return None if b is None else function(a, b)

    return run


def _logic(decisive: bool, sides: list[Reader]) -> Reader:
    """Kleene's OR (`decisive` is True) or AND (False) of conditions."""

    def run(register: Any, event: int, at: Any) -> Value:
        result: Value = not decisive
        for side in sides:
            value = side(register, event, at)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return run


def _unary(op: str, operand: Reader) -> Reader:
    if op == "isnull":
        return lambda register, event, at: operand(register, event, at) is None
    function = operator.not_ if op == "not" else _negative

    def run(register: Any, event: int, at: Any) -> Value:
        value = operand(register, event, at)
        return None if value is None else function(value)

    return run


def bounded(value: Value) -> Value:
    """The value, if a column could hold it: NaN reads as NULL. Raises BadEventsError for integers beyond 64 bits."""
    if type(value) is float:
        return None if value != value else value + 0.0
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise BadEventsError("an expression cannot be computed: overflow")
    return value


def _negative(value: Any) -> Value:
    return bounded(-value)


def _divide(a: Any, b: Any) -> Value:
    return None if b == 0 else bounded(float(a) / float(b))


def _remainder(a: Any, b: Any) -> Value:
    """SQL's %: the remainder has the dividend's sign."""
    if b == 0:
        return None
    if type(a) is int and type(b) is int:
        rest = abs(a) % abs(b)
        return rest if a >= 0 else -rest
    return None if math.isinf(a) else math.fmod(a, b)


ARITHMETIC: dict[str, Callable[[Any, Any], Value]] = {
    "+": lambda a, b: bounded(a + b),
    "-": lambda a, b: bounded(a - b),
    "*": lambda a, b: bounded(a * b),
    "/": _divide,
    "%": _remainder,
}


def _call(function: Function, arguments: list[Reader]) -> Reader:
    if not function.takes:
        return _of_several(function.value, arguments)
    of_all = function.value

    def run(register: Any, event: int, at: Any) -> Value:
        values = [argument(register, event, at) for argument in arguments]
        return None if None in values else bounded(of_all(*values))

    return run


def _of_several(function: Callable[..., Value], arguments: list[Reader]) -> Reader:
    def run(register: Any, event: int, at: Any) -> Value:
        values = [value for a in arguments if (value := a(register, event, at)) is not None]
        return bounded(function(*values)) if values else None

    return run


def _sql_call(name: str, arguments: list[Reader]) -> Reader:
    if name == CASE:
        return _case(arguments)
    of_all = SQL_FUNCTIONS[name].of
    return lambda register, event, at: of_all(*(argument(register, event, at) for argument in arguments))


def _case(arguments: list[Reader]) -> Reader:
    pairs, otherwise = list(zip(arguments[:-1:2], arguments[1:-1:2], strict=True)), arguments[-1]

    def run(register: Any, event: int, at: Any) -> Value:
        for condition, value in pairs:
            if condition(register, event, at):
                return value(register, event, at)
        return otherwise(register, event, at)

    return run
