"""An order of a query's nodes that does not depend on their names or on the order in which they are written.

Colours are refined until they are stable (Weisfeiler and Leman); ties are broken at one node of the first cell of equal
colours, and colours are refined again. Nodes that stay equal when either is picked are taken to be images of one
another. Were they not, two queries of one form would count as two: the answers are the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Nodes:
    """Coloured nodes of two trees (`parents`: -1 at a top), and labelled edges (left node, right node, label)."""

    parents: tuple[int, ...]
    colours: tuple[str, ...]
    edges: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Canonical:
    """`order`: nodes in canonical order, parents before children; `form`: equal for two isomorphic graphs."""

    order: tuple[int, ...]
    form: tuple[Any, ...]


def canonical(nodes: Nodes) -> Canonical:
    """The canonical order of `nodes`, and their form."""
    depth: list[int] = []
    for parent in nodes.parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    colours = _ranks([(depth[v], colour) for v, colour in enumerate(nodes.colours)])
    near = _neighbours(nodes)
    colours = _refined(colours, near)
    while len(set(colours)) < len(colours):
        tied = min(colour for colour in colours if colours.count(colour) > 1)
        cell = [v for v, colour in enumerate(colours) if colour == tied]
        picks = [_refined([2 * c - (u == v) for u, c in enumerate(colours)], near) for v in cell]
        colours = min(picks, key=lambda pick: _form(nodes, pick))
    order = sorted(range(len(colours)), key=colours.__getitem__)
    return Canonical(tuple(order), _form(nodes, colours))


def _neighbours(nodes: Nodes) -> list[list[tuple[str, int]]]:
    near: list[list[tuple[str, int]]] = [[] for _ in nodes.parents]
    for v, parent in enumerate(nodes.parents):
        if parent >= 0:
            near[v].append(("parent", parent))
            near[parent].append(("child", v))
    for left, right, label in nodes.edges:
        near[left].append((f"right {label}", right))
        near[right].append((f"left {label}", left))
    return near


def _ranks(signatures: Sequence[Any]) -> list[int]:
    rank = {signature: number for number, signature in enumerate(sorted(set(signatures)))}
    return [rank[signature] for signature in signatures]


def _refined(colours: list[int], near: list[list[tuple[str, int]]]) -> list[int]:
    """Stable colours. The order of colours is kept: a node's rank comes first in its signature."""
    count = 0
    while True:
        signatures = []
        for v, colour in enumerate(colours):
            signatures.append((colour, tuple(sorted((what, colours[u]) for what, u in near[v]))))
        colours = _ranks(signatures)
        now = len(set(colours))
        if now == count:
            return colours
        count = now


def _form(nodes: Nodes, colours: list[int]) -> tuple[Any, ...]:
    """The graph by colours, which are places of nodes where they all differ."""
    tops = (
        (c, nodes.colours[v], -1 if nodes.parents[v] < 0 else colours[nodes.parents[v]]) for v, c in enumerate(colours)
    )
    edges = ((colours[left], colours[right], label) for left, right, label in nodes.edges)
    return (tuple(sorted(tops)), tuple(sorted(edges)))
