"""How many templates queries fall into: table 6.3 of the thesis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import pytest

from tests.cep_core.xml_join.test_worked_cases import SCHEMA
from trendlake.cep_core import compile_query
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan

Tree = Any
"""A leaf's number, or a tuple of trees."""


def plan_of(queries: list[dict[str, Any]]) -> XmlJoinPlan:
    plan: Any = compile_query({"kind": "xml_join", "queries": {f"q{n}": one for n, one in enumerate(queries)}}, SCHEMA)
    return plan  # type: ignore[no-any-return]


def query(left: dict[str, str], right: dict[str, str], edges: Any) -> dict[str, Any]:
    where = [f"$l{a} = $r{b}" for a, b in edges]
    return {"left": left, "right": right, "operator": "followed_by", "where": where, "within": "1 day", "return": {}}


def flat(side: str, leaves: Any) -> dict[str, str]:
    return {f"{side}_top": "//top", **{f"{side}{leaf}": f"${side}_top/leaf{leaf}" for leaf in sorted(leaves)}}


def value_joins(count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Sets of pairs of leaves; leaves are used from 0 on."""
    for edges in combinations(product(range(count), range(count)), count):
        sides = [{edge[side] for edge in edges} for side in (0, 1)]
        if all(side == set(range(len(side))) for side in sides):
            yield edges


def trees(leaves: tuple[int, ...]) -> Iterator[Tree]:
    """Trees over some leaves, whose inner nodes have two branches at least."""
    if len(leaves) == 1:
        yield leaves[0]
        return
    for parts in partitions(leaves):
        if len(parts) > 1:
            yield from product(*(list(trees(part)) for part in parts))


def partitions(leaves: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    if not leaves:
        yield []
        return
    first, rest = leaves[0], leaves[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = tuple(one for one in rest if one not in others)
            for more in partitions(left):
                yield [(first, *others), *more]


def nested(side: str, tree: Tree) -> dict[str, str]:
    block: dict[str, str] = {}

    def add(node: Tree, above: str) -> None:
        name = f"{side}{node}" if isinstance(node, int) else f"{side}_{len(block)}"
        block[name] = f"${above}/n{len(block)}" if above else "//n"
        if not isinstance(node, int):
            for child in node:
                add(child, name)

    add(tree, "")
    return block


@pytest.mark.parametrize(("count", "templates"), [(1, 1), (2, 3), (3, 6), (4, 16)])
def test_flat_schemas(count: int, templates: int) -> None:
    queries = [query(flat("l", {a for a, _ in e}), flat("r", {b for _, b in e}), e) for e in value_joins(count)]
    assert len(plan_of(queries).templates) == templates


@pytest.mark.parametrize(("count", "templates"), [(1, 1), (2, 3), (3, 16), (4, 215)])
def test_any_schema(count: int, templates: int) -> None:
    """One set of value joins of each flat template, with every tree on both sides."""
    joins = list(value_joins(count))
    plan = plan_of([query(flat("l", {a for a, _ in e}), flat("r", {b for _, b in e}), e) for e in joins])
    by_template = {plan.joins[join].template: edges for (_, join), edges in zip(plan.queries, joins, strict=True)}
    queries = [
        query(nested("l", left), nested("r", right), edges)
        for edges in by_template.values()
        for left in trees(tuple(sorted({a for a, _ in edges})))
        for right in trees(tuple(sorted({b for _, b in edges})))
    ]
    assert len(plan_of(queries).templates) == templates
