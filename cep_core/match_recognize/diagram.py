"""A row pattern as an automaton: a place a node, an arrow for each way, numbered by preference."""

from __future__ import annotations

from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.match_recognize.compile.classes import conditions_of
from trendlake.cep_core.match_recognize.compile.leaves import spelled
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.program import ACCEPT
from trendlake.cep_core.match_recognize.explain import explain_match_recognize

MOST_PLACES = 60
"""More are not drawn."""


def draw(plan: RowPatternPlan, title: str) -> Drawing:
    """Its one graph; of a pattern of many places the description alone."""
    description, program = explain_match_recognize(plan), plan.program
    if program.length > MOST_PLACES:
        node = Node(f"{program.length:,} places", "", False, (Line("too many to draw", "note"),))
        return Drawing(title, description, (Graph("", (node,), ()),))
    sets = {members: name for name, members in plan.subsets}
    conditions = {one.variable: one for one in conditions_of(plan)}
    nodes = []
    edges: list[Edge] = []
    ways_in = program.begin(first=True)
    other = program.begin(first=False)
    for place, variable in enumerate(program.variables):
        condition = conditions[variable].value
        notes = [Line("any row" if condition is None else spelled(condition, sets))]
        if program.excluded[place]:
            notes.append(Line("left out of the result", "note"))
        inner, last = program.behind(place, last=False), program.behind(place, last=True)
        if ACCEPT in last and ACCEPT not in inner:
            notes.append(Line("ends at the last row", "note"))
        nodes.append(Node(variable, str(place + 1), ACCEPT in inner or ACCEPT in last, tuple(notes)))
        edges += _edges(place, inner)
    for way in (way for way in ways_in if way != ACCEPT):
        only = () if way in other else (Line("at the first row", "note"),)
        rank = (Line(str(ways_in.index(way) + 1), "note"),) if len(ways_in) > 1 else ()
        edges.append(Edge(None, way, (*rank, *only)))
    caption = (
        "Each arrow takes the next row. Numbers: the order of preference. Double ring: a match may end.",
        *(("A match may be empty.",) if ACCEPT in ways_in else ()),
    )
    return Drawing(title, description, (Graph("", tuple(nodes), tuple(edges)),), caption)


def _edges(place: int, ways: tuple[int, ...]) -> list[Edge]:
    several = len(ways) > 1
    return [
        Edge(place, way, (Line(str(rank), "note"),) if several else ())
        for rank, way in enumerate(ways, 1)
        if way != ACCEPT
    ]
