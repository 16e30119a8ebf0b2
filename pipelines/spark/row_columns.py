"""Values and conditions of contracts as Spark columns: data, never SQL text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from cep_core.language import syntax as s

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def constant(value: Any) -> Column:
    """A value of a contract as it is. PySpark's `lit` takes days before 1582 for days of the Julian calendar, and no
    whole number beyond 64 bits. A moment without an offset is UTC."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return sf.timestamp_micros(sf.lit((moment - EPOCH) // MICROSECOND))
    if isinstance(value, date):
        return sf.date_from_unix_date(sf.lit((value - EPOCH.date()).days))
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return sf.lit(Decimal(value) if abs(value) < 10**38 else float(value))
    return sf.lit(value)


def _negative(value: Column) -> Column:
    """NULL where the type cannot hold it: `-value` would end the run at the least whole number."""
    return sf.try_subtract(sf.lit(0), value)


_OPERATORS: dict[str, Callable[[Column, Column], Column]] = {
    "+": sf.try_add,
    "-": sf.try_subtract,
    "*": sf.try_multiply,
    "/": lambda a, b: sf.try_divide(a.cast("double"), b.cast("double")),
    "%": lambda a, b: sf.try_mod(a, b),
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
}
SPARK_FORMS: dict[str, Callable[..., Column]] = {
    "abs": lambda value: sf.when(value < 0, _negative(value)).otherwise(value),
    "lower": sf.lower,
    "upper": sf.upper,
    "contains": sf.contains,
    "hour": sf.hour,
    "dayofweek": sf.dayofweek,
    "coalesce": sf.coalesce,
    "least": lambda *a: sf.least(*a) if len(a) > 1 else a[0],
    "greatest": lambda *a: sf.greatest(*a) if len(a) > 1 else a[0],
    "log10": sf.log10,
}
"""Spark's forms of the functions that conditions of contracts may name (`pipelines.contracts.row_conditions`)."""


def as_column(node: s.Expr) -> Column:
    """The expression over a frame's columns. Times are timestamps; durations intervals of microseconds."""
    match node:
        case s.Literal(value=value, kind="duration"):
            return sf.lit(timedelta(microseconds=int(value or 0)))
        case s.Literal(value=value, kind="timestamp"):
            return sf.timestamp_micros(sf.lit(value))
        case s.Literal(value=value):
            return constant(value)
        case s.Parameter(name=name):
            raise AssertionError(f"${name} has no value")  # pragma: no cover - conditions on rows have no parameters
        case s.Attribute(name=name):
            return sf.col("`" + name.replace("`", "``") + "`")
        case s.Unary(op="isnull", operand=operand):
            return as_column(operand).isNull()
        case s.Unary(op="not", operand=operand):
            return ~as_column(operand)
        case s.Unary(operand=operand):
            return _negative(as_column(operand))
        case s.Binary(op=op, left=left, right=right):
            return _OPERATORS[op](as_column(left), as_column(right))
        case s.In(operand=operand, choices=choices):
            tested = as_column(operand)
            return reduce(lambda a, b: a | b, [tested == as_column(choice) for choice in choices])
        case s.Call(function=function, arguments=arguments):
            return SPARK_FORMS[function](*map(as_column, arguments))
