"""What an expression says of the events bound so far: indices, running aggregates, `for each event`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from tests.reference.trends.events import Event
from tests.reference.trends.values import OutsideLanguageError, Value, evaluate
from trendlake.cep_core.language import syntax as s

Bound: TypeAlias = Mapping[str, Sequence[Event]]
"""Variable -> its events so far, in order."""


def holds(expression: s.Expr, bound: Bound, kleene: set[str]) -> bool:
    """Whether the condition is true of every event it speaks of: `a.x` of each event of a Kleene variable, `a[i]`,
    `a[i-1]` and `a[..i-1]` of each but the first. Where a variable has no event there is none."""
    return all(
        evaluate(expression, lambda read, at=at: value(read, bound, at)) is True  # type: ignore[misc]
        for at in _choices(expression, bound, kleene)
    )


def _choices(expression: s.Expr, bound: Bound, kleene: set[str]) -> Iterator[dict[str, int]]:
    ranges: dict[str, range] = {}
    styles: dict[str, set[bool]] = {}
    for read in s.attributes(expression):
        later = isinstance(read, s.Indexed) and read.index in ("i", "i-1", "..i-1")
        if read.variable not in kleene:
            if isinstance(read, s.Indexed):
                raise OutsideLanguageError(f"{read.variable} is one event")
        elif later or not isinstance(read, s.Indexed):
            ranges[read.variable] = range(1 if later else 0, len(bound.get(read.variable, ())))
            styles.setdefault(read.variable, set()).add(later)
    if any(len(actual) > 1 for actual in styles.values()):
        raise OutsideLanguageError("a.x speaks of each event, a[i].x of one")
    if not all(bound.get(read.variable) for read in s.attributes(expression)):
        return
    yield from (dict(zip(ranges, actual, strict=True)) for actual in product(*ranges.values()))


def value(read: s.Attribute, bound: Bound, at: Mapping[str, int]) -> Value:
    """An attribute of the event it names, `at` telling i (from 0) for each variable."""
    events = bound[read.variable]
    name = read.name
    if not isinstance(read, s.Indexed):
        return events[at.get(read.variable, 0)].values[name]
    match read.index:
        case "1":
            return events[0].values[name]
        case "LEN":
            return events[-1].values[name]
        case "i":
            return events[at[read.variable]].values[name]
        case "i-1":
            return events[at[read.variable] - 1].values[name]
    return aggregate(read.function, [event.values[name] for event in events[: at[read.variable]]])


def aggregate(function: str, cells: Sequence[Value]) -> Value:
    """SQL's aggregates: NULLs are skipped; of nothing, a count is 0 and all else NULL. Sums from left to right."""
    present = [cell for cell in cells if cell is not None]
    if function == "count":
        return len(present)
    if not present:
        return None
    if function in ("min", "max"):
        return min(present) if function == "min" else max(present)  # type: ignore[type-var]
    total: Value = present[0]
    for cell in present[1:]:
        total = total + cell  # type: ignore[operator]
    return total if function == "sum" else float(total) / len(present)  # type: ignore[arg-type]


def measure(expression: s.Expr, bound: Bound, kleene: set[str]) -> Value:
    """A `return` entry of a match: COUNT(a), SUM|AVG|MIN|MAX(a.x) over its events, and what is of one event, which is
    NULL where there is none."""

    def reduced(node: s.Expr) -> s.Expr:
        match node:
            case s.Call(function="count", arguments=(s.Attribute(variable="", name=name),)):
                return s.Literal(len(bound[name]), "int")
            case s.Call(
                function="count" | "sum" | "avg" | "min" | "max" as function, arguments=(s.Attribute() as read,)
            ):
                actual = aggregate(function, [event.values[read.name] for event in bound[read.variable]])
                return s.Literal(actual, "double")
            case s.Call(function=function, arguments=arguments):
                return s.Call(function, tuple(map(reduced, arguments)))
            case s.Binary(op=op, left=left, right=right):
                return s.Binary(op, reduced(left), reduced(right))
            case s.Unary(op=op, operand=operand):
                return s.Unary(op, reduced(operand))
            case s.Attribute(variable=variable) if not isinstance(node, s.Indexed) and variable in kleene:
                raise OutsideLanguageError(f"{variable}.{node.name} is of several events")
        return node

    return evaluate(reduced(expression), lambda read: value(read, bound, {}) if bound[read.variable] else None)
