"""COUNT, MIN, MAX, SUM, AVG and the others over all trends of a group: exact, rounded to a double at the very end.

MIN and MAX are of the attribute's own type.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tests.reference.trends.derive import Trend
from tests.reference.trends.events import Event
from tests.reference.trends.values import OutsideLanguageError, Value, evaluate
from trendlake.cep_core.language import syntax as s

DIGITS = 10**38
_PRECISE = Context(prec=60)


def measure(
    name: str, asked: s.Measure, trends: Sequence[Trend], events: Sequence[Event], variables: Sequence[str]
) -> dict[str, Any]:
    """The measure's column, and its `_log10` companion for COUNT and SUM. `variables`: in the pattern's order."""
    if asked.function == "longest":
        return {name: longest(trends, events, variables)}
    if asked.of == "length":
        return of_lengths(name, asked.function, [length(trend, asked.variable) for trend in trends])
    if asked.of == "duration":
        return of_durations(name, asked.function, trends, events)
    if asked.variable is None:
        return counted(name, sum(1 for trend in trends if chosen(trend, asked.where)))
    held = [
        events[place]
        for trend in trends
        for place, variable in trend
        if variable == asked.variable and passes(events[place], asked.where)
    ]
    if asked.attribute is None:
        return counted(name, len(held))
    if asked.function in CHOICES:
        return {name: choice(asked, held)}
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


CHOICES = ("first", "last", "min_by", "max_by")


def length(trend: Trend, variable: str | None) -> int:
    """Events of a trend, or of those under a variable."""
    return sum(1 for _, under in trend if variable in (None, under))


def of_lengths(name: str, function: str, lengths: Sequence[int]) -> dict[str, Any]:
    """MIN, MAX, SUM or AVG of LENGTH."""
    if function == "sum":
        return counted(name, sum(lengths))
    if not lengths:
        return {name: None}
    if function == "avg":
        return {name: float(Fraction(sum(lengths), len(lengths)))}
    return {name: min(lengths) if function == "min" else max(lengths)}


def of_durations(name: str, function: str, trends: Sequence[Trend], events: Sequence[Event]) -> dict[str, Any]:
    """MIN, MAX, SUM or AVG of DURATION, in seconds."""
    lasts = [Fraction(events[trend[-1][0]].time - events[trend[0][0]].time, 1_000_000) for trend in trends]
    if function == "sum":
        total = sum(lasts, Fraction(0)) if lasts else None
        return {name: double(total), f"{name}_log10": log10(total)}
    if not lasts:
        return {name: None}
    if function == "avg":
        return {name: float(sum(lasts) / len(lasts))}
    return {name: float(min(lasts) if function == "min" else max(lasts))}


def chosen(trend: Trend, where: s.Expr | None) -> bool:
    """The trend has a length that FILTER asks for: LENGTH(..) op k."""
    if where is None:
        return True
    if not (isinstance(where, s.Binary) and isinstance(where.left, s.Call) and isinstance(where.right, s.Literal)):
        raise OutsideLanguageError("COUNT(*) is filtered by LENGTH(..) op k")
    of = [read.name for read in s.attributes(where.left)]
    have, bound = length(trend, of[0] if of else None), where.right.value
    if not isinstance(bound, int) or not 1 <= bound <= 64:
        raise OutsideLanguageError(f"{bound} is no whole number from 1 to 64")
    tests = {"=": have == bound, "<": have < bound, "<=": have <= bound, ">": have > bound, ">=": have >= bound}
    if where.op not in tests:
        raise OutsideLanguageError(f"no {where.op} of lengths")
    return tests[where.op]


def passes(event: Event, where: s.Expr | None) -> bool:
    """The event satisfies the condition of FILTER."""
    return where is None or evaluate(where, lambda read: event.values[read.name]) is True


def choice(asked: s.Measure, held: Sequence[Event]) -> Value:
    """FIRST, LAST, MIN_BY or MAX_BY: the attribute of one of the occurrences. NULLs take no part."""
    by = asked.by[1] if asked.by else None
    shown = [event for event in held if event.values[str(asked.attribute)] is not None]
    if by is not None:
        shown = [event for event in shown if event.values[by] is not None]
    if not shown:
        return None
    if by is not None:
        extreme: Any = max if asked.function == "max_by" else min
        best = extreme(event.values[by] for event in shown)
        shown = [event for event in shown if event.values[by] == best]
    end: Any = max if asked.function == "last" else min
    return end(shown, key=lambda event: (event.time, event.values["event_id"])).values[str(asked.attribute)]


def longest(trends: Sequence[Trend], events: Sequence[Event], variables: Sequence[str]) -> list[Value] | None:
    """The ids of the events of a longest trend: that whose last event comes first, of one event that under the variable
    that stands first; then by the last but one; and so on."""
    if not trends:
        return None
    most = max(len(trend) for trend in trends)
    backwards = [
        [(place, variables.index(variable)) for place, variable in reversed(trend)]
        for trend in trends
        if len(trend) == most
    ]
    return [events[place].values["event_id"] for place, _ in reversed(min(backwards))]


def maximal(trends: Sequence[Trend]) -> list[Trend]:
    """The trends whose events are no proper part of another's."""
    sets = [frozenset(place for place, _ in trend) for trend in trends]
    return [trend for trend, mine in zip(trends, sets, strict=True) if not any(mine < other for other in sets)]


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
