"""A plan of kind automaton as a graph: its own states, and each arc with when it fires and what it sets."""

from __future__ import annotations

from trendlake.cep_core.automaton.compile.plan import EPSILON, IGNORE, WINDOW_END, Arc, AutomatonPlan
from trendlake.cep_core.automaton.explain import explain_automaton
from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.language.unparse import expression, moment

_HOW = {IGNORE: "ignored", EPSILON: "takes no event", WINDOW_END: "at the window's end"}


def draw(plan: AutomatonPlan, title: str) -> Drawing:
    """Its one graph; an arc that says nothing else takes the next event of its partition."""
    nodes = tuple(Node(name, final=index in plan.final) for index, name in enumerate(plan.states))
    arcs = tuple(Edge(arc.source, arc.target, _lines(plan, arc)) for arc in plan.arcs)
    caption = ("Double ring: a run may end there. An arrow takes the next event, unless it says otherwise in grey.",)
    return Drawing(title, explain_automaton(plan), (Graph("", nodes, (Edge(None, plan.start), *arcs)),), caption)


def _lines(plan: AutomatonPlan, arc: Arc) -> tuple[Line, ...]:
    conditions = [*arc.local, *((arc.when,) if arc.when else ())]
    lines = [Line(expression(condition)) for condition in conditions]
    if not conditions and arc.how not in (EPSILON, WINDOW_END):
        lines.append(Line("any event", "note"))
    lines += [Line(f"{plan.register[field].name} := {expression(value)}") for field, value in arc.sets]
    lines += [Line(_HOW[arc.how], "note")] if arc.how in _HOW else []
    if arc.valid_from is not None:
        lines.append(Line(f"from {moment(arc.valid_from)}", "note"))
    if arc.valid_to is not None:
        lines.append(Line(f"before {moment(arc.valid_to)}", "note"))
    return tuple(lines)
