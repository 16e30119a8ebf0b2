"""The page of the graph: one drawing of all tables and patterns, and the same as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.render import rendered
from trendlake.pipelines.site.graph import Edge, Graph, Node
from trendlake.pipelines.site.graph_layout import Arrow, Box, Item, Layout, layout

MANY = 120
"""Of more nodes than so many, patterns that nothing reads are drawn as one where they read the same tables and run
together."""
ALIKE = 4
"""Fewer of such patterns are drawn each by itself."""
DRAWN = 400
"""Nodes that are drawn; of more there is the list only."""
NAMED = 12
"""Tables or patterns that are named in a cell of the list."""
NARROWEST, WIDEST = 150.0, 280.0
NAME_WIDTH, WORD_WIDTH = 7.6, 6.7
"""Of a character of a name, and of what is said below it, pixels."""
MARGIN, ICON = 28.0, 20.0
URGENCY = {"bad": 0, "warn": 1, "none": 2, "good": 3}


@dataclass(frozen=True)
class NodeView:
    """A node in its box: `name` and `word` as they fit it; `title`: all of it in words; `href`: empty without a
    page."""

    box: Box
    node: Node
    name: str
    word: str
    title: str
    href: str


@dataclass(frozen=True)
class ArrowView:
    """An arrow with its `title` in words; `looks_up`: of a lookup alone."""

    arrow: Arrow
    title: str
    looks_up: bool


@dataclass(frozen=True)
class Picture:
    """The drawing: its size, frames of batches, arrows, nodes."""

    placed: Layout
    arrows: Sequence[ArrowView]
    nodes: Sequence[NodeView]


@dataclass(frozen=True)
class Neighbours:
    """Nodes that are named in a cell, each with a word where it is not just read; `left`: how many are not named."""

    named: Sequence[tuple[Node, str]]
    left: int

    @classmethod
    def of(cls, nodes: Sequence[tuple[Node, str]], words: Mapping[str, str]) -> Neighbours:
        named = [(node, words.get(how, "")) for node, how in nodes[:NAMED]]
        return cls(named, max(0, len(nodes) - NAMED))


READS = {"looks up": "looks up", "reads and looks up": "reads and looks up"}
READ = {"looks up": "lookups of", "reads and looks up": "also lookups of"}


def graph_page(graph: Graph, made_at: datetime) -> str:
    """The HTML of the page."""
    drawn = graph if len(graph.nodes) <= MANY else _together(graph)
    tables = sum(node.sort != "pattern" for node in graph.nodes)
    return rendered(
        "graph.html.j2",
        made_at,
        picture=_picture(drawn) if 0 < len(drawn.nodes) <= DRAWN else None,
        summed=drawn is not graph,
        rows=rows_of(graph, graph.nodes),
        tables=tables,
        patterns=len(graph.nodes) - tables,
        counts=_counts(graph),
    )


def rows_of(graph: Graph, nodes: Sequence[Node]) -> list[tuple[Node, Neighbours, Neighbours]]:
    """Each of `nodes` with what it reads and what reads it. How is said where it is a lookup."""
    return [
        (node, Neighbours.of(graph.read_by(node.key), READS), Neighbours.of(graph.readers(node.key), READ))
        for node in nodes
    ]


def _counts(graph: Graph) -> list[tuple[str, int]]:
    states = [node.state for node in graph.nodes if node.sort == "pattern"]
    words = {"bad": "failed or wrong", "warn": "behind or warned", "good": "up to date", "none": "without results"}
    return [(word, states.count(state)) for state, word in words.items() if state in states]


def _together(graph: Graph) -> Graph:
    """With patterns that nothing reads as one node, where they are alike."""
    alike: dict[tuple[str, ...], list[Node]] = {}
    for node in graph.nodes:
        if node.sort == "pattern" and not graph.readers(node.key):
            read = sorted(f"{how} {other.key}" for other, how in graph.read_by(node.key))
            alike.setdefault((node.batch, *read), []).append(node)
    stands_for: dict[str, Node] = {}
    for members in alike.values():
        if len(members) >= ALIKE:
            one = _sum(members)
            stands_for |= {node.key: one for node in members}
    nodes = dict.fromkeys(stands_for.get(node.key, node) for node in graph.nodes)
    edges = dict.fromkeys(
        replace(edge, target=stands_for[edge.target].key) if edge.target in stands_for else edge for edge in graph.edges
    )
    return Graph(tuple(nodes), tuple(edges))


def _sum(members: Sequence[Node]) -> Node:
    """One node for all: with what needs looking at most."""
    worst = min((node.state for node in members), key=lambda state: URGENCY.get(state, 2))
    mine = [node.word for node in members if node.state == worst]
    word = mine[0] if len(set(mine)) == 1 else {"bad": "Failed or wrong", "warn": "Behind"}.get(worst, "Other states")
    counted = word if len(mine) == len(members) else f"{len(mine)} of them: {word}"
    first, name = members[0], plural(len(members), "pattern")
    return Node(f"{first.key}, ...", name, "pattern", "patterns alike", "graph.html#list", worst, counted, first.batch)


def _picture(graph: Graph) -> Picture:
    items = [Item(node.key, _width(node), node.batch) for node in graph.nodes]
    placed = layout(items, [(edge.source, edge.target) for edge in graph.edges])
    how = {(edge.source, edge.target): edge for edge in graph.edges}
    arrows = [_arrow_view(graph, arrow, how[arrow.source, arrow.target]) for arrow in placed.arrows]
    return Picture(placed, arrows, [_node_view(graph, node, placed.boxes[node.key]) for node in graph.nodes])


def word_of(node: Node) -> str:
    """The line below the name: the state; of a table without one, its sort."""
    return node.word or node.what


def _width(node: Node) -> float:
    asked = max(len(node.name) * NAME_WIDTH, len(word_of(node)) * WORD_WIDTH + ICON) + MARGIN
    return min(max(asked, NARROWEST), WIDEST)


def _node_view(graph: Graph, node: Node, box: Box) -> NodeView:
    room = box.width - MARGIN
    words = [f"{node.name}, {node.what}{f': {node.word}' if node.word else ''}."]
    words += [f"Batch {node.batch}."] if node.batch else []
    for verb, near in (("Reads", graph.read_by(node.key)), ("Read by", graph.readers(node.key))):
        if near:
            named = ", ".join(other.name for other, _ in near[:NAMED])
            words.append(f"{verb} {named}{f' and {len(near) - NAMED} more' if len(near) > NAMED else ''}.")
    name, word = _fitting(node.name, room / NAME_WIDTH), _fitting(word_of(node), (room - ICON) / WORD_WIDTH)
    return NodeView(box, node, name, word, " ".join(words), node.page.removeprefix("graph.html"))


def _arrow_view(graph: Graph, arrow: Arrow, edge: Edge) -> ArrowView:
    source, target = graph.by_key[edge.source], graph.by_key[edge.target]
    return ArrowView(arrow, f"{target.name} {edge.how} {source.name}", edge.how == "looks up")


def _fitting(text: str, most: float) -> str:
    return text if len(text) <= most else text[: max(1, int(most) - 1)] + "…"
