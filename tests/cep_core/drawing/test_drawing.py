"""Pictures of automata: nothing overlaps, nothing is left out, whatever the graph; the same picture each time."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.random.patterns import Drawn, patterns
from tests.random.profile import examples
from trendlake.cep_core import EventSchema, PatternErrors, PatternWarning, compile_query, draw
from trendlake.cep_core.automaton.compile.plan import AutomatonPlan
from trendlake.cep_core.automaton.diagram import draw as draw_automaton
from trendlake.cep_core.drawing import STYLE, Drawing, Edge, Graph, Line, Node, svg
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.diagram import draw as draw_trends
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.project.paths import find_project

pytestmark = pytest.mark.random

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"code": (12.0, 0.6), "note": (11.5, 0.52), "bar": (11.5, 0.55), "name": (15.0, 0.55)}
"""Size of the font and mean width of a character, of DejaVu, which is wide."""
SCHEMA = EventSchema(
    columns={"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "int"},
    event_id="event_id",
    event_time="event_time",
    event_type="event_type",
    sequence=None,
    types=None,
)

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def boxes(group: ElementTree.Element) -> tuple[list[Box], list[Box]]:
    """Of the texts, and of the states."""
    texts, states = [], []
    for element in group:
        kind = element.get("class", "")
        if element.tag == f"{SVG}text" and kind in SIZES:
            size, glyph = SIZES[kind]
            half = len("".join(element.itertext())) * size * glyph / 2
            x, y = float(element.get("x", "")), float(element.get("y", ""))
            if kind != "name":
                texts.append((x - half, y - size * 0.75, x + half, y + size * 0.2))
        elif element.tag == f"{SVG}rect" and kind == "state":
            x, y, wide, high = (float(element.get(name, "")) for name in ("x", "y", "width", "height"))
            states.append((x, y, x + wide, y + high))
    return texts, states


def traced(path: str) -> Iterator[tuple[float, float]]:
    """Points on a path of M, H, V and C, no further apart than a label is high."""
    x = y = 0.0
    for command, numbers in re.findall(r"([MHVC])([^MHVC]*)", path):
        values = [float(value) for value in numbers.split()]
        if command == "C":
            x1, y1, x2, y2, to_x, to_y = values
            steps = [k / 40 for k in range(41)]
            yield from (
                (
                    (1 - t) ** 3 * x + 3 * (1 - t) ** 2 * t * x1 + 3 * (1 - t) * t**2 * x2 + t**3 * to_x,
                    (1 - t) ** 3 * y + 3 * (1 - t) ** 2 * t * y1 + 3 * (1 - t) * t**2 * y2 + t**3 * to_y,
                )
                for t in steps
            )
        else:
            to_x = values[0] if command in "MH" else x
            to_y = values[-1] if command in "MV" else y
            if command != "M":
                yield from ((x + (to_x - x) * k / 200, y + (to_y - y) * k / 200) for k in range(201))
        x, y = to_x, to_y


def inside(point: tuple[float, float], box: Box) -> bool:
    return box[0] < point[0] < box[2] and box[1] < point[1] < box[3]


def within(point: tuple[float, float], state: Box) -> bool:
    """Inside the outline, whose ends are half circles; arrows and loops begin on it, or a little inside."""
    radius = (state[3] - state[1]) / 2
    middle = min(max(point[0], state[0] + radius), state[2] - radius), state[1] + radius
    return math.dist(point, middle) < radius - 2


def apart(one: Box, other: Box) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def flaws(drawn: str) -> list[str]:
    """Texts and states that overlap, or that an arrow runs through; what lies outside the page."""
    root = ElementTree.fromstring(drawn)
    wide, high = float(root.get("width", "")), float(root.get("height", ""))
    problems = []
    for group in root.iter(f"{SVG}g"):
        dx, dy = (float(n) for n in re.findall(r"[-\d.]+", group.get("transform", "")))
        texts, states = boxes(group)
        for one, other in itertools.combinations(texts + states, 2):
            if not apart(one, other):
                problems.append(f"{one} and {other} overlap")
        for box in texts + states:
            if box[0] + dx < 0 or box[2] + dx > wide or box[1] + dy < 0 or box[3] + dy > high:
                problems.append(f"{box} is not on the page")
        for element in group:
            if element.tag == f"{SVG}path" and element.get("class") is None:
                for point in traced(element.get("d", "")):
                    problems += [f"an arrow runs through the text {box}" for box in texts if inside(point, box)]
                    problems += [f"an arrow runs through the state {box}" for box in states if within(point, box)]
    return problems


words = st.text(alphabet="ABCxyz.<>= ()", min_size=1, max_size=24).map(str.strip).filter(bool)
lines = st.lists(st.builds(Line, words, st.sampled_from(("code", "note", "bar"))), max_size=3).map(tuple)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any arrows between a few nodes: loops, ways back, several between the same two, nodes with none."""
    count = draw(st.integers(1, 7))
    names = st.text(alphabet="ABCdefgh", min_size=1, max_size=14)
    nodes = tuple(
        Node(draw(names), draw(st.sampled_from(("", "3"))), draw(st.booleans()), draw(lines)) for _ in range(count)
    )
    place = st.integers(0, count - 1)
    edges = draw(st.lists(st.builds(Edge, st.none() | place, place, lines, st.booleans()), max_size=14))
    return Graph(draw(st.sampled_from(("", "Heading"))), nodes, tuple(edges))


@examples(100)
@given(graphs())
def test_any_graph(graph: Graph) -> None:
    """No text or state is overlapped or crossed; each state and arrow is there; drawn twice, the same."""
    drawn = svg(Drawing("title", "description", (graph,)))
    assert flaws(drawn) == []
    assert svg(Drawing("title", "description", (graph,))) == drawn
    root = ElementTree.fromstring(drawn)
    kinds = [element.get("class") for element in root.iter()]
    assert kinds.count("state") == len(graph.nodes)
    assert kinds.count("ring") == sum(node.final for node in graph.nodes)
    loops = {edge.source for edge in graph.edges if edge.source == edge.target}
    assert kinds.count("head") == len([e for e in graph.edges if e.source != e.target]) + len(loops)
    assert kinds.count("stop") == sum(edge.barred for edge in graph.edges if edge.source != edge.target)
    said = " ".join("".join(element.itertext()) for element in root.iter(f"{SVG}text"))
    for edge in graph.edges:
        assert all(line.text in said for line in edge.lines)


@examples(100)
@given(patterns())
def test_any_pattern(pattern: Drawn) -> None:
    """Every state and transition of the plan and of its NOTs, and no flaw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        try:
            plan = compile_query(query(pattern.text), SCHEMA)
        except PatternErrors:
            return
    assert isinstance(plan, Plan)
    drawn = draw(plan, "some_pattern")
    assert flaws(drawn) == []
    automata = [*plan.automata, *plan.guards]
    kinds = [element.get("class") for element in ElementTree.fromstring(drawn).iter()]
    assert kinds.count("state") == sum(len(a.states) for a in automata)
    assert kinds.count("ring") == sum(bool(state.accepts) for a in automata for state in a.states)
    graph_edges = [edge for graph in draw_trends(plan, "").graphs for edge in graph.edges]
    assert len(graph_edges) == sum(len(a.transitions) for a in automata)


def query(pattern: str, **keys: object) -> dict[str, object]:
    return {"kind": "trends", "pattern": pattern, "return": {"n": "COUNT(*)"}, "within": "1 hour", **keys}


def texts(drawn: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def test_what_is_said_on_arrows_and_below_states() -> None:
    """Types, filters, conditions, methods, and what each NOT forbids."""
    plan = compile_query(
        query("SEQ(NOT N, A a, NOT SEQ(C, D), B+, NOT E)", where=["a.x < 5", "B.x > NEXT(B).x"]), SCHEMA
    )
    assert texts(draw(plan, "p")) == [
        "no N before",
        "ordered prefix (Fenwick)",
        "no NOT 2 between",
        "a",
        "A",
        "a.x < 5",
        "B.x > NEXT(B).x",
        "ordered prefix (Fenwick)",
        "B",
        "may end if no E comes after",
        "NOT N: what must not come",
        "N",
        "NOT 2: what must not come",
        "running total",
        "C",
        "D",
        "NOT E: what must not come",
        "E",
        "Double ring: a trend may end there.",
        "Grey on an arrow: how the events before are found.",
        "Bar: nothing the NOT accepts may lie there.",
    ]


def test_every_condition_on_an_event_is_drawn() -> None:
    """Several of one variable, each on a line of its own, and those of another beside them."""
    plan = compile_query(query("SEQ(A, B)", where=["A.x < 5", "A.x > 1", "B.x > 2"]), SCHEMA)
    said = texts(draw(plan, "p"))
    assert [text for text in said if ".x" in text] == ["A.x < 5", "A.x > 1", "B.x > 2"]


def test_states_of_one_variable_are_told_apart() -> None:
    """By the number that the plan in words has too; and both parts of an AND are drawn, and what they share."""
    assert [text for text in texts(draw(compile_query(query("A{2}"), SCHEMA), "p")) if text[0] == "A"] == ["A0", "A1"]
    said = texts(draw(compile_query(query("SEQ(A, B) AND SEQ(A+, B)"), SCHEMA), "p"))
    assert {"Left of AND", "Right of AND", "Trends of both"} <= set(said)


@pytest.mark.parametrize("select", ["skip_till_next_match", "contiguous"])
def test_other_selections_find_events_otherwise(select: str) -> None:
    said = texts(draw(compile_query(query("A+", select=select), SCHEMA), "p"))
    assert ("the next A" if select == "skip_till_next_match" else "the very next") in said


def test_it_stands_alone_and_can_be_read_without_eyes() -> None:
    """No script, nothing fetched, both schemes; a title, and the whole plan in words; text that looks like markup is
    text."""
    plan = compile_query(query("A a+", where=["a.x < NEXT(a).x", "a.x > 3 AND a.x < 9"]), SCHEMA)
    drawn = draw(plan, "<b>&amp;]]>\x00")
    assert not re.search(r"<script|href|url\(|@import|<image|<foreignObject", drawn)
    assert "prefers-color-scheme:dark" in drawn
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "<b>&amp;]]>\ufffd"
    assert "ordered prefix" in (root.findtext(f"{SVG}desc") or "")
    bare = draw(plan, "t", style=False)
    assert "<style>" not in bare
    assert set(re.findall(r'class="(\w+)"', bare)) - {"automaton"} <= set(re.findall(r"\.automaton \.(\w+)", STYLE))


def test_long_conditions_are_broken() -> None:
    """Before AND, at a space otherwise; nothing is cut."""
    condition = " AND ".join(f"abs(A.x - NEXT(A).x) != {n}" for n in range(4))
    drawn = draw(compile_query(query("A+", where=[condition]), SCHEMA), "p")
    said = texts(drawn)
    assert max(map(len, said)) < 60
    assert "abs(A.x - NEXT(A).x) != 3" in " ".join(said)
    assert flaws(drawn) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples/automata").glob("*.yaml")), ids=lambda p: p.stem)
def test_an_automaton_is_drawn_as_its_file_has_it(path: Path) -> None:
    """Each state, each arc with what it asks and sets; no flaw."""
    plan = compiled(find_project(ROOT), path)[1]
    assert isinstance(plan, AutomatonPlan)
    drawn = draw(plan, path.stem)
    assert flaws(drawn) == []
    kinds = [element.get("class") for element in ElementTree.fromstring(drawn).iter()]
    assert (kinds.count("state"), kinds.count("ring")) == (len(plan.states), len(plan.final))
    (graph,) = draw_automaton(plan, "").graphs
    assert len(graph.edges) == 1 + len(plan.arcs)
    said = [line.text for edge in graph.edges for line in edge.lines]
    assert sum(" := " in line for line in said) == sum(len(arc.sets) for arc in plan.arcs)


def test_matches_are_drawn_part_by_part() -> None:
    """Each condition of the plan in one place at least, a loop for a Kleene part, a bar for a NOT between."""
    where = ["a[1].x > 3", "a[i].x > a[i-1].x", "b.x < a[a.LEN].x", "n.x = b.x", "COUNT(a[..i-1].x) < 9"]
    asked = {"kind": "matches", "pattern": "SEQ(A a+, NOT N n, B b)", "return": {"low": "a[1].x"}, "within": "1 hour"}
    plan = compile_query(asked | {"where": where}, SCHEMA)
    assert isinstance(plan, MatchesPlan)
    drawn = draw(plan, "p")
    assert flaws(drawn) == []
    kinds = [element.get("class") for element in ElementTree.fromstring(drawn).iter()]
    assert (kinds.count("state"), kinds.count("ring"), kinds.count("head"), kinds.count("stop")) == (2, 1, 3, 1)
    said = " ".join(texts(drawn))
    assert "no n between" in said
    conditions = [one.expression for one in plan.conditions] + [e for n in plan.negations for e in n.conditions]
    assert all(expression(one) in said for one in conditions)
