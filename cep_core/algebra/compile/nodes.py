"""The operators of a plan: frozen data, in a list in which each reads earlier ones by their place.

Attributes are those of an event without the partition's columns. Expressions name attributes by stream: `$1`, `$2` and
`$` in NEXT and FOLD, "" where there is one stream; a column of the partition is `$1`'s or "".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from trendlake.cep_core.algebra.compile.aggregates import AVG, COUNT, SUM
from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND, Dur
from trendlake.cep_core.language import syntax as s

Attributes: TypeAlias = tuple[tuple[str, str], ...]
"""(name, family) in order."""


@dataclass(frozen=True)
class Value:
    """A computed attribute."""

    name: str
    family: str
    expression: s.Expr


@dataclass(frozen=True)
class Total:
    """An aggregate of the events of one end: count (no argument: of events), sum, avg, min, max, max_by, min_by."""

    name: str
    family: str
    function: str
    arguments: tuple[s.Expr, ...]


@dataclass(frozen=True)
class Column:
    """An attribute of the output of NEXT or FOLD: attribute `source` of the stream `side` ($1, $2; $: as it is in the
    end)."""

    name: str
    family: str
    side: str
    source: str


@dataclass(frozen=True)
class Base:
    """The events of the source of one type (None: all)."""

    type_name: str | None
    attributes: Attributes


@dataclass(frozen=True)
class Filter:
    source: int
    condition: s.Expr
    attributes: Attributes


@dataclass(frozen=True)
class Select:
    source: int
    items: tuple[Value, ...]


@dataclass(frozen=True)
class Aggregate:
    source: int
    items: tuple[Total, ...]


@dataclass(frozen=True)
class Union:
    left: int
    right: int
    attributes: Attributes


@dataclass(frozen=True)
class Next:
    left: int
    right: int
    condition: s.Expr | None
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Fold:
    """`values` have the families that they have after every step."""

    left: int
    right: int
    keep: s.Expr | None
    go: s.Expr | None
    values: tuple[Value, ...]
    columns: tuple[Column, ...]


Node: TypeAlias = Base | Filter | Select | Aggregate | Union | Next | Fold


def attributes_of(node: Node) -> Attributes:
    """The attributes of the operator's events."""
    match node:
        case Select(items=items):
            return tuple((item.name, item.family) for item in items)
        case Aggregate(items=totals):
            return tuple((item.name, item.family) for item in totals)
        case Next(columns=columns) | Fold(columns=columns):
            return tuple((column.name, column.family) for column in columns)
        case _:
            return node.attributes


def inputs(node: Node) -> tuple[int, ...]:
    """The places of what it reads."""
    match node:
        case Base():
            return ()
        case Filter(source=source) | Select(source=source) | Aggregate(source=source):
            return (source,)
        case Union(left=left, right=right) | Next(left=left, right=right) | Fold(left=left, right=right):
            return (left, right)


def expressions(node: Node) -> Iterator[s.Expr]:
    """Every condition and value of it."""
    match node:
        case Filter(condition=condition):
            yield condition
        case Select(items=items):
            yield from (item.expression for item in items)
        case Aggregate(items=totals):
            yield from (argument for total in totals for argument in total.arguments)
        case Next(condition=condition) if condition is not None:
            yield condition
        case Fold(keep=keep, go=go, values=values):
            yield from (one for one in (keep, go) if one is not None)
            yield from (value.expression for value in values)
        case _:
            return


def reads(node: s.Expr, side: str) -> set[str]:
    """The attributes of one stream that an expression reads."""
    return {one.name for one in s.attributes(node) if one.variable == side and not isinstance(one, Dur)}


def mapped(node: s.Expr, change: Callable[[s.Attribute], s.Attribute]) -> s.Expr:
    """The expression with each attribute changed."""
    match node:
        case s.Attribute():
            return change(node)
        case s.Unary(operand=operand):
            return replace(node, operand=mapped(operand, change))
        case s.Binary(left=left, right=right):
            return replace(node, left=mapped(left, change), right=mapped(right, change))
        case s.In(operand=operand, choices=choices):
            return replace(node, operand=mapped(operand, change), choices=tuple(mapped(c, change) for c in choices))
        case s.Call(arguments=arguments):
            return replace(node, arguments=tuple(mapped(one, change) for one in arguments))
        case _:
            return node


def counts_events(node: Aggregate) -> bool:
    """Whether it matters to an instance aggregation how many equal events there are."""
    return any(item.function in (COUNT, SUM, AVG) for item in node.items)


def families_of(nodes: Sequence[Node], node: Node, partition: Mapping[str, str]) -> Callable[[s.Attribute], str]:
    """The families of the attributes in the expressions of `node`."""

    def own(place: int) -> dict[str, str]:
        return {**partition, **dict(attributes_of(nodes[place]))}

    sides: dict[str, dict[str, str]] = {}
    match node:
        case Filter(source=source) | Select(source=source) | Aggregate(source=source):
            sides[""] = own(source)
        case Next(left=left, right=right) | Fold(left=left, right=right):
            sides[FIRST], sides[SECOND] = own(left), own(right)
    if isinstance(node, Fold):
        sides[NOW] = {name: now_family(sides, name) for name in sides[FIRST]}
        sides[NOW] |= {value.name: value.family for value in node.values}

    def family(read: s.Attribute) -> str:
        return "duration" if isinstance(read, Dur) else sides[read.variable][read.name]

    return family


def now_family(sides: Mapping[str, Mapping[str, str]], name: str) -> str:
    """Of what an instance has of its first event, and then of the last: the one that holds both."""
    first, second = sides[FIRST][name], sides[SECOND].get(name, sides[FIRST][name])
    return second if first == "null" else first if second in (first, "null") else "double"


def at(node: Node, places: Mapping[int, int]) -> Node:
    """The operator with its inputs at other places."""
    match node:
        case Base():
            return node
        case Filter(source=source) | Select(source=source) | Aggregate(source=source):
            return replace(node, source=places[source])
        case Union(left=left, right=right) | Next(left=left, right=right) | Fold(left=left, right=right):
            return replace(node, left=places[left], right=places[right])
