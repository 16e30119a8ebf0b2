"""From queries to the plan: minors, definitions, sides and templates, each of them once.

A query's nodes are put in canonical order first, so that names of variables, the order of `where` and prefixes change
neither its hash nor its template, and two queries that ask the same are one join.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trendlake.cep_core.documents.paths import Path
from trendlake.cep_core.fingerprint import fingerprint
from trendlake.cep_core.xml_join.compile.canonical import Canonical, Nodes, canonical
from trendlake.cep_core.xml_join.compile.minor import Minor, minor
from trendlake.cep_core.xml_join.compile.plan import LANGUAGE_VERSION, Definition, Join, Side, Template, Value
from trendlake.cep_core.xml_join.compile.query import Block, Form, Operand, Query

Edge = tuple[int, int, Form, Form]
"""A value join: nodes of the left and of the right minor, and what is taken of each."""

Tree = tuple[tuple[int, ...], tuple[int, ...]]
"""Parents and definitions of the nodes of a minor, in canonical order."""


@dataclass
class Builder:
    """Collects the parts of a plan. `roles`: columns of the source that play a role, part of every hash."""

    roles: tuple[str | None, ...]
    definitions: dict[tuple[int, str], int] = field(default_factory=dict)
    paths: list[Definition] = field(default_factory=list)
    sides: dict[Side, int] = field(default_factory=dict)
    joins: dict[tuple[object, ...], int] = field(default_factory=dict)
    rows: list[Join] = field(default_factory=list)
    templates: dict[tuple[object, ...], int] = field(default_factory=dict)
    texts: list[Template] = field(default_factory=list)
    plans: dict[tuple[object, ...], int] = field(default_factory=dict)
    _forms: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, query: Query) -> int:
        """The join of a query."""
        left = minor(query.left.parents, query.left.paths, _needed(query, left=True))
        right = minor(query.right.parents, query.right.paths, _needed(query, left=False))
        places = {True: _places(left), False: _places(right)}
        edges = {(places[True][a.variable], places[False][b.variable], a.form, b.form): None for a, b in query.where}
        columns = [(name, one.left, places[one.left][one.variable], one.form) for name, one in query.columns]
        order = _ordered(left, right, tuple(edges), columns)
        shift = len(left.paths)
        rank = {node: place for place, node in enumerate(node for node in order.order if node < shift)}
        rank |= {node: place for place, node in enumerate(node for node in order.order if node >= shift)}
        keys = sorted((rank[a], rank[b + shift], f, g) for a, b, f, g in edges)
        cells = sorted(
            (name, of_left, rank[node + (0 if of_left else shift)], form) for name, of_left, node, form in columns
        )
        nodes = [
            self._nodes(left, [node for node in order.order if node < shift]),
            self._nodes(right, [node - shift for node in order.order if node >= shift]),
        ]
        identity = (tuple(nodes), tuple(keys), tuple(cells), query.followed, query.within)
        if identity not in self.joins:
            self.joins[identity] = len(self.rows)
            self.rows.append(self._join(query, nodes, keys, cells))
        return self.joins[identity]

    def _nodes(self, tree: Minor, order: list[int]) -> Tree:
        """(parents, definitions) of a minor's nodes in canonical order."""
        rank = {node: place for place, node in enumerate(order)}
        parents = tuple(rank.get(tree.parents[node], -1) for node in order)
        defined: list[int] = []
        for place, node in enumerate(order):
            above = defined[parents[place]] if parents[place] >= 0 else -1
            defined.append(self._definition(above, tree.paths[node]))
        return parents, tuple(defined)

    def _definition(self, parent: int, path: Path) -> int:
        key = (parent, path.text)
        if key not in self.definitions:
            self.definitions[key] = len(self.paths)
            self.paths.append(Definition(parent, path))
        return self.definitions[key]

    def _join(
        self, query: Query, nodes: list[Tree], keys: list[Edge], cells: list[tuple[str, bool, int, Form]]
    ) -> Join:
        left_keys = sorted((a, f) for a, _, f, _ in keys)
        right_keys = sorted((b, g) for _, b, _, g in keys)
        taken = {
            of_left: sorted({(node, form) for _, side, node, form in cells if side == of_left})
            for of_left in (True, False)
        }
        pairs = []
        free = {True: list(range(len(keys))), False: list(range(len(keys)))}
        for a, b, f, g in keys:
            i = next(i for i in free[True] if left_keys[i] == (a, f))
            j = next(j for j in free[False] if right_keys[j] == (b, g))
            free[True].remove(i)
            free[False].remove(j)
            pairs.append((i, j))
        columns = tuple((name, side, taken[side].index((node, form))) for name, side, node, form in cells)
        return Join(
            self._template(nodes, keys, taken),
            self._side(nodes[0], left_keys, taken[True]),
            self._side(nodes[1], right_keys, taken[False]),
            tuple(pairs),
            columns,
            query.followed,
            query.within,
            self._hash(query, nodes, keys, cells),
        )

    def _side(self, nodes: Tree, keys: list[Value], cells: list[Value]) -> int:
        side = Side(nodes[0], nodes[1], tuple(keys), tuple(cells))
        return self.sides.setdefault(side, len(self.sides))

    def _hash(self, query: Query, nodes: list[Tree], keys: list[Edge], cells: list[tuple[str, bool, int, Form]]) -> str:
        """Of the query alone: definitions by what they say, not by their number in this file."""
        texts = tuple(
            (parents, tuple(self.paths[number].path.text for number in numbers)) for parents, numbers in nodes
        )
        said = (texts, tuple(keys), tuple(cells), query.followed, query.within, self.roles)
        return fingerprint(said, LANGUAGE_VERSION)

    def _template(self, nodes: list[Tree], keys: list[Edge], taken: dict[bool, list[Value]]) -> int:
        """The template of a query. Most queries are written as one before: their form is looked up."""
        (left, _), (right, _) = nodes
        edges = tuple((a, b) for a, b, _, _ in keys)
        marks = tuple(frozenset(node for node, _ in taken[side]) for side in (True, False))
        raw = (left, right, edges, marks)
        if raw not in self._forms:
            form = _form(left, right, edges, marks[0], marks[1])
            mirrored = _form(right, left, tuple((b, a) for a, b in edges), marks[1], marks[0])
            if form not in self.templates:
                plan = self.plans.setdefault(min(form, mirrored, key=repr), len(self.plans))
                joins = f"{len(edges)} value join{'s' * (len(edges) > 1)}"
                self.templates[form] = len(self.texts)
                self.texts.append(Template(form, plan, f"{_tree(left)} = {_tree(right)}, {joins}"))
            self._forms[raw] = self.templates[form]
        return self._forms[raw]


def _needed(query: Query, *, left: bool) -> set[int]:
    operands = [*(one for pair in query.where for one in pair), *(one for _, one in query.columns)]
    return {one.variable for one in operands if one.left == left}


def _places(tree: Minor) -> dict[int, int]:
    return {variable: place for place, variable in enumerate(tree.variables)}


def _ordered(
    left: Minor, right: Minor, edges: tuple[Edge, ...], columns: list[tuple[str, bool, int, Form]]
) -> Canonical:
    """The canonical order of a query's nodes, by what they are and what is asked of them."""
    shift = len(left.paths)
    asked: dict[int, list[str]] = {}
    for name, of_left, node, form in columns:
        asked.setdefault(node + (0 if of_left else shift), []).append(f"{name}={form}")
    colours = [
        f"{'L' if node < shift else 'R'} {path.text} {sorted(asked.get(node, ()))}"
        for node, path in enumerate((*left.paths, *right.paths))
    ]
    parents = (*left.parents, *(parent + shift if parent >= 0 else -1 for parent in right.parents))
    joined = tuple((a, b + shift, f"{f} {g}") for a, b, f, g in edges)
    return canonical(Nodes(parents, tuple(colours), joined))


def _form(
    left: tuple[int, ...],
    right: tuple[int, ...],
    edges: tuple[tuple[int, int], ...],
    left_marks: frozenset[int],
    right_marks: frozenset[int],
) -> tuple[object, ...]:
    shift = len(left)
    colours = [f"L{node in left_marks}" for node in range(shift)]
    colours += [f"R{node in right_marks}" for node in range(len(right))]
    parents = (*left, *(parent + shift if parent >= 0 else -1 for parent in right))
    return canonical(Nodes(parents, tuple(colours), tuple((a, b + shift, "") for a, b in edges))).form


def _tree(parents: tuple[int, ...]) -> str:
    """`(x x)` for a node with two leaves."""
    below = ["" for _ in parents]
    for node in reversed(range(len(parents))):
        text = f"({below[node].strip()})" if below[node] else "x"
        if parents[node] < 0:
            return text
        below[parents[node]] += f" {text}"
    return ""


__all__ = ["Block", "Builder", "Operand"]
