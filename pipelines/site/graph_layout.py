"""Where the boxes of a graph of tables and patterns go: layers from left to right, what is read before who reads it
(Sugiyama, Tagawa and Toda 1981). The members of a batch are next to one another, in a frame.

An arrow that passes a layer has a place of its own there, shared by all arrows from the same box: what fans out does so
where it arrives. So no box is crossed by an arrow. (`cep_core.drawing.layout` is for automata: there every arrow has a
label and a port.)
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trendlake.cep_core.drawing.settle import settled

HEIGHT = 50.0
BETWEEN = 12.0
"""Least distance of two boxes in a layer."""
PASSING = 14.0
"""Height of the place of an arrow that passes a layer."""
BEND = 64.0
"""Distance of two layers, in which arrows bend."""
HEAD = 8.0
LABEL, PADDING = 24.0, 9.0
"""Of a frame: the room above its first box, and around all."""
SWEEPS = 12
Key = str
Passing = tuple[str, int]
"""The place in a layer of the arrows of one box."""
Place = Key | Passing


@dataclass(frozen=True)
class Item:
    """A box. `batch`: its frame, empty for none."""

    key: Key
    width: float
    batch: str = ""


@dataclass(frozen=True)
class Box:
    """A rectangle on the page, pixels, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Arrow:
    """`line` and `head` are paths of SVG."""

    source: Key
    target: Key
    line: str
    head: str


@dataclass(frozen=True)
class Layout:
    """The drawing, from (0, 0) on; `frames` by batch and layer."""

    width: float
    height: float
    boxes: Mapping[Key, Box]
    frames: Sequence[tuple[str, Box]]
    arrows: Sequence[Arrow]


def layout(items: Sequence[Item], edges: Sequence[tuple[Key, Key]]) -> Layout:
    """The places of `items`, keys all different, and of the arrows between them; the same for the same graph."""
    if not items:
        return Layout(0.0, 0.0, {}, (), ())
    return _Layout(items, edges).done()


class _Layout:
    def __init__(self, items: Sequence[Item], edges: Sequence[tuple[Key, Key]]) -> None:
        self.items = {item.key: item for item in items}
        self.edges = list(dict.fromkeys(edges))
        self.layer = _layers([item.key for item in items], self.edges)
        self.ahead = [(a, b) for a, b in self.edges if self.layer[a] < self.layer[b]]
        self.ways = {edge: self._way(*edge) for edge in self.ahead}
        steps = dict.fromkeys(step for way in self.ways.values() for step in pairwise(way))
        self.before: dict[Place, list[Place]] = {}
        self.after: dict[Place, list[Place]] = {}
        for left, right in steps:
            self.after.setdefault(left, []).append(right)
            self.before.setdefault(right, []).append(left)
        passing = dict.fromkeys(place for way in self.ways.values() for place in way[1:-1])
        self.ranks: list[list[Place]] = [[] for _ in range(1 + max(self.layer.values()))]
        for place in (*self.items, *passing):
            self.ranks[self._layer_of(place)].append(place)
        self.y: dict[Place, float] = {}

    def done(self) -> Layout:
        self._order()
        self._level()
        top = min(self.y[place] - self._up(place) for place in self.y)
        bottom = max(self.y[place] + self._down(place) for place in self.y)
        widths = [max((self._width(place) for place in rank), default=0.0) for rank in self.ranks]
        lefts = [PADDING + sum(widths[:at]) + at * BEND for at in range(len(widths))]
        boxes = {
            key: Box(lefts[self.layer[key]], self.y[key] - top - HEIGHT / 2, widths[self.layer[key]], HEIGHT)
            for key in self.items
        }
        arrows = [self._arrow(edge, boxes, lefts, widths, top) for edge in self.edges]
        return Layout(
            lefts[-1] + widths[-1] + PADDING, bottom - top, boxes, [*self._frames(boxes)], [*filter(None, arrows)]
        )

    def _way(self, source: Key, target: Key) -> list[Place]:
        between = range(self.layer[source] + 1, self.layer[target])
        return [source, *((source, at) for at in between), target]

    def _layer_of(self, place: Place) -> int:
        return self.layer[place] if isinstance(place, str) else place[1]

    def _batch(self, place: Place) -> str:
        return self.items[place].batch if isinstance(place, str) else ""

    def _width(self, place: Place) -> float:
        return self.items[place].width if isinstance(place, str) else 0.0

    def _order(self) -> None:
        """Each layer from top to bottom, with few crossings: barycentres, swept to and fro; the best order seen. Boxes
        without arrows come last."""
        for rank in self.ranks:
            rank.sort(key=self._first_order)
        best, fewest = [list(rank) for rank in self.ranks], self._crossings()
        for sweep in range(SWEEPS):
            if fewest == 0:
                break
            leftward = sweep % 2 == 1
            for at in reversed(range(len(self.ranks))) if leftward else range(len(self.ranks)):
                self._sort(at, self.after if leftward else self.before)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(rank) for rank in self.ranks], crossings
        self.ranks = best

    def _first_order(self, place: Place) -> tuple[bool, bool, str, str]:
        alone = not (place in self.before or place in self.after or self._batch(place))
        key = place if isinstance(place, str) else place[0]
        return alone, not isinstance(place, str), self._batch(place), key

    def _sort(self, at: int, near: Mapping[Place, Sequence[Place]]) -> None:
        position = {place: k for rank in self.ranks for k, place in enumerate(rank)}
        rank = self.ranks[at]
        centre = {
            place: sum(position[other] for other in others) / len(others) if (others := near.get(place)) else float(k)
            for k, place in enumerate(rank)
        }
        of_batch: dict[str, list[float]] = {}
        for place in rank:
            of_batch.setdefault(self._batch(place), []).append(centre[place])
        mean = {batch: sum(centres) / len(centres) for batch, centres in of_batch.items()}

        def turn(place: Place) -> tuple[bool, float, str, float]:
            batch = self._batch(place)
            return self._first_order(place)[0], mean[batch] if batch else centre[place], batch, centre[place]

        rank.sort(key=turn)

    def _crossings(self) -> int:
        crossings = 0
        for rank, following in pairwise(self.ranks):
            position = {place: k for k, place in enumerate(following)}
            ends: list[int] = []
            for place in rank:
                mine = sorted(position[other] for other in self.after.get(place, ()))
                crossings += sum(len(ends) - bisect_right(ends, end) for end in mine)
                for end in mine:
                    insort(ends, end)
        return crossings

    def _level(self) -> None:
        """Heights: each place as near to the mean of its neighbours as the order and the room allow."""
        distances = []
        for rank in self.ranks:
            distances.append([self._distance(above, below) for above, below in pairwise(rank)])
            self.y |= zip(rank, settled([0.0] * len(rank), [1.0] * len(rank), distances[-1]), strict=True)
        for sweep in range(2 * SWEEPS):
            order = range(len(self.ranks))
            for at in reversed(order) if sweep % 2 else order:
                rank = self.ranks[at]
                near = [[*self.before.get(place, ()), *self.after.get(place, ())] for place in rank]
                wishes = [
                    sum(self.y[other] for other in others) / len(others) if others else self.y[place]
                    for place, others in zip(rank, near, strict=True)
                ]
                weights = [len(others) or 0.01 for others in near]
                self.y |= zip(rank, settled(wishes, weights, distances[at]), strict=True)

    def _distance(self, above: Place, below: Place) -> float:
        together = self._batch(above) and self._batch(above) == self._batch(below)
        return self._down(above, inside=bool(together)) + BETWEEN + self._up(below, inside=bool(together))

    def _up(self, place: Place, *, inside: bool = False) -> float:
        if not isinstance(place, str):
            return PASSING / 2
        return HEIGHT / 2 + (LABEL if self._batch(place) and not inside else 0.0)

    def _down(self, place: Place, *, inside: bool = False) -> float:
        if not isinstance(place, str):
            return PASSING / 2
        return HEIGHT / 2 + (PADDING if self._batch(place) and not inside else 0.0)

    def _frames(self, boxes: Mapping[Key, Box]) -> list[tuple[str, Box]]:
        members: dict[tuple[int, str], list[Box]] = {}
        for key, item in self.items.items():
            if item.batch:
                members.setdefault((self.layer[key], item.batch), []).append(boxes[key])
        frames = []
        for (_, batch), inside in sorted(members.items()):
            top, bottom = min(box.y for box in inside) - LABEL, max(box.y for box in inside) + HEIGHT + PADDING
            frames.append((batch, Box(inside[0].x - PADDING, top, inside[0].width + 2 * PADDING, bottom - top)))
        return frames

    def _arrow(
        self,
        edge: tuple[Key, Key],
        boxes: Mapping[Key, Box],
        lefts: Sequence[float],
        widths: Sequence[float],
        top: float,
    ) -> Arrow:
        source, target = boxes[edge[0]], boxes[edge[1]]
        end = target.x - 1, target.y + HEIGHT / 2
        points = [(source.x + source.width, source.y + HEIGHT / 2)]
        for place in self.ways.get(edge, [])[1:-1]:
            at, y = self._layer_of(place), self.y[place] - top
            points += [(lefts[at], y), (lefts[at] + widths[at], y)]
        points.append((end[0] - HEAD + 1, end[1]))
        line = f"M{_n(*points[0])}"
        for (x0, y0), (x1, y1) in pairwise(points):
            reach = max(abs(x1 - x0) / 2, BEND / 2)
            level = y0 == y1 and x1 > x0
            line += "L" if level else f"C{_n(x0 + reach, y0)} {_n(x1 - reach, y1)} "
            line += _n(x1, y1)
        x, y = end
        head = f"M{_n(x, y)}L{_n(x - HEAD, y - HEAD / 2)}L{_n(x - HEAD, y + HEAD / 2)}Z"
        return Arrow(*edge, line, head)


def _layers(keys: Sequence[Key], edges: Sequence[tuple[Key, Key]]) -> dict[Key, int]:
    """The longest way to each, so that arrows go right; those of a circle that go back do not count. A table is
    right before its first reader."""
    back = _backward(keys, edges)
    out: dict[Key, list[Key]] = {}
    for source, target in edges:
        if (source, target) not in back:
            out.setdefault(source, []).append(target)
    waiting = Counter(target for targets in out.values() for target in targets)
    roots = [key for key in keys if not waiting[key]]
    layer, ready = dict.fromkeys(keys, 0), deque(roots)
    while ready:
        key = ready.popleft()
        for target in out.get(key, ()):
            waiting[target] -= 1
            layer[target] = max(layer[target], layer[key] + 1)
            if not waiting[target]:
                ready.append(target)
    for key in roots:
        if key in out:
            layer[key] = min(layer[target] for target in out[key]) - 1
    return layer


def _backward(keys: Sequence[Key], edges: Sequence[tuple[Key, Key]]) -> set[tuple[Key, Key]]:
    """The arrows that lead back to a box on the way to them; without these the graph has no circle."""
    out: dict[Key, list[Key]] = {}
    for source, target in edges:
        out.setdefault(source, []).append(target)
    back, done = set[tuple[Key, Key]](), dict[Key, bool]()
    for root in keys:
        stack = [] if root in done else [(root, iter(out.get(root, ())))]
        done.setdefault(root, False)
        while stack:
            key, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                done[key] = True
                stack.pop()
            elif step not in done:
                done[step] = False
                stack.append((step, iter(out.get(step, ()))))
            elif not done[step]:
                back.add((key, step))
    return back


def _n(x: float, y: float) -> str:
    """To a tenth of a pixel."""
    return f"{x:.1f} {y:.1f}".replace(".0", "")
