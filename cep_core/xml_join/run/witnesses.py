"""Witnesses of all sides: joins of the relations along the trees of the minors, all sides of one tree at once.

A row is a side, a document, the codes of its joined values and its returned cells. Rows that agree on all of these are
one. Before a row grows, its joined value must occur in another document, on the other side of some query: the rarest
values end here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Int64s, UInt64s
from trendlake.cep_core.xml_join.compile.plan import Side, XmlJoinPlan
from trendlake.cep_core.xml_join.run.relations import Relations

MOST_ROWS = 4_000_000
"""Rows of top nodes of sides that are joined at once."""


@dataclass(frozen=True)
class Witnesses:
    """Rows by side (`bounds`), in it by `hash` of the joined values, in that by time. `codes` (rows, most keys);
    `cells` (rows, most cells): codes, or labels of nodes; `group`: equal for rows of a side that agree on document and
    cells; `several`: of each side, whether a document has several rows."""

    bounds: Int64s
    hash: UInt64s
    time: Int64s
    document: Int64s
    codes: Int64s
    cells: Int64s
    group: Int64s
    several: Bools


def witnesses(plan: XmlJoinPlan, relations: Relations, times: Int64s) -> Witnesses:
    """The witnesses of all sides of a plan; `times`: of the documents, microseconds."""
    alive = _alive(plan, relations)
    keys = max((len(side.keys) for side in plan.sides), default=0)
    cells = max((len(side.cells) for side in plan.sides), default=0)
    parts = [_joined(plan, relations, alive, numbers, keys, cells) for numbers in _alike(plan.sides, relations)]
    side, document, codes, values = (np.concatenate([part[i] for part in parts]) for i in range(4))
    hashes = _hash(codes)
    order = np.lexsort((times[document], hashes, side))
    side, document, codes, values = (column[order] for column in (side, document, codes, values))
    hashes = hashes[order]
    bounds = np.searchsorted(side, np.arange(len(plan.sides) + 1))
    group, several = _groups(side, document, values, len(plan.sides))
    return Witnesses(bounds, hashes, times[document], document, codes, values, group, several)


def _alike(sides: tuple[Side, ...], relations: Relations) -> Iterator[list[int]]:
    """Numbers of sides that have one tree, some at a time."""
    alike: dict[object, list[int]] = {}
    for number, side in enumerate(sides):
        alike.setdefault(side.parents, []).append(number)
    sizes = np.diff(relations.bounds)
    for numbers in alike.values():
        part, rows = list[int](), 0
        for number in numbers:
            part.append(number)
            rows += int(sizes[sides[number].nodes[0]])
            if rows > MOST_ROWS:
                yield part
                part, rows = [], 0
        if part:
            yield part


def _alive(plan: XmlJoinPlan, relations: Relations) -> dict[str, Bools]:
    """Of each row and form whether its value occurs in another document, on the other side of some query that joins
    it."""
    partners: dict[tuple[int, str], set[tuple[int, str]]] = {}
    for join in plan.joins:
        left, right = plan.sides[join.left], plan.sides[join.right]
        for i, j in join.pairs:
            a = left.nodes[left.keys[i][0]], left.keys[i][1]
            b = right.nodes[right.keys[j][0]], right.keys[j][1]
            partners.setdefault(a, set()).add(b)
            partners.setdefault(b, set()).add(a)
    bounds, codes, document = relations.bounds, relations.codes, relations.document
    alive = {form: np.zeros(len(document), np.bool_) for form in codes}
    first = np.full(len(relations.texts) + 1, -1, np.int64)  # by value: a document that has it, and whether others do
    several = np.zeros(len(first), np.bool_)
    for (definition, form), others in partners.items():
        marked = [(codes[f][bounds[d] : bounds[d + 1]], document[bounds[d] : bounds[d + 1]]) for d, f in others]
        for values, of in marked:
            first[values] = of
        for values, of in marked:
            several[values[first[values] != of]] = True
        rows = slice(bounds[definition], bounds[definition + 1])
        mine = codes[form][rows]
        alive[form][rows] = several[mine] | ((first[mine] >= 0) & (first[mine] != document[rows]))
        for values, _ in marked:
            first[values], several[values] = -1, False
    return alive


def _joined(
    plan: XmlJoinPlan, relations: Relations, alive: dict[str, Bools], numbers: list[int], keys: int, cells: int
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """(side, document, codes, cells) of the sides `numbers`, which have one tree; each row once."""
    sides = [plan.sides[number] for number in numbers]
    parents = sides[0].parents
    nodes = np.array([side.nodes for side in sides], np.int64)
    which, rows = _ranges(relations.bounds[nodes[:, 0]], relations.bounds[nodes[:, 0] + 1])
    bound = [rows]
    which, bound = _filtered(sides, alive, 0, which, bound)
    lookup = relations.definition * (len(relations.document) + 1) + relations.parent + 1
    for node in range(1, len(parents)):
        wanted = nodes[which, node] * (len(relations.document) + 1) + bound[parents[node]] + 1
        grown, rows = _ranges(np.searchsorted(lookup, wanted), np.searchsorted(lookup, wanted, side="right"))
        which, bound = which[grown], [*(column[grown] for column in bound), rows]
        which, bound = _filtered(sides, alive, node, which, bound)
    document = relations.document[bound[0]]
    values = {**relations.codes, "node": relations.label}
    codes = _gathered(sides, [side.keys for side in sides], keys, which, bound, values)
    returned = _gathered(sides, [side.cells for side in sides], cells, which, bound, values)
    return _once(np.array(numbers, np.int64)[which], document, codes, returned)


def _ranges(first: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """(i, row) for each row of each range [first[i], end[i])."""
    sizes = end - first
    which = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    return which, starts + np.arange(len(which))


def _filtered(
    sides: list[Side], alive: dict[str, Bools], node: int, which: Int64s, bound: list[Int64s]
) -> tuple[Int64s, list[Int64s]]:
    """Only rows whose values at `node` occur elsewhere, as far as their sides join them."""
    keep = np.ones(len(which), np.bool_)
    for form, living in alive.items():
        joined = np.array([(node, form) in side.keys for side in sides], np.bool_)
        if joined.any():
            keep &= living[bound[node]] | ~joined[which]
    if keep.all():
        return which, bound
    return which[keep], [column[keep] for column in bound]


def _gathered(
    sides: list[Side], asked: list[Any], width: int, which: Int64s, bound: list[Int64s], values: dict[str, Int64s]
) -> Int64s:
    """(rows, width): the asked values of each row's side; -1 beyond them."""
    gathered = np.full((len(which), width), -1, np.int64)
    for column in range(width):
        kinds = {listed[column] for listed in asked if len(listed) > column}
        for kind in kinds:
            mine = np.array([len(listed) > column and listed[column] == kind for listed in asked], np.bool_)[which]
            node, form = kind
            gathered[mine, column] = values[form][bound[node][mine]]
    return gathered


def _once(side: Int64s, document: Int64s, codes: Int64s, cells: Int64s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Each row once. Only rows that share side and document can be equal."""
    pair = side * (int(document.max(initial=0)) + 1) + document
    _, inverse, counts = np.unique(pair, return_inverse=True, return_counts=True)
    many = counts[inverse] > 1
    if not many.any():
        return side, document, codes, cells
    rows = np.concatenate([side[many, None], document[many, None], codes[many], cells[many]], axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    keep = ~many
    keep[np.flatnonzero(many)[first]] = True
    return side[keep], document[keep], codes[keep], cells[keep]


def _groups(side: Int64s, document: Int64s, cells: Int64s, sides: int) -> tuple[Int64s, Bools]:
    pair = side * (int(document.max(initial=0)) + 1) + document
    _, inverse, counts = np.unique(pair, return_inverse=True, return_counts=True)
    many = counts[inverse] > 1
    several = np.zeros(sides, np.bool_)
    several[side[many]] = True
    group = np.arange(len(side))
    if many.any():
        rows = np.concatenate([pair[many, None], cells[many]], axis=1)
        _, first, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        places = np.flatnonzero(many)
        group[places] = places[first][same.reshape(-1)]
    return group, several


def _hash(codes: Int64s) -> UInt64s:
    """Of a row's joined values, in any order: two sides that are joined may list them differently."""
    total = np.zeros(len(codes), np.uint64)
    for column in range(codes.shape[1]):
        value = codes[:, column].astype(np.uint64)
        mixed = (value + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(32)
        total += np.where(codes[:, column] < 0, np.uint64(0), mixed)
    return total
