"""Where everything goes: layers from left to right, as in Sugiyama, Tagawa and Toda (1981).

Even ranks hold nodes, odd ranks the labels of arrows. An arrow that passes a rank holds a place of its own there, and
crosses it as a level line; it bends between ranks only. So no label, node or note is ever crossed by an arrow, and
none overlaps another: their places in a rank are as far apart as the room they need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from trendlake.cep_core.drawing.boxes import PORT, START_RADIUS, Box, Shape, label_box, node_box, shape
from trendlake.cep_core.drawing.graph import Graph
from trendlake.cep_core.drawing.settle import settled

BETWEEN = 10.0
"""Least distance of two neighbours in a rank."""
BEND = 26.0
"""Least distance of two ranks: what arrows have to bend in."""
SWEEPS = 24
STILL = 0.02
"""Pixels that no longer count as a move."""


@dataclass
class Place:
    """Something that holds a place in a rank: a node (`node`; -1: the start) or an arrow on its way (`edge`)."""

    rank: int
    box: Box
    node: int | None = None
    edge: int | None = None
    side: int = 0
    y: float = 0.0
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Spot:
    """A node on the page."""

    x: float
    y: float
    shape: Shape


@dataclass(frozen=True)
class Route:
    """An arrow: `points` from its source to its target, level lines between points 2k and 2k + 1; `label`: the middle
    of the level line that carries it."""

    points: tuple[tuple[float, float], ...]
    label: tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """`nodes` by index; `start`: None where no arrow comes from it; `routes` by index of edge, loops have none."""

    width: float
    height: float
    nodes: tuple[Spot, ...]
    start: Spot | None
    routes: dict[int, Route]


def layout(graph: Graph) -> Layout:
    """The places of a graph's nodes and arrows, from (0, 0) on; the same for the same graph."""
    if not graph.nodes:
        return Layout(0.0, 0.0, (), None, {})
    return _Layout(graph).done()


class _Layout:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edges = [
            (k, -1 if e.source is None else e.source, e.target)
            for k, e in enumerate(graph.edges)
            if e.source != e.target
        ]
        self.begun = any(source == -1 for _, source, _ in self.edges)
        self.back = self._backward()
        self.forward = [(k, t, s) if k in self.back else (k, s, t) for k, s, t in self.edges]
        self.layer = self._layers()
        self.shapes = [shape(node, self._busier(index)) for index, node in enumerate(graph.nodes)]
        self.places: list[Place] = []
        self.of_node: dict[int, int] = {}
        self.chains: dict[int, list[int]] = {}
        self.labels: dict[int, int] = {}

    def done(self) -> Layout:
        self._put()
        ranks = self._ordered()
        ports = self._ports(ranks)
        self._level(ranks, ports)
        return self._drawn(ranks, ports)

    def _busier(self, node: int) -> int:
        """Arrows on the busier side of a node."""
        right = sum((source if k not in self.back else target) == node for k, source, target in self.edges)
        left = sum((target if k not in self.back else source) == node for k, source, target in self.edges)
        return max(right, left, 1)

    def _backward(self) -> set[int]:
        """Arrows that lead back to a node on the way to them; without these the graph has no cycle."""
        out: dict[int, list[tuple[int, int]]] = {}
        for k, source, target in self.edges:
            out.setdefault(source, []).append((k, target))
        back: set[int] = set()
        state: dict[int, int] = {}
        for root in (-1, *range(len(self.graph.nodes))):
            if root in state:
                continue
            state[root] = 1
            stack = [(root, iter(out.get(root, ())))]
            while stack:
                node, rest = stack[-1]
                step = next(rest, None)
                if step is None:
                    state[node] = 2
                    stack.pop()
                elif state.get(step[1]) == 1:
                    back.add(step[0])
                elif step[1] not in state:
                    state[step[1]] = 1
                    stack.append((step[1], iter(out.get(step[1], ()))))
        return back

    def _layers(self) -> dict[int, int]:
        """The longest way to each node, so that arrows go right."""
        layer = {node: 0 if node == -1 or not self.begun else 1 for node in range(-1, len(self.graph.nodes))}
        for _ in layer:
            for _, source, target in self.forward:
                layer[target] = max(layer[target], layer[source] + 1)
        return layer

    def _put(self) -> None:
        """Nodes and the way of each arrow, in their ranks."""
        for node in range(-1 if self.begun else 0, len(self.graph.nodes)):
            box = Box(2 * START_RADIUS, 8, 8) if node == -1 else node_box(self.graph, node, self.shapes[node])
            self.of_node[node] = self._place(Place(2 * self.layer[node], box, node=node))
        for k, source, target in self.forward:
            first, last = 2 * self.layer[source], 2 * self.layer[target]
            middle = first + 1 + 2 * ((last - first) // 4)
            side = 1 if k in self.back else -1 if last - first > 2 else 0
            before = self.of_node[source]
            self.chains[k] = []
            for rank in range(first + 1, last):
                box = label_box(self.graph.edges[k]) if rank == middle else Box(0.0, 4.0, 4.0)
                place = self._place(Place(rank, box, edge=k, side=side))
                if rank == middle:
                    self.labels[k] = place
                self._join(before, place)
                self.chains[k].append(place)
                before = place
            self._join(before, self.of_node[target])

    def _place(self, place: Place) -> int:
        self.places.append(place)
        return len(self.places) - 1

    def _join(self, left: int, right: int) -> None:
        self.places[left].after.append(right)
        self.places[right].before.append(left)

    def _ordered(self) -> list[list[int]]:
        """Each rank from top to bottom, with few crossings: barycentres, swept to and fro; the best order seen. At
        first ways over many ranks run above, ways back below."""
        ranks: list[list[int]] = [[] for _ in range(1 + max(place.rank for place in self.places))]
        for index, place in enumerate(self.places):
            ranks[place.rank].append(index)
        for rank in ranks:
            rank.sort(key=lambda index: (self.places[index].side, index))
        best, fewest = [list(rank) for rank in ranks], self._crossings(ranks)
        for sweep in range(SWEEPS):
            if fewest == 0:
                break
            leftward = sweep % 2 == 1
            for rank in reversed(ranks) if leftward else ranks:
                position = {index: k for other in ranks for k, index in enumerate(other)}

                def centre(index: int, leftward: bool = leftward, position: dict[int, int] = position) -> float:
                    near = self.places[index].after if leftward else self.places[index].before
                    return sum(position[n] for n in near) / len(near) if near else float(position[index])

                rank.sort(key=centre)
            crossings = self._crossings(ranks)
            if crossings < fewest:
                best, fewest = [list(rank) for rank in ranks], crossings
        return best

    def _crossings(self, ranks: Sequence[Sequence[int]]) -> int:
        position = {index: k for rank in ranks for k, index in enumerate(rank)}
        crossings = 0
        for rank in ranks:
            lines = [(position[a], position[b]) for a in rank for b in self.places[a].after]
            crossings += sum((a - c) * (b - d) < 0 for k, (a, b) in enumerate(lines) for c, d in lines[:k])
        return crossings

    def _ports(self, ranks: Sequence[Sequence[int]]) -> dict[tuple[int, int], float]:
        """(edge, 0 at its left end or 1 at its right) -> height from the middle of the node: the ends on one side of a
        node are in the order in which they come."""
        position = {index: k for rank in ranks for k, index in enumerate(rank)}
        heights: dict[tuple[int, int], float] = {}
        for node in self.of_node:
            for end in (0, 1):
                mine = [(position[self.chains[k][-end]], k) for k, *ends in self.forward if ends[end] == node]
                step = 0.0 if node == -1 else PORT
                for place, (_, k) in enumerate(sorted(mine)):
                    heights[k, end] = (place - (len(mine) - 1) / 2) * step
        return heights

    def _level(self, ranks: Sequence[Sequence[int]], ports: Mapping[tuple[int, int], float]) -> None:
        """Heights: each place as near to the mean of its neighbours as the order and the room in its rank allow."""
        links: dict[int, list[tuple[int, float, float]]] = {index: [] for index in range(len(self.places))}
        for k, source, target in self.forward:
            chain = self.chains[k]
            ends = self.of_node[source], self.of_node[target]
            weight = 1.0 if len(chain) == 1 and k not in self.back else 1e-3  # others give way to single steps ahead
            steps = [(ends[0], chain[0], ports[k, 0], weight), (ends[1], chain[-1], ports[k, 1], weight)]
            steps += [(left, right, 0.0, 4.0) for left, right in pairwise(chain)]
            for left, right, higher, heavy in steps:  # right is wished to be at left + higher
                links[left].append((right, -higher, heavy))
                links[right].append((left, higher, heavy))
        for rank in ranks:
            self._settle(rank, [0.0] * len(rank), [1.0] * len(rank))
        for sweep in range(20 * SWEEPS):
            heights = [place.y for place in self.places]
            for rank in reversed(ranks) if sweep % 2 else ranks:
                totals = [sum(heavy for _, _, heavy in links[index]) for index in rank]
                wishes = [
                    sum((self.places[other].y + higher) * heavy for other, higher, heavy in links[index]) / (total or 1)
                    for index, total in zip(rank, totals, strict=True)
                ]
                self._settle(rank, wishes, [total or 1 for total in totals])
            if all(abs(place.y - y) < STILL for place, y in zip(self.places, heights, strict=True)):
                break

    def _settle(self, rank: Sequence[int], wishes: Sequence[float], weights: Sequence[float]) -> None:
        """As `settled` in the order of the rank."""
        boxes = [self.places[index].box for index in rank]
        distances = [above.down + BETWEEN + below.up for above, below in pairwise(boxes)]
        for index, y in zip(rank, settled(wishes, weights, distances), strict=True):
            self.places[index].y = y

    def _drawn(self, ranks: Sequence[Sequence[int]], ports: Mapping[tuple[int, int], float]) -> Layout:
        top = min(place.y - place.box.up for place in self.places)
        bottom = max(place.y + place.box.down for place in self.places)
        lefts, across = [], 0.0
        for k, rank in enumerate(ranks):
            if k:
                steep = max(
                    (abs(self.places[a].y - self.places[b].y) for a in ranks[k - 1] for b in self.places[a].after),
                    default=0.0,
                )
                across += max(BEND, min(0.3 * steep, 3 * BEND))
            lefts.append(across)
            across += max(self.places[index].box.wide for index in rank)
        spans = [(lefts[k], max(self.places[i].box.wide for i in rank) + lefts[k]) for k, rank in enumerate(ranks)]
        spots = {
            node: Spot(
                sum(spans[self.places[index].rank]) / 2,
                self.places[index].y - top,
                Shape(START_RADIUS, START_RADIUS) if node == -1 else self.shapes[node],
            )
            for node, index in self.of_node.items()
        }
        routes = {}
        for k, source, target in self.forward:
            y, end_y = spots[source].y + ports[k, 0], spots[target].y + ports[k, 1]
            points = [(_edge_of(spots[source], y, 1), y), (spans[2 * self.layer[source]][1], y)]
            for index in self.chains[k]:
                points += [(x, self.places[index].y - top) for x in spans[self.places[index].rank]]
            points += [(spans[2 * self.layer[target]][0], end_y), (_edge_of(spots[target], end_y, -1), end_y)]
            place = self.places[self.labels[k]]
            middle = sum(spans[place.rank]) / 2, place.y - top
            routes[k] = Route(tuple(points[::-1] if k in self.back else points), middle)
        nodes = tuple(spots[index] for index in range(len(self.graph.nodes)))
        return Layout(across, bottom - top, nodes, spots.get(-1), routes)


def _edge_of(spot: Spot, y: float, side: int) -> float:
    """Where the outline of a node is at height `y`, to the right (1) or left (-1)."""
    radius = spot.shape.radius
    return spot.x + side * (spot.shape.half - radius + math.sqrt(radius**2 - (y - spot.y) ** 2))
