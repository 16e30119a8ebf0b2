"""How much room texts and nodes take, in pixels. Fonts differ: widths are those of a wide one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trendlake.cep_core.drawing.graph import Edge, Graph, Line, Node, Role

LINE_HEIGHT = 15.0
FONT_SIZE: dict[Role, float] = {"code": 12.0, "note": 11.5, "bar": 11.5}
GLYPH: dict[Role, float] = {"code": 0.605, "note": 0.56, "bar": 0.6}
"""Width of a character, as a part of the size of its font."""
NAME_SIZE = 15.0
RADIUS = 22.0
START_RADIUS = 5.0
PORT = 13.0
"""Between two arrows that end on the same side of a node."""
LOOP = 30.0
"""How high a loop stands above its node."""
GAP = 6.0
"""Between a label and its arrow, a node and its notes."""
LONGEST = 44
"""Characters of a line before it is broken."""


@dataclass(frozen=True)
class Box:
    """Room around a point: `wide` to both sides together, `up` and `down` from its height."""

    wide: float = 0.0
    up: float = 0.0
    down: float = 0.0


@dataclass(frozen=True)
class Shape:
    """A node as it is drawn: a circle of `radius`, drawn out to `half` to both sides where its name is long."""

    radius: float
    half: float


def width(lines: Sequence[Line]) -> float:
    """Of the widest line."""
    return max((len(line.text) * FONT_SIZE[line.role] * GLYPH[line.role] for line in lines), default=0.0)


def height(lines: Sequence[Line]) -> float:
    return len(lines) * LINE_HEIGHT


def broken(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Long lines in several: before AND and OR where there is one, else at a space; a word stays whole."""
    return tuple(Line(text, line.role) for line in lines for text in _broken(line.text))


def _broken(text: str) -> list[str]:
    if len(text) <= LONGEST:
        return [text]
    for words in (" AND ", " OR ", " "):
        places = [k for k in range(1, len(text)) if text.startswith(words, k)]
        fitting = [k for k in places if k <= LONGEST]
        if fitting or (words == " " and places):
            place = max(fitting) if fitting else min(places)
            return [text[:place], *_broken(text[place + 1 :])]
    return [text]


def loops(graph: Graph, node: int) -> tuple[Line, ...] | None:
    """The texts of the arrows from a node to itself, all on one loop; None if it has none."""
    mine = [edge for edge in graph.edges if edge.source == edge.target == node]
    if not mine:
        return None
    lines = list(broken(mine[0].lines))
    for edge in mine[1:]:
        lines += [Line("or", "note"), *broken(edge.lines)]
    return tuple(lines)


def shape(node: Node, ports: int) -> Shape:
    """Room for the name, and for `ports` arrows on one side."""
    radius = max(RADIUS, (ports - 1) * PORT / 2 + 10)
    name = len(node.label) * NAME_SIZE * 0.58 + len(node.index) * NAME_SIZE * 0.4
    return Shape(radius, max(radius, name / 2 + 13))


def node_box(graph: Graph, index: int, drawn: Shape) -> Box:
    """A node with its loop above and its notes below."""
    node = graph.nodes[index]
    notes = broken(node.notes)
    loop = loops(graph, index)
    up, wide = drawn.radius, max(2 * drawn.half, width(notes))
    if loop is not None:
        up += LOOP + (GAP + height(loop) if loop else 0.0)
        wide = max(wide, width(loop))
    return Box(wide, up, drawn.radius + (GAP + height(notes) if notes else 0.0))


def label_box(edge: Edge) -> Box:
    """An arrow's label above it; the bar of a barred one needs some room below too."""
    lines = broken(edge.lines)
    return Box(width(lines) + 16, GAP + height(lines) if lines else 8.0, 8.0)
