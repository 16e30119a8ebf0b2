"""A plan of kind xml_join as graphs: the two trees of a query, and what is equal in them."""

from __future__ import annotations

from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.language.unparse import duration
from trendlake.cep_core.xml_join.compile.plan import Join, Side, XmlJoinPlan
from trendlake.cep_core.xml_join.explain import explain_xml_join

MOST = 5
"""Queries that are drawn."""


def draw(plan: XmlJoinPlan, title: str) -> Drawing:
    """The first queries. Double rings are joined; an arrow from the left tree to the right one says what is equal."""
    shown: dict[int, str] = {}
    for name, join in plan.queries:
        if join not in shown and len(shown) < MOST:
            shown[join] = name
    graphs = tuple(_graph(plan, plan.joins[join], name) for join, name in shown.items())
    caption = ["Two trees: of the left document and of the right one. Double ring: its value is joined."]
    if len(plan.queries) > len(shown):
        caption.append(f"{len(shown)} of {len(plan.queries):,} queries are drawn.")
    return Drawing(title, explain_xml_join(plan), graphs, tuple(caption))


def _graph(plan: XmlJoinPlan, join: Join, name: str) -> Graph:
    left, right = plan.sides[join.left], plan.sides[join.right]
    nodes = [*_nodes(plan, left, "left"), *_nodes(plan, right, "right")]
    edges = [*_edges(left, 0), *_edges(right, len(left.nodes))]
    for i, j in join.pairs:
        source, target = left.keys[i][0], right.keys[j][0] + len(left.nodes)
        edges.append(
            Edge(source, target, (Line("=" if "normal" not in (left.keys[i][1], right.keys[j][1]) else "= (spaces)"),))
        )
    unbounded = plan.unbounded and join.within >= plan.windows.longest
    within = "unbounded" if unbounded else f"within {duration(join.within)}"
    operator = "followed by" if join.followed else "joined with"
    return Graph(f"{name}: left {operator} right, {within}", tuple(nodes), tuple(edges))


def _nodes(plan: XmlJoinPlan, side: Side, word: str) -> list[Node]:
    keyed = {node for node, _ in side.keys}
    texts = (plan.definitions[number].path.text for number in side.nodes)
    return [Node(word if not i else str(i), "", i in keyed, (Line(text, "note"),)) for i, text in enumerate(texts)]


def _edges(side: Side, shift: int) -> list[Edge]:
    return [Edge(None if parent < 0 else parent + shift, node + shift) for node, parent in enumerate(side.parents)]
