"""Queries of MMQJP's evaluation: the templates that they fall into, counted without the engine, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest

from tests.reference.xml_join import answers
from tests.support.xml_documents import rows_of
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.events.schema import schema_of
from trendlake.pipelines.generate.xml_queries import (
    SECOND,
    DocumentSchema,
    alike_documents,
    feed_pattern,
    feed_queries,
    join_pattern,
    join_queries,
    three_levels,
    two_levels,
)

Row = dict[str, str]
Groups = tuple[int, ...]
"""The group of the leaf of each join, on one side."""
GROUPS = LEAVES = 4
SKEW = 0.8
"""Table 6.5 of the thesis."""


def plan_of(schema: DocumentSchema, most: int, rows: Sequence[Row]) -> Any:
    documents = schema_of(alike_documents(schema, 1), roles=("event_time", "document"))
    return compile_query({**join_pattern(schema, most, "1 hour"), "each": list(rows)}, documents)


def plans(plan: Any) -> int:
    """Templates, mirrored ones as one."""
    return len({template.plan for template in plan.templates})


def joins_of(row: Row, most: int) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """(group, leaf) of the left and right of each join, without the repeated ones."""
    sides = ("left", "right")
    drawn = [tuple((row.get(f"{s}_group_{n}", ""), row[f"{s}_{n}"]) for s in sides) for n in range(most)]
    return list(dict.fromkeys(drawn))  # type: ignore[arg-type]


def form(left: Groups, right: Groups, *, mirrored: bool) -> tuple[tuple[int, ...], ...]:
    """The template of joins whose i-th leaf is in the group left[i], equal to one in right[i]: how many joins each
    pair of groups shares, in any order of groups. Leaves of one group are a tree like leaves of no group in common."""
    left, right = (tuple(range(len(side))) if len(set(side)) == 1 else side for side in (left, right))
    table = [[sum(pair == (a, b) for pair in zip(left, right, strict=True)) for b in set(right)] for a in set(left)]
    sides = [table, [list(column) for column in zip(*table, strict=True)]]
    return min(tuple(sorted(zip(*rows, strict=True))) for side in sides[: 1 + mirrored] for rows in permutations(side))


def groupings(size: int) -> Iterator[Groups]:
    """All ways to choose the groups of `size` leaves, groups numbered as they come."""

    def more(chosen: Groups) -> Iterator[Groups]:
        if len(chosen) == size:
            yield chosen
            return
        for group in range(min(len(set(chosen)) + 1, GROUPS)):
            if chosen.count(group) < LEAVES:
                yield from more((*chosen, group))

    yield from more(())


def row_of(number: int, left: Groups, right: Groups, most: int) -> Row:
    row = {"number": str(number)}
    for side, groups in (("left", left), ("right", right)):
        leaves = [f"leaf{groups[:place].count(group)}" for place, group in enumerate(groups)]
        for place in range(most):
            join = place if place < len(groups) else 0
            row |= {f"{side}_group_{place}": f"group{groups[join]}", f"{side}_{place}": leaves[join]}
    return row


@pytest.mark.parametrize(("most", "one", "two"), [(1, 1, 1), (2, 2, 2), (3, 6, 7), (4, 22, 31), (5, 63, 98)])
def test_all_queries_of_three_levels(most: int, one: int, two: int) -> None:
    """As many templates as forms, of all queries but for the names of leaves: mirrored ones as one, and as two."""
    sizes = range(1, most + 1)
    pairs = [(a, b) for size in sizes for a in groupings(size) if sorted(a) == [*a] for b in groupings(size)]
    plan = plan_of(three_levels(GROUPS, LEAVES), most, [row_of(n, *pair, most) for n, pair in enumerate(pairs)])
    assert (plans(plan), len(plan.templates)) == (one, two)
    assert len({form(*pair, mirrored=True) for pair in pairs}) == one
    assert len({form(*pair, mirrored=False) for pair in pairs}) == two


@pytest.mark.parametrize(("most", "published", "ours"), [(2, 2, 2), (3, 6, 6), (4, 20, 20), (5, 39, 43)])
def test_drawn_queries_of_three_levels(most: int, published: int, ours: int) -> None:
    """1,000 queries as in figure 6.12: as many templates as the drawn queries have forms, and about as many as
    published, whose draw is not known."""
    schema = three_levels(GROUPS, LEAVES)
    rows = join_queries(schema, 1_000, most, SKEW, 3)
    plan = plan_of(schema, most, rows)
    sides = [
        [[joins[n][side][0] for n in range(len(joins))] for side in (0, 1)]
        for joins in (joins_of(row, most) for row in rows)
    ]
    assert plans(plan) == len({form(tuple(a), tuple(b), mirrored=True) for a, b in sides}) == ours
    assert abs(ours - published) <= published // 5


def test_two_levels_have_a_template_for_each_number_of_joins() -> None:
    """Figure 6.8 has six leaves, the feed items of figure 6.16 have five."""
    for leaves in (4, 6, 12):
        plan = plan_of(two_levels(leaves), leaves, join_queries(two_levels(leaves), 300, leaves, SKEW, 1))
        assert plans(plan) == len(plan.templates) == leaves
    documents = schema_of(alike_documents(two_levels(1), 1), roles=("event_time", "document"))
    plan = compile_query({**feed_pattern("1 hour"), "each": feed_queries(300, 1)}, documents)
    assert plans(plan) == 5


def test_numbers_of_joins_are_zipf_distributed() -> None:
    """The chance of k joins is in proportion to 1 / k**skew; without skew all are as likely."""
    for skew in (0.0, SKEW, 1.6):
        rows = join_queries(two_levels(6), 6_000, 6, skew, 4)
        counts = [0] * 7
        for row in rows:
            counts[len(joins_of(row, 6))] += 1
        total = sum(k**-skew for k in range(1, 7))
        for k in range(1, 7):
            expected = 6_000 * k**-skew / total
            assert abs(counts[k] - expected) < 5 * expected**0.5
    leaves = {joins_of(row, 6)[0] for row in rows}
    assert len(leaves) > 30, "the leaves of a join are any two of the six"
    with pytest.raises(ValueError, match="most: from 1 to 6"):
        join_queries(two_levels(6), 1, 7, SKEW, 1)


@pytest.mark.parametrize("schema", [two_levels(6), three_levels(GROUPS, LEAVES)], ids=["two levels", "three levels"])
def test_answers_are_those_of_equal_leaves(schema: DocumentSchema) -> None:
    """A leaf equals that leaf only: a query has all pairs of documents in time, or none."""
    rows = join_queries(schema, 1_000, 5, SKEW, 5)
    rows += [
        {**row, "number": str(1_000 + n)}
        | {key.replace("left", "right"): text for key, text in row.items() if key.startswith("left")}
        for n, row in enumerate(rows[:50])
    ]
    documents = alike_documents(schema, 4)
    file = {**join_pattern(schema, 5, "2 seconds"), "each": rows}
    plan = compile_query(file, schema_of(documents, roles=("event_time", "document")))
    actual = rows_of(run_plan(plan, documents))
    answered = [row["number"] for row in rows if all(left == right for left, right in joins_of(row, 5))]
    pairs = [(n, m) for n in range(4) for m in range(n + 1, min(n + 3, 4))]
    assert actual == {
        (
            ("end", m * SECOND),
            ("left_id", f"d{n}"),
            ("query", f"query_{number}"),
            ("right_id", f"d{m}"),
            ("start", n * SECOND),
        )
        for number in answered
        for n, m in pairs
    }
    assert 50 < len(answered) < 500
    listed = [{"id": f"d{n}", "time": n * SECOND, "xml": documents["document"][n].as_py()} for n in range(4)]
    some = rows[:40] + rows[-20:]
    names = {f"query_{row['number']}" for row in some}
    assert answers({**file, "each": some}, listed) == {row for row in actual if dict(row)["query"] in names}
