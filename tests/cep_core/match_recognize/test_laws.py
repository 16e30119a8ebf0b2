"""Laws of row patterns: equal texts, starts, partitions and shards."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.random.row_patterns import TYPES, Case, answer, cases, plain, variables_of
from tests.support.row_patterns import only, rows_of, table_of
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.events.schema import schema_of

pytestmark = [pytest.mark.random, pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")]


def with_pattern(case: Case, pattern: Any) -> Case:
    return replace(case, question=replace(case.question, pattern=pattern))


def without_skip(case: Case) -> Case:
    """A skip to a variable may fail where it is not the subject."""
    skip = case.question.skip if case.question.skip[0] in ("past_last", "next") else ("past_last", "")
    return replace(case, question=replace(case.question, skip=skip))


def same(one: Case, other: Case) -> None:
    rows, others = answer(one), answer(other)
    names = list(rows[0]) if rows and not isinstance(rows, str) else []
    assert plain(rows, names) == plain(others, names)


@examples(600)
@given(cases(), st.integers(0, 2), st.integers(0, 2), st.booleans())
def test_bounds_are_their_spelling(case: Case, low: int, more: int, greedy: bool) -> None:
    """`P{1,3}` is `P (P (P)?)?`, of patterns with a row in each iteration."""
    assume(low + more)
    body = ("var", variables_of(case.question.pattern)[0])
    spelled: Any = ("empty",)
    for _ in range(more):
        spelled = ("rep", ("seq", body, spelled), 0, 1, greedy)
    spelled = ("seq", *[body] * low, spelled)
    rest = case.question.pattern
    case = without_skip(case)
    same(
        with_pattern(case, ("seq", ("rep", body, low, low + more, greedy), rest)),
        with_pattern(case, ("seq", spelled, rest)),
    )


@examples(400)
@given(cases())
def test_permute_is_its_alternatives(case: Case) -> None:
    names = variables_of(case.question.pattern)[:3]
    assume(len(names) > 1)
    parts = [("rep", ("var", name), 1, 2, True) for name in names]
    case = without_skip(case)
    same(
        with_pattern(case, ("seq", ("permute", *parts), case.question.pattern)),
        with_pattern(
            case, ("seq", ("alt", *(("seq", *order) for order in permutations(parts))), case.question.pattern)
        ),
    )


@examples(400)
@given(cases(), st.data())
def test_skip_to_next_row_finds_what_begins_at_each_row(case: Case, data: st.DataObject) -> None:
    """The match from a row is the first match of a partition that begins there, if nothing looks back beyond it."""
    assume("first" not in str(case.question.pattern))
    far = ("'nav'", "'near'", "'number'")
    defines = {name: node for name, node in case.question.defines.items() if not any(word in str(node) for word in far)}
    question = replace(case.question, defines=defines, measures={}, partition=False, order="event_time", rows="one")
    question = replace(question, skip=("next", ""))
    case = replace(case, question=question)
    rows = answer(case)
    ordered = sorted(case.rows, key=lambda row: (row["time"], row["id"]))
    assume(ordered)
    at = data.draw(st.integers(0, len(ordered) - 1))
    rest = answer(replace(case, rows=tuple(ordered[at:])))
    assert not isinstance(rows, str)
    assert not isinstance(rest, str)
    ids = {row["id"] for row in ordered[at:]}
    names = ["match_id", "start", "end"]
    assert only([row for row in rows if row["match_id"] in ids], names) == only(rest, names)


@examples(400)
@given(cases())
def test_partitions_do_not_depend_on_each_other(case: Case) -> None:
    """The rows of all partitions are those of each alone."""
    case = without_skip(replace(case, question=replace(case.question, partition=True)))
    whole = answer(case)
    alone = [
        answer(replace(case, rows=tuple(row for row in case.rows if row["sym"] == sym))) for sym in ("u", "v", None)
    ]
    together = [row for rows in alone for row in rows]
    names = list(together[0]) if together else []
    assert plain(whole, names) == plain(together, names)


@examples(60)
@given(cases())
def test_any_order_of_events_gives_the_same_rows(case: Case) -> None:
    """In the same order even, but for the order of partitions."""
    case = without_skip(case)
    assume(case.rows)
    rows = [{name: cell for name, cell in row.items() if name != "event_id"} for row in case.rows]
    plan = compile_query(case.query, schema_of(table_of(rows, TYPES)))
    tables = [run_plan(plan, table_of(order, TYPES)) for order in (rows, rows[::-1])]
    assert sorted(map(str, rows_of(tables[0]))) == sorted(map(str, rows_of(tables[1])))
