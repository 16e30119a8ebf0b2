"""`having`: rows that do not hold are no results, in every kind, alone and with other plans."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.random.strategies import COLUMNS, questions
from tests.reference.trends.values import evaluate as value_of
from tests.support.cases import Case, load
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, compile_query, evaluate, run_plan, run_plans
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.language.parse import parse_condition

QUERY = {"kind": "trends", "pattern": "S+", "return": {"n": "COUNT(*)", "m": "SUM(S.x)"}, "within": "1 minute"}
EVENTS = [{"id": f"e{k}", "type": "S", "time": k, "x": k} for k in range(3)]


@pytest.mark.parametrize("case", load("having.yaml"), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    rows = evaluate(case.query, to_table(case.events)).to_pylist()
    names = case.expect[0] if case.expect else ()
    answer = [{name: plain(name, row[name]) for name in names} for row in rows]
    assert sorted(map(str, answer)) == sorted(map(str, case.expect)), rows


def plain(name: str, cell: Any) -> Any:
    if name == "window_start":
        return int(cell.timestamp())
    return int(cell) if name == "n" and cell is not None else cell


@pytest.mark.random
@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
@examples(150)
@given(questions(), st.sampled_from(("m0 > 1", "m0 >= 3 OR m0 IS NULL", "m0 * 2 < m0 + 4", "m0 != 1", "NOT (m0 > 2)")))
def test_rows_are_those_that_hold(question: Any, condition: str) -> None:
    """Of the pattern without it, by an evaluator of its own."""
    query, rows = question
    query = {**query, "return": {"m0": next(iter(query["return"].values()))}}
    table = to_table(rows, COLUMNS)
    try:
        whole = evaluate(query, table)
    except PatternErrors:
        return
    if pa.types.is_string(whole.schema.field("m0").type):
        return
    node = parse_condition(condition)

    def holds(row: Any) -> bool:
        cell = row["m0"]
        return value_of(node, lambda read: int(cell) if isinstance(cell, Decimal) else cell) is True

    expected = [row for row in whole.to_pylist() if holds(row)]
    assert evaluate({**query, "having": [condition]}, table).to_pylist() == expected


def test_plans_together() -> None:
    """Plans that differ in `having` only share their work, never their rows."""
    table = to_table(EVENTS)
    texts = (["n > 6"], ["n > 7"], [], ["m > 100"], ["n > 6"])
    plans = [compile_query({**QUERY, "having": text}, schema_of(table)) for text in texts]
    answer = dict(run_plans(plans, table))
    assert [answer[k].num_rows for k in range(5)] == [1, 0, 1, 0, 1]
    assert [answer[k] == run_plan(plan, table) for k, plan in enumerate(plans)] == [True] * 5


def test_the_hash() -> None:
    """A condition changes it; none leaves it as it was."""
    schema = schema_of(to_table(EVENTS))
    plan, other = (compile_query({**QUERY, "having": text}, schema) for text in (["n > 6"], ["n > 7"]))
    bare = compile_query(QUERY, schema)
    assert len({plan.hash, other.hash, bare.hash}) == 3
    data: Any = plan
    assert replace(data, having=()).hash == bare.hash


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("COUNT(S) > 3", "COUNT is an aggregate", 'having: ["n >= 4"]'),
        ("COUNT(*) > 3", r"COUNT\(\*\) is an aggregate", 'having: ["n >= 4"]'),
        ("S.x > 3", "having reads columns of the result row", "return: {n: ...}"),
        ("count > 3", "the results have no column 'count'", "known: window_start"),
        ("n > 'a'", "cannot compare", ""),
        ("n + 1", "a condition is true or false", ""),
        ("1 > 0", "reads no column of the row", ""),
        ("[n]", "an equivalence is of events", "write it in where"),
    ],
)
def test_mistakes(condition: str, message: str, hint: str) -> None:
    with pytest.raises(PatternErrors, match=message) as failure:
        evaluate({**QUERY, "having": [condition]}, to_table(EVENTS))
    (error,) = failure.value.errors
    assert hint in (error.hint or "")
    assert "having[0]:1:" in str(failure.value)


@pytest.mark.parametrize("kind", ["trends", "matches"])
@pytest.mark.parametrize("condition", ["COUNT(*) >= 4", "COUNT(S) >= 4", "n >= 4"])
def test_a_condition_on_a_row_in_where(kind: str, condition: str) -> None:
    """The hint leads to `having`, and what it says is accepted and means what was asked."""
    query = {**QUERY, "kind": kind, "return": {"n": "COUNT(S)"}, "where": [condition]}
    with pytest.raises(PatternErrors) as failure:
        evaluate(query, to_table(EVENTS))
    assert "having" in (failure.value.errors[0].hint or "")
    rows = evaluate({**query, "where": [], "having": ["n >= 4"]}, to_table(EVENTS)).to_pylist()
    assert [row["n"] for row in rows] == ([12] if kind == "trends" else [])
