"""The columns of the source that the attributes of streams have their values from, and what is rarely meant of these.

SELECT isig AS level FROM Reading  ->  level has its values from the column isig
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.aggregates import MAX, MAX_BY, MIN, MIN_BY
from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND, Dur
from trendlake.cep_core.errors import Place
from trendlake.cep_core.expressions.advice import Advice, Adviser
from trendlake.cep_core.expressions.types import infer
from trendlake.cep_core.language import syntax as s

_Value = tuple[int, str | None, str]


def advice_on_nodes(
    nodes: Sequence[n.Node], partition: dict[str, str], empty: dict[str, int], place: Callable[[s.Span], Place]
) -> tuple[Advice, ...]:
    """Advice on the expressions of a plan. `empty`: as of `Adviser`."""
    adviser, lineage = Adviser(empty), Lineage(nodes, partition)
    for number, node in enumerate(nodes):

        def columns(read: s.Attribute, number: int = number) -> list[str]:
            return sorted(lineage.of_read(number, read))

        family = n.families_of(nodes, node, partition)
        for expression in n.expressions(node):
            adviser.look(expression, family, place, columns)
        for total in node.items if isinstance(node, n.Aggregate) else ():
            ordered = total.arguments[-1] if total.function in (MIN, MAX, MIN_BY, MAX_BY) else None
            if ordered is not None and infer(ordered, family) == "string":
                names = [name for read in s.attributes(ordered) for name in columns(read)]
                adviser.order(total.function.upper(), names, place(ordered.span))
    return tuple(adviser.advice)


class Lineage:
    """Where values come from. A value is named by a node, the side on which an expression of the node reads it (None:
    an attribute of the node's own events), and its name."""

    def __init__(self, nodes: Sequence[n.Node], partition: dict[str, str]) -> None:
        self.nodes, self.partition = nodes, partition

    def of_read(self, number: int, read: s.Attribute) -> set[str]:
        """The columns of an attribute that an expression of the node reads. Each value is visited once: one of FOLD may
        be computed from itself, and a stream may be read by many."""
        columns: set[str] = set()
        visited: set[_Value] = set()
        left = self._reads(number, [read])
        while left:
            value = left.pop()
            if value in visited:
                continue
            visited.add(value)
            node, side, name = value
            if name in self.partition or (side is None and isinstance(self.nodes[node], n.Base)):
                columns.add(name)
            else:
                left += self._of_side(node, side, name) if side is not None else self._of_output(node, name)
        return columns

    def _reads(self, number: int, expressions: Iterable[s.Expr]) -> list[_Value]:
        reads = (read for expression in expressions for read in s.attributes(expression))
        return [(number, read.variable, read.name) for read in reads if not isinstance(read, Dur)]

    def _of_side(self, number: int, side: str, name: str) -> list[_Value]:
        node = self.nodes[number]
        before = n.inputs(node)
        if side == NOW and isinstance(node, n.Fold):
            computed = self._reads(number, (value.expression for value in node.values if value.name == name))
            return computed + [
                (place, None, name) for place in before if name in dict(n.attributes_of(self.nodes[place]))
            ]
        return [(before[-1] if side == SECOND else before[0], None, name)]

    def _of_output(self, number: int, name: str) -> list[_Value]:
        match self.nodes[number]:
            case n.Filter(source=source):
                return [(source, None, name)]
            case n.Union(left=left, right=right):
                return [(left, None, name), (right, None, name)]
            case n.Select(items=items):
                return self._reads(number, (item.expression for item in items if item.name == name))
            case n.Aggregate(items=totals):
                of_total = (total.arguments for total in totals if total.name == name)
                return self._reads(number, (one for arguments in of_total for one in arguments[:1]))
            case n.Next(columns=columns) | n.Fold(columns=columns):
                output = next(column for column in columns if column.name == name)
                return [(number, output.side or FIRST, output.source)]
        return []
