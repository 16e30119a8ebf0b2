"""Queries of one template: equal but for constants that attributes are compared with.

`FILTER{name = 'IBM' AND price < 10}(Stock) NEXT{$2.name = 'IBM'} Stock` ->
`FILTER{name = [0] AND price < [1]}(Stock) NEXT{$2.name = $1.[2]} Stock`, and ('IBM', 10, 'IBM').

A template has operators of two sorts: what is common to all its queries, and what is each query's own, from the first
FILTER with a constant on. Rows of own streams have a list: the queries that have the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import FLIPPED, parted
from trendlake.cep_core.algebra.compile.syntax import FIRST, SECOND, Dur
from trendlake.cep_core.events.array_types import MOST_EXACT
from trendlake.cep_core.expressions.types import Resolve, infer
from trendlake.cep_core.language import syntax as s

LIST = "\0list"
"""The attribute of own streams: the number of a row's list of queries."""
OPS = frozenset(FLIPPED) - {"!="}
TYPES = frozenset({"int", "double", "string", "boolean"})


@dataclass(frozen=True)
class Comparison:
    """`name op constant`, the constant by its number."""

    name: str
    op: str
    constant: int


@dataclass(frozen=True)
class Asked:
    """A FILTER's condition: comparisons with constants, its other parts, and those that can leave 64 bits."""

    comparisons: tuple[Comparison, ...] = ()
    safe: tuple[s.Expr, ...] = ()
    risky: tuple[s.Expr, ...] = ()


@dataclass(frozen=True)
class Form:
    """`nodes`: the operators; the attributes of own streams have their list. By operator: whether its stream is `own`,
    what a FILTER has `asked`, and the constants `added` to the left stream of NEXT or FOLD as attributes. `families`
    and values of the `constants`, by number. `template`: equal for queries that differ in the values only."""

    template: Any
    nodes: tuple[n.Node, ...]
    own: tuple[bool, ...]
    asked: tuple[Asked, ...]
    added: tuple[tuple[int, ...], ...]
    families: tuple[str, ...]
    constants: tuple[Any, ...]


def name_of(number: int) -> str:
    """A constant as an attribute: a name that no column has."""
    return f"\0{number}"


def form_of(nodes: Sequence[n.Node], partition: Mapping[str, str]) -> Form | None:
    """The template of a query and its constants; None where it has no constants, and where a stream with constants is
    on the right of NEXT or FOLD, in a UNION or aggregated: there each query has events of its own."""
    builder = _Builder(nodes, partition)
    for node in nodes:
        if not builder.add(node):
            return None
    if not builder.constants:
        return None
    own, asked, added = tuple(builder.own), tuple(builder.asked), tuple(builder.added)
    families = tuple(builder.families)
    bare = tuple(_bare(node, one) for node, one in zip(builder.nodes, asked, strict=True))
    return Form(
        (bare, own, asked, added, families), tuple(builder.nodes), own, asked, added, families, tuple(builder.constants)
    )


def _bare(node: n.Node, asked: Asked) -> n.Node:
    """Without the condition whose constants are elsewhere."""
    return replace(node, condition=s.Literal(True, "boolean")) if isinstance(node, n.Filter) else node


class _Builder:
    def __init__(self, nodes: Sequence[n.Node], partition: Mapping[str, str]) -> None:
        self.given, self.partition = nodes, partition
        self.nodes: list[n.Node] = []
        self.own: list[bool] = []
        self.asked: list[Asked] = []
        self.added: list[tuple[int, ...]] = []
        self.families: list[str] = []
        self.constants: list[Any] = []

    def add(self, node: n.Node) -> bool:
        """The next operator; whether it is of a sort that templates have."""
        family = n.families_of(self.given, node, self.partition)
        asked, before = Asked(), len(self.constants)
        own = any(self.own[place] for place in n.inputs(node))
        match node:
            case n.Filter(condition=condition):
                asked = self._filter(condition, family)
                own = own or bool(asked.comparisons)
            case n.Next(left=left, right=right) | n.Fold(left=left, right=right):
                if self.own[right]:
                    return False
                node = self._pairs(node, family) if self.own[left] else node
            case n.Union() | n.Aggregate():
                if own:
                    return False
        after_pairs = isinstance(node, n.Next | n.Fold)
        self.nodes.append(_listed(node) if own else node)
        self.own.append(own)
        self.asked.append(asked)
        self.added.append(tuple(range(before, len(self.constants))) if after_pairs else ())
        return True

    def _filter(self, condition: s.Expr, family: Resolve) -> Asked:
        safe, risky = parted(condition, family)
        comparisons, others = [], []
        for part in safe:
            match = compared_with_constant(part, family, "")
            if match is None:
                others.append(part)
            else:
                comparisons.append(Comparison(match[0].name, match[1], self._constant(match[2], family(match[0]))))
        return Asked(tuple(comparisons), tuple(others), tuple(risky))

    def _constant(self, value: Any, family: str) -> int:
        self.constants.append(value)
        self.families.append(family)
        return len(self.constants) - 1

    def _pairs(self, node: n.Next | n.Fold, family: Resolve) -> n.Next | n.Fold:
        """`$2.x = constant` -> `$2.x = $1.constant`: an equality of both streams, as any other."""
        condition = node.condition if isinstance(node, n.Next) else node.keep
        parts: list[s.Expr] = []
        for part in s.conjuncts(condition) if condition is not None else ():
            match = compared_with_constant(part, family, SECOND)
            if match is None or match[1] != "=":
                parts.append(part)
                continue
            number = self._constant(match[2], family(match[0]))
            parts.append(s.Binary("=", match[0], s.Attribute(FIRST, name_of(number))))
        if not parts:
            return node
        whole = parts[0]
        for part in parts[1:]:
            whole = s.Binary("and", whole, part)
        return replace(node, condition=whole) if isinstance(node, n.Next) else replace(node, keep=whole)


def _listed(node: n.Node) -> n.Node:
    """An operator whose rows have the list of their left, or only, input."""
    match node:
        case n.Filter(attributes=attributes):
            return replace(node, attributes=(*attributes, (LIST, "int")))
        case n.Select(items=items):
            return replace(node, items=(*items, n.Value(LIST, "int", s.Attribute("", LIST))))
        case n.Next(columns=columns) | n.Fold(columns=columns):
            return replace(node, columns=(*columns, n.Column(LIST, "int", FIRST, LIST)))
    raise AssertionError(node)  # pragma: no cover - no other stream is a query's own


def compared_with_constant(part: s.Expr, family: Resolve, side: str) -> tuple[s.Attribute, str, Any] | None:
    """(attribute of a stream, operator, value) of a part that compares it with a constant of its own family."""
    if not isinstance(part, s.Binary) or part.op not in OPS:
        return None
    read, other, op = part.left, part.right, part.op
    if not isinstance(read, s.Attribute):
        read, other, op = other, read, FLIPPED[op]
    if not isinstance(read, s.Attribute) or isinstance(read, Dur) or read.variable != side:
        return None
    value = _literal(other)
    kind, mine = infer(other, family), family(read)
    if mine == "double" and kind == "int" and value is not None and abs(value) <= MOST_EXACT:
        return read, op, float(value)
    return (read, op, value) if value is not None and mine == kind and mine in TYPES else None


def _literal(node: s.Expr) -> Any:
    """The value of a literal, of a number's with its sign; None for NULL and for all else."""
    if isinstance(node, s.Unary) and node.op == "-" and isinstance(node.operand, s.Literal):
        value = node.operand.value
        return None if value is None or isinstance(value, str | bool) else -value
    return node.value if isinstance(node, s.Literal) else None
