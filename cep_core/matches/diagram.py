"""A plan of kind matches as a graph: a state for each part, with a loop where it is a Kleene part."""

from __future__ import annotations

from collections import Counter

from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.positions import Ways
from trendlake.cep_core.matches.compile.registers import places
from trendlake.cep_core.matches.explain import explain_matches


def draw(plan: MatchesPlan, title: str) -> Drawing:
    """Conditions are written on the arrow that takes the event they test; those asked when a part is done, on the
    way on from it, or below the last. Of a pattern with a tree they stand below the positions."""
    if plan.tree is not None:
        return _positions(plan, title)
    last = len(plan.parts) - 1
    nodes, edges = [], []
    for number, part in enumerate(plan.parts):
        notes = [Line(part.type_name, "note")] if part.type_name != part.variable else []
        if number == last:
            notes += [*_asked(plan, last, "last"), *_nots(plan, last + 1, "after")]
        nodes.append(Node(part.variable, "", number == last, tuple(notes)))
        before = _asked(plan, number - 1, "last") if number else []
        nots = _nots(plan, number, "between" if number else "before")
        taken = _asked(plan, number, "each", "first")
        edges.append(Edge(number - 1 if number else None, number, (*before, *taken, *nots), barred=bool(nots)))
        if part.kleene:
            edges.append(Edge(number, number, tuple(_asked(plan, number, "each", "later"))))
    caption = [f"Double ring: a match ends there. An arrow takes an event; others are left by {plan.select}."]
    if plan.negations:
        caption.append("Bar: no such event may lie there.")
    return Drawing(title, explain_matches(plan), (Graph("", tuple(nodes), tuple(edges)),), tuple(caption))


def _positions(plan: MatchesPlan, title: str) -> Drawing:
    """A state for each position."""
    positions, place = plan.positions, places(plan)
    often = Counter(positions.variables)
    nodes, edges = [], []
    for position, variable in enumerate(positions.variables):
        part = plan.parts[place[variable]]
        notes = [Line(part.type_name, "note")] if part.type_name != variable else []
        notes += _asked(plan, place[variable], "each", "first", "later", "last")
        ends = positions.end.get(position, frozenset())
        if ends and frozenset() not in ends:
            notes.append(Line(f"may end if {_ways(plan, ends)} comes after", "bar"))
        nodes.append(Node(variable, str(position + 1) if often[variable] > 1 else "", bool(ends), tuple(notes)))
    steps: list[tuple[int | None, int, Ways]] = [(None, target, ways) for target, ways in positions.start.items()]
    steps += [
        (source, target, ways) for source, follow in enumerate(positions.follow) for target, ways in follow.items()
    ]
    for source, target, ways in steps:
        nots = frozenset() not in ways
        where = "before" if source is None else "between"
        lines = (Line(f"{_ways(plan, ways)} {where}", "bar"),) if nots else ()
        edges.append(Edge(source, target, lines, barred=nots))
    caption = [f"Double ring: a match may end there. An arrow takes an event; others are left by {plan.select}."]
    if plan.negations:
        caption.append("Bar: no such event may lie there.")
    return Drawing(title, explain_matches(plan), (Graph("", tuple(nodes), tuple(edges)),), tuple(caption))


def _ways(plan: MatchesPlan, ways: Ways) -> str:
    """The NOTs on the way, in words: one of several sets."""
    texts = []
    for way in sorted(ways, key=sorted):
        names = (plan.negations[k] for k in sorted(way))
        texts.append(
            " and ".join(f"no {one.variable}{' (with conditions)' if one.conditions else ''}" for one in names)
        )
    return ", or ".join(texts)


def _asked(plan: MatchesPlan, number: int, *moments: str) -> list[Line]:
    conditions = [one for one in plan.conditions if one.part == number and one.when in moments]
    return [Line(expression(one.expression)) for one in conditions]


def _nots(plan: MatchesPlan, after: int, where: str) -> list[Line]:
    lines = []
    for negation in plan.negations:
        if negation.after == after:
            lines.append(Line(f"no {negation.variable} {where}{' with' if negation.conditions else ''}", "bar"))
            lines += [Line(expression(one), "bar") for one in negation.conditions]
    return lines
