"""The columns of the source that the attributes of streams have their values from, and what is rarely meant of these.

SELECT isig AS level FROM Reading  ->  `level` has its values from the column isig
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cep_core.algebra.compile import nodes as n
from cep_core.algebra.compile.aggregates import MAX, MAX_BY, MIN, MIN_BY
from cep_core.algebra.compile.syntax import FIRST, NOW, SECOND, Dur
from cep_core.errors import Place
from cep_core.expressions.advice import Advice, Adviser
from cep_core.expressions.types import infer
from cep_core.language import syntax as s


def advice_on_nodes(
    nodes: Sequence[n.Node], partition: dict[str, str], empty: dict[str, int], place: Callable[[s.Span], Place]
) -> tuple[Advice, ...]:  # fmt: skip
    """Advice on the expressions of a plan. `empty`: as of `Adviser`."""
    adviser, lineage = Adviser(empty), Lineage(nodes, partition)
    for number, node in enumerate(nodes):

        def columns(read: s.Attribute, number: int = number) -> list[str]:
            return sorted(lineage.of_read(number, read, set()))

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
    """Where values come from. Each step takes what was visited, as a value of FOLD may be computed from itself."""

    def __init__(self, nodes: Sequence[n.Node], partition: dict[str, str]) -> None:
        self.nodes, self.partition = nodes, partition

    def of_read(self, number: int, read: s.Attribute, visited: set[tuple[int, str, str]]) -> set[str]:
        """The columns of an attribute that an expression of the node reads."""
        if isinstance(read, Dur) or read.name in self.partition:
            return {read.name} if read.name in self.partition else set()
        return self._of_side(number, read.variable, read.name, visited)

    def _of_side(self, number: int, side: str, name: str, visited: set[tuple[int, str, str]]) -> set[str]:
        if (number, side, name) in visited:
            return set()
        visited.add((number, side, name))
        node = self.nodes[number]
        before = n.inputs(node)
        if side == NOW and isinstance(node, n.Fold):
            computed = [value.expression for value in node.values if value.name == name]
            columns = self._of_all(number, computed, visited)
            for place in before:
                if name in dict(n.attributes_of(self.nodes[place])):
                    columns |= self._of_output(place, name, visited)
            return columns
        return self._of_output(before[-1] if side == SECOND else before[0], name, visited)

    def _of_output(self, number: int, name: str, visited: set[tuple[int, str, str]]) -> set[str]:
        """The columns of an attribute of the node's own events."""
        match self.nodes[number]:
            case n.Base():
                return {name}
            case n.Filter(source=source):
                return self._of_output(source, name, visited)
            case n.Union(left=left, right=right):
                return self._of_output(left, name, visited) | self._of_output(right, name, visited)
            case n.Select(items=items):
                return self._of_all(number, (item.expression for item in items if item.name == name), visited)
            case n.Aggregate(items=totals):
                of_total = (total.arguments for total in totals if total.name == name)
                return self._of_all(number, (one for arguments in of_total for one in arguments[:1]), visited)
            case n.Next(columns=columns) | n.Fold(columns=columns):
                output = next(column for column in columns if column.name == name)
                return self._of_side(number, output.side or FIRST, output.source, visited)

    def _of_all(
        self, number: int, expressions: Iterable[s.Expr], visited: set[tuple[int, str, str]]
    ) -> set[str]:  # fmt: skip
        return {
            name
            for expression in expressions
            for read in s.attributes(expression)
            for name in self.of_read(number, read, visited)
        }
