"""The automata of a plan of kind trends as graphs: what `explain` says in words, as a picture."""

from __future__ import annotations

from collections import Counter

from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.trends.compile.dfa import Automaton, Transition
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.explain import explain, linked, method_of


def draw(plan: Plan, title: str) -> Drawing:
    """Each automaton of the plan, then each NOT's. A bar crosses an arrow where a NOT must not come in that gap."""
    headings = [""] if len(plan.automata) == 1 else ["Left of AND", "Right of AND", "Trends of both"]
    graphs = [_graph(plan, automaton, heading) for heading, automaton in zip(headings, plan.automata, strict=True)]
    for index, automaton in enumerate(plan.guards):
        graphs.append(_graph(plan, automaton, f"{_guard(plan, index, long=True)}: what must not come"))
    caption = ["Double ring: a trend may end there."]
    if any(automaton.inner for automaton in (*plan.automata, *plan.guards)):
        caption.append("Grey on an arrow: how the events before are found.")
    if any(edge.barred for graph in graphs for edge in graph.edges):
        caption.append("Bar: nothing the NOT accepts may lie there.")
    return Drawing(title, explain(plan), tuple(graphs), tuple(caption))


def _graph(plan: Plan, automaton: Automaton, heading: str) -> Graph:
    types = dict(plan.types)
    often = Counter(state.variable for state in automaton.states)
    nodes = []
    for index, state in enumerate(automaton.states):
        name = state.variable
        notes = [Line(types[name], "note")] if types[name] != name else []
        notes += [Line(expression(condition)) for variable, condition in plan.local if variable == name]
        if state.accepts and () not in state.accepts:
            ways = [" and ".join(f"no {_guard(plan, g)}" for g in option) for option in state.accepts]
            notes.append(Line(f"may end if {', or '.join(ways)} comes after", "bar"))
        nodes.append(Node(name, str(index) if often[name] > 1 else "", bool(state.accepts), tuple(notes)))
    edges = tuple(_edge(plan, automaton, transition) for transition in automaton.transitions)
    return Graph(heading if nodes else f"{heading}: none is possible", tuple(nodes), edges)


def _edge(plan: Plan, automaton: Automaton, transition: Transition) -> Edge:
    source, gap = transition.source, transition.gap
    where = "before" if source is None else "between"
    nots = [Line(f"no {_guard(plan, g)} {where}", "bar") for g in gap.holds]
    nots += [Line(f"a {_guard(plan, g)} {where}", "bar") for g in gap.fails]
    lines: list[Line] = []
    if source is not None:
        pair = plan.pair(automaton.states[source].variable, automaton.states[transition.target].variable)
        lines = [Line(f"{expression(x.earlier)} {x.op} {expression(x.later)}") for x in pair.splits]
        lines += [Line(expression(condition)) for condition in pair.mixed]
        if plan.select != "skip_till_any_match":
            method = linked(plan, gap)
        else:
            method = method_of(plan, automaton, transition).value
        lines.append(Line(method, "note"))
    return Edge(source, transition.target, (*lines, *nots), barred=bool(nots))


def _guard(plan: Plan, index: int, long: bool = False) -> str:
    """A NOT's name: its variable where it is of one event, else its number, as in `explain`."""
    states = plan.guards[index].states
    name = states[0].variable if len(states) == 1 and not plan.guards[index].inner else ""
    if long:
        return f"NOT {name or index + 1}"
    return name or f"NOT {index + 1}"
