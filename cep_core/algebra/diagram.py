"""A plan of kind algebra as a graph: an operator a node, an arrow from what it reads."""

from __future__ import annotations

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.explain import explain_algebra, operator
from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.language.unparse import expression

_LABELS = {
    n.Filter: "FILTER",
    n.Select: "SELECT",
    n.Aggregate: "SELECT",
    n.Union: "UNION",
    n.Next: "NEXT",
    n.Fold: "FOLD",
}


def draw(plan: AlgebraPlan, title: str) -> Drawing:
    """Its one graph. FOLD has a loop with what a step must meet; the stream that NEXT and FOLD wait for is marked."""
    names = {place: name for name, place in plan.published}
    nodes, edges = [], []
    for place, node in enumerate(plan.nodes):
        last = place == len(plan.nodes) - 1
        label = operator(node) if isinstance(node, n.Base) else _LABELS[type(node)]
        notes = (Line(names[place], "note"),) if place in names else ()
        nodes.append(Node(label, str(place + 1), last, notes))
        edges += _edges(node, place)
    caption = ("An arrow leads from a stream to what reads it. Double ring: the rows.", "Grey: the right stream.")
    return Drawing(title, explain_algebra(plan), (Graph("", tuple(nodes), tuple(edges)),), caption)


def _edges(node: n.Node, place: int) -> list[Edge]:
    match node:
        case n.Base():
            return [Edge(None, place)]
        case n.Filter(source=source, condition=condition):
            return [Edge(source, place, (Line(expression(condition)),))]
        case n.Select(source=source, items=items):
            return [Edge(source, place, tuple(Line(item.name) for item in items))]
        case n.Aggregate(source=source, items=totals):
            return [Edge(source, place, (Line("all of one end", "note"), *(Line(item.name) for item in totals)))]
        case n.Union(left=left, right=right):
            return [Edge(left, place), Edge(right, place)]
        case n.Next(left=left, right=right, condition=asked):
            lines = () if asked is None else (Line(expression(asked)),)
            return [Edge(left, place, lines), Edge(right, place, (Line("next", "note"),))]
        case n.Fold(left=left, right=right):
            lines = () if node.keep is None else (Line(expression(node.keep)),)
            go = (Line("any event", "note"),) if node.go is None else (Line(expression(node.go)),)
            sets = tuple(Line(f"{value.name} := {expression(value.expression)}") for value in node.values)
            steps = Edge(place, place, (*go, *sets))
            return [Edge(left, place, lines), Edge(right, place, (Line("steps", "note"),)), steps]
