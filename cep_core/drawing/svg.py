"""A drawing as SVG: one text, no script, nothing fetched; light and dark by what the reader prefers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from trendlake.cep_core.drawing.boxes import FONT_SIZE, GAP, GLYPH, LINE_HEIGHT, LOOP, NAME_SIZE, broken, height, loops
from trendlake.cep_core.drawing.graph import Drawing, Edge, Graph, Line, Node
from trendlake.cep_core.drawing.layout import Layout, Route, Spot, layout

MARGIN = 20.0
HEADING = 30.0
BETWEEN_GRAPHS = 26.0
ARROW = 9.0

LIGHT = {
    "ink": "#16202c",
    "muted": "#5a6776",
    "line": "#5a6776",
    "paper": "#ffffff",
    "state": "#eef4fa",
    "bar": "#b3261e",
}
DARK = {
    "ink": "#e8edf3",
    "muted": "#9aa7b6",
    "line": "#9aa7b6",
    "paper": "#12181f",
    "state": "#1b2b3c",
    "bar": "#f28b82",
}

RULES = """\
.automaton text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--a-ink)}
.automaton .name{font-size:15px;font-weight:600;text-anchor:middle}
.automaton .index{font-size:10px;font-weight:400;fill:var(--a-muted)}
.automaton .heading{font-size:13px;font-weight:600}
.automaton .code,.automaton .note,.automaton .bar{text-anchor:middle}
.automaton .code{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px;white-space:pre}
.automaton .note{font-size:11.5px;fill:var(--a-muted)}
.automaton .caption{font-size:11.5px;fill:var(--a-muted)}
.automaton .bar{font-size:11.5px;font-weight:600;fill:var(--a-bar)}
.automaton path,.automaton rect{fill:none;stroke:var(--a-line);stroke-width:1.4}
.automaton .state{fill:var(--a-state);stroke:var(--a-ink);stroke-width:1.6}
.automaton .ring{stroke:var(--a-ink);stroke-width:1.4}
.automaton .head{fill:var(--a-line);stroke:none}
.automaton .dot{fill:var(--a-ink);stroke:none}
.automaton .stop{stroke:var(--a-bar);stroke-width:2.4}
.automaton .page{fill:var(--a-paper);stroke:none}"""


def _colours(palette: dict[str, str]) -> str:
    return ".automaton{" + "".join(f"--a-{role}:{colour};" for role, colour in palette.items()) + "}"


INHERITED = dict.fromkeys(("ink", "muted", "line", "bar"), "currentColor") | {"paper": "none", "state": "none"}
"""The colours of the page around, which may be light or dark whatever its reader prefers."""
INHERITED_STYLE = f"{_colours(INHERITED)}\n{RULES}"
"""As `STYLE`, in the colours of the page around."""
STYLE = f"{_colours(LIGHT)}\n@media screen and (prefers-color-scheme:dark){{{_colours(DARK)}}}\n{RULES}"
"""The style of the classes of a drawing; a page that holds several drawings needs it once."""


def svg(drawing: Drawing, *, style: bool = True) -> str:
    """The drawing as an SVG document; without `style` for a page that has `STYLE` already. The same text for the same
    drawing."""
    parts: list[str] = []
    wide = tall = 0.0
    for graph in drawing.graphs:
        placed = layout(graph)
        tall += BETWEEN_GRAPHS if parts else 0.0
        head = HEADING if graph.heading else 0.0
        parts += _graph(graph, placed, MARGIN, MARGIN + tall, head)
        named = len(graph.heading) * 13 * 0.6
        wide, tall = max(wide, placed.width, named), tall + head + placed.height
    for k, text in enumerate(drawing.caption):
        tall += LINE_HEIGHT if k else BETWEEN_GRAPHS
        parts.append(f'<text class="caption" x="{_n(MARGIN)}" y="{_n(MARGIN + tall)}">{_safe(text)}</text>')
        wide = max(wide, len(text) * FONT_SIZE["note"] * GLYPH["note"])
    wide, tall = round(wide + 2 * MARGIN), round(tall + 2 * MARGIN)
    box = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="automaton" {box} role="img">',
        f"<title>{_safe(drawing.title)}</title>",
        f"<desc>{_safe(drawing.description)}</desc>",
        *([f"<style>\n{STYLE}\n</style>"] if style else []),
        f'<rect class="page" width="{wide}" height="{tall}"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _graph(graph: Graph, placed: Layout, x: float, y: float, head: float) -> Iterator[str]:
    if graph.heading:
        yield f'<text class="heading" x="{_n(x)}" y="{_n(y + 13)}">{_safe(graph.heading)}</text>'
    yield f'<g transform="translate({_n(x)} {_n(y + head)})">'
    for index, route in placed.routes.items():
        yield from _arrow(graph.edges[index], route)
    if placed.start is not None:
        dot = placed.start
        yield f'<circle class="dot" cx="{_n(dot.x)}" cy="{_n(dot.y)}" r="{_n(dot.shape.radius)}"/>'
    for index, node in enumerate(graph.nodes):
        yield from _node(node, placed.nodes[index], loops(graph, index))
    yield "</g>"


def _node(node: Node, spot: Spot, loop: tuple[Line, ...] | None) -> Iterator[str]:
    radius, half = spot.shape.radius, spot.shape.half
    if loop is not None:
        left, right = spot.x - radius * 0.5, spot.x + radius * 0.5
        round_by = max(radius * 0.5 - (half - radius), 0.0)  # a drawn-out node is flat above its middle
        top, bend = spot.y - math.sqrt(radius**2 - round_by**2), spot.y - radius - LOOP * 1.24
        curve = f"{_n(left - radius * 0.62)} {_n(bend)} {_n(right + radius * 0.62)} {_n(bend)}"
        yield f'<path d="M{_n(left)} {_n(top)}C{curve} {_n(right)} {_n(top)}"/>'
        yield _head(right, top, -0.36, 0.93)
        yield from _text(loop, spot.x, spot.y - radius - LOOP - GAP - height(loop))
    yield _outline("state", spot, radius, half)
    if node.final:
        yield _outline("ring", spot, radius - 4, half - 4)
    index = f'<tspan class="index" dy="4">{_safe(node.index)}</tspan>' if node.index else ""
    yield f'<text class="name" x="{_n(spot.x)}" y="{_n(spot.y + NAME_SIZE * 0.35)}">{_safe(node.label)}{index}</text>'
    yield from _text(broken(node.notes), spot.x, spot.y + radius + GAP)


def _outline(kind: str, spot: Spot, radius: float, half: float) -> str:
    return (
        f'<rect class="{kind}" x="{_n(spot.x - half)}" y="{_n(spot.y - radius)}" width="{_n(2 * half)}" '
        f'height="{_n(2 * radius)}" rx="{_n(radius)}"/>'
    )


def _arrow(edge: Edge, route: Route) -> Iterator[str]:
    points = list(route.points)
    x, y = points[-1]
    ahead = 1.0 if x > points[0][0] else -1.0
    points[-1] = (x - ahead * (ARROW - 1), y)
    path = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for k in range(1, len(points)):
        (x0, y0), (x1, y1) = points[k - 1], points[k]
        if y0 == y1:
            path.append(f"H{_n(x1)}")
        else:
            middle = _n((x0 + x1) / 2)
            path.append(f"C{middle} {_n(y0)} {middle} {_n(y1)} {_n(x1)} {_n(y1)}")
    yield f'<path d="{"".join(path)}"/>'
    yield _head(x, y, ahead, 0.0)
    at, level = route.label
    lines = broken(edge.lines)
    if edge.barred:
        yield f'<path class="stop" d="M{_n(at)} {_n(level - 7)}V{_n(level + 7)}"/>'
    yield from _text(lines, at, level - GAP - height(lines) - (2 if edge.barred else 0))


def _head(x: float, y: float, dx: float, dy: float) -> str:
    """An arrow's head with its tip at (x, y), pointing along (dx, dy)."""
    back_x, back_y, across = x - dx * ARROW, y - dy * ARROW, ARROW * 0.42
    one = f"{_n(back_x - dy * across)} {_n(back_y + dx * across)}"
    other = f"{_n(back_x + dy * across)} {_n(back_y - dx * across)}"
    return f'<path class="head" d="M{_n(x)} {_n(y)}L{one}L{other}Z"/>'


def _text(lines: Sequence[Line], x: float, top: float) -> Iterator[str]:
    for k, line in enumerate(lines):
        baseline = top + k * LINE_HEIGHT + LINE_HEIGHT * 0.78
        yield f'<text class="{line.role}" x="{_n(x)}" y="{_n(baseline)}">{_safe(line.text)}</text>'


def _n(value: float) -> str:
    """To a tenth of a pixel, without needless zeros."""
    text = f"{value:.1f}"
    return text.removesuffix(".0").replace("-0", "0") if text in ("-0.0", "0.0") else text.removesuffix(".0")


def _safe(text: str) -> str:
    """As XML text: marked up signs escaped, signs XML cannot hold replaced."""
    safe = (c if (c >= " " or c in "\t\n") and c not in "\ufffe\uffff" else "\ufffd" for c in text)
    return escape("".join(safe), quote=False)
