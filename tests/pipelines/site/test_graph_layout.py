"""The drawing of any graph: boxes apart, arrows to the right, batches framed; bounded for large ones."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from trendlake.pipelines.site.graph import Edge, Graph, Node
from trendlake.pipelines.site.graph_layout import Box, Item, layout
from trendlake.pipelines.site.graph_page import MANY, graph_page

NOW = datetime(2026, 1, 5, tzinfo=UTC)
KEYS = [f"n{number}" for number in range(12)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Item], list[tuple[str, str]]]:
    keys = KEYS[: draw(st.integers(1, len(KEYS)))]
    items = [
        Item(key, draw(st.sampled_from([150.0, 210.5])), draw(st.sampled_from(["", "", "b", "c"]))) for key in keys
    ]
    pairs = st.tuples(st.sampled_from(keys), st.sampled_from(keys))
    return items, draw(st.lists(pairs, max_size=20, unique=True))


def apart(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x + 0.01
        or other.x + other.width <= one.x + 0.01
        or one.y + one.height <= other.y + 0.01
        or other.y + other.height <= one.y + 0.01
    )


def holds(frame: Box, box: Box) -> bool:
    across = frame.x <= box.x and box.x + box.width <= frame.x + frame.width
    return across and frame.y <= box.y and box.y + box.height <= frame.y + frame.height


@given(graphs())
def test_boxes_are_apart_and_arrows_go_right(graph: tuple[list[Item], list[tuple[str, str]]]) -> None:
    """But those of a circle that go back. A frame holds its batch's boxes of a layer, and no other."""
    items, edges = graph
    placed = layout(items, edges)
    assert placed == layout(items, edges)
    assert placed.boxes.keys() == {item.key for item in items}
    assert all(apart(one, other) for one, other in combinations(placed.boxes.values(), 2))
    assert all(box.x >= 0 and box.x + box.width <= placed.width for box in placed.boxes.values())
    assert all(box.y >= -0.01 and box.y + box.height <= placed.height + 0.01 for box in placed.boxes.values())
    assert [(arrow.source, arrow.target) for arrow in placed.arrows] == edges
    backward = {(a, b) for a, b in edges if placed.boxes[a].x >= placed.boxes[b].x}
    assert backward <= on_circles(edges)
    for batch, frame in placed.frames:
        for item in items:
            box = placed.boxes[item.key]
            if item.batch == batch and frame.x <= box.x < frame.x + frame.width:
                assert holds(frame, box)
            else:
                assert apart(frame, box)
    assert {batch for batch, _ in placed.frames} == {item.batch for item in items if item.batch}


def on_circles(edges: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those whose target leads back to their source: circular by walking."""
    circular = set()
    for source, target in edges:
        seen, waiting = set[str](), [target]
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                waiting += [after for before, after in edges if before == at]
        if source in seen:
            circular.add((source, target))
    return circular


def node(key: str, sort: str = "pattern", batch: str = "", state: str = "good") -> Node:
    page = f"{key}/index.html"
    return Node(key, key.removeprefix("results/"), sort, sort, page, state, "Up to date", batch)  # type: ignore[arg-type]


def test_a_large_project_is_drawn_small_and_listed_whole() -> None:
    """Patterns alike share a box, chains have their own; the list has each. Of more than can be drawn there is the list
    only."""
    sources = [node(f"s{number}", "source") for number in range(20)]
    patterns = [node(f"results/p{number}", batch=f"b{number % 3}") for number in range(1000)]
    edges = [Edge(f"s{number % 20}", f"results/p{number}", "reads") for number in range(1000)]
    edges += [Edge("results/p0", "results/p1", "reads")]
    began = time.process_time()
    html = graph_page(Graph((*sources, *patterns), tuple(edges)), NOW)
    assert time.process_time() - began < 20
    assert MANY < html.count('class="node') + html.count('class="line"') < 400
    assert len(html) < 1_000_000
    assert len(re.findall(r'<tr><th scope="row">', html)) == 1020
    assert ">p0<" in html.partition('id="list"')[0]
    alone = [node(f"results/q{number}") for number in range(1000)]
    own = [Edge(f"t{number}", f"results/q{number}", "reads") for number in range(1000)]
    many = Graph((*(node(f"t{number}", "source") for number in range(1000)), *alone), tuple(own))
    html = graph_page(many, NOW)
    assert "too many to be drawn" in html
    assert '<svg class="lineage"' not in html


def test_an_empty_project_has_a_page() -> None:
    assert "neither a contract nor a pattern" in graph_page(Graph((), ()), NOW)
