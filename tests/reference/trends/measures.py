"""COUNT, MIN, MAX, SUM and AVG over all trends of a group: exact, rounded to a double at the very end.

MIN and MAX are of the attribute's own type.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tests.reference.trends.derive import Trend
from tests.reference.trends.events import Event
from tests.reference.trends.values import OutsideLanguageError, Value
from trendlake.cep_core.language import syntax as s

DIGITS = 10**38
_PRECISE = Context(prec=60)


def measure(name: str, asked: s.Measure, trends: Sequence[Trend], events: Sequence[Event]) -> dict[str, Any]:
    """The measure's column, and its `_log10` companion for COUNT and SUM."""
    if asked.variable is None:
        return counted(name, len(trends))
    held = [events[place] for trend in trends for place, variable in trend if variable == asked.variable]
    if asked.attribute is None:
        return counted(name, len(held))
    values: list[Any] = [event.values[asked.attribute] for event in held]
    present = [value for value in values if value is not None]
    if asked.function in ("min", "max"):
        choose: Any = min if asked.function == "min" else max
        return {name: choose(present) if present else None}
    numbers = [_number(value) for value in present]
    match asked.function:
        case "avg":
            return {name: float(sum(numbers) / len(numbers)) if numbers else None}
        case "sum":
            total = sum(numbers, Fraction(0)) if numbers else None
            return {name: double(total), f"{name}_log10": log10(total)}
    raise OutsideLanguageError(f"no such measure: {asked.function}")


def counted(name: str, count: int) -> dict[str, Any]:
    """A count up to 38 digits, NULL beyond, and its logarithm."""
    return {name: count if count < DIGITS else None, f"{name}_log10": log10(Fraction(count))}


def log10(number: Fraction | None) -> float | None:
    """The logarithm of the magnitude, to the last digit of a double; NULL of NULL and of 0."""
    if not number:
        return None
    exact = _PRECISE.divide(Decimal(abs(number.numerator)), Decimal(number.denominator))
    return float(_PRECISE.log10(exact))


def double(number: Fraction | None) -> float | None:
    """The nearest double; NULL when it is beyond the largest one."""
    try:
        return None if number is None else float(number)
    except OverflowError:
        return None


def _number(value: Value) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OutsideLanguageError(f"{value!r} is no number to be summed or compared")
    return Fraction(value)
