"""Events that a plan of kind algebra may not bind change nothing: it gives the same rows, or the same error, without
them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random import algebra
from tests.random.batches import shown
from tests.random.profile import examples
from trendlake.cep_core import PatternErrors, compile_query, run_plan, run_plans
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.sharing import interest
from trendlake.cep_core.sharing.interest import Interests

CONSTANTS = (
    "x = 1",
    "x > 1",
    "y >= 0.5",
    "s = 'a'",
    "n IN (1, 2)",
    "x BETWEEN 1 AND 2",
    "y = -0.0",
    "x + 1 > 2",
    "contains(s, 'a')",
    "DUR = INTERVAL '0' SECOND",
    "x * n > 0 AND s = 'a'",
)
SHAPES = (
    "SELECT x, y, n FROM FILTER{{{c}}}(A)",
    "SELECT x_1, x FROM FILTER{{{c}}}(A) NEXT FILTER{{{d}}}(A)",
    "SELECT x_1, x FROM A NEXT{{$2.{d} AND $1.{e}}} B",
    "SELECT x_1, x FROM A FOLD{{$2.{d}, $2.n >= $.n, }} A",
    "SELECT COUNT(*) AS c FROM FILTER{{{c}}}(A) PUBLISH p SELECT c_1, c FROM p NEXT FILTER{{c > 1}}(p)",
    "SELECT x FROM FILTER{{{c}}}(A) UNION FILTER{{{d}}}(B)",
    "SELECT x FROM FILTER{{{c}}}(A UNION B)",
)
SIMPLE = ("x = 1", "x > 1", "y >= 0.5", "s = 'a'")


def outcome(run: Any) -> Any:
    try:
        return shown(run())
    except TrendlakeError as error:
        return str(error)


def compare(table: pa.Table, plan: Any) -> None:
    """Of all events, and of those alone that the plan may bind, however many."""
    columns = Columns(table)
    with patch.object(interest, "MOST", 9.0):
        of_plan = Interests(columns, [plan], [KINDS["algebra"].bindings(plan)], always=True, unique_ids=True).of(0)
    if of_plan is not None:
        expected = outcome(lambda: KINDS["algebra"].run(plan, Columns(table), None, None))
        assert outcome(lambda: KINDS["algebra"].run(plan, columns.chosen(of_plan.rows), None, None)) == expected


@pytest.mark.random
@pytest.mark.more_in_chaos
@examples(125)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(CONSTANTS),
    st.sampled_from(SIMPLE),
    st.sampled_from(SIMPLE),
    st.booleans(),
    algebra.rows_of(14, wide=False, big=False),
)
def test_what_cannot_be_bound_changes_nothing(
    shape: str, c: str, d: str, e: str, parted: bool, rows: list[dict[str, Any]]
) -> None:
    query: dict[str, Any] = {"kind": "algebra", "pattern": shape.format(c=c, d=d, e=e), "within": "4 seconds"}
    if parted:
        query["partition_by"] = ["k"]
    table = algebra.table_of(rows, algebra.COLUMNS)
    plan = compile_query(query, schema_of(table))
    compare(table, plan)


@pytest.mark.random
@examples(100)
@given(algebra.cases(most=8))
def test_random_queries_bind_what_they_need(case: algebra.Case) -> None:
    try:
        table, plan = algebra.compiled(case)
    except PatternErrors:
        return
    compare(table, plan)


def test_many_plans_read_what_they_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten constants over a hundred events: together as alone, and each is given its ten events."""
    n = 100
    times = pa.array([i * 1_000_000 for i in range(n)], pa.timestamp("us", "UTC"))
    table = pa.table(
        {"event_id": range(n), "event_type": ["A"] * n, "event_time": times, "x": [i % 10 for i in range(n)]}
    )
    text = "SELECT event_id_1 AS a, event_id AS b FROM FILTER{{x = {c}}}(A) NEXT FILTER{{x = {c}}}(A)"
    plans = [
        compile_query({"kind": "algebra", "pattern": text.format(c=c), "within": "1 minute"}, schema_of(table))
        for c in range(10)
    ]
    interests = Interests(Columns(table), plans, [KINDS["algebra"].bindings(plan) for plan in plans])
    assert [len(one.rows) if (one := interests.of(k)) else None for k in range(10)] == 10 * [10]
    monkeypatch.setattr(interest, "FEW", 99)
    alone = [shown(run_plan(plan, table)) for plan in plans]
    monkeypatch.undo()
    assert [shown(answer) for _, answer in sorted(run_plans(plans, table), key=lambda pair: pair[0])] == alone
    assert all(len(rows) == 10 for rows in alone)  # the schema and nine pairs


@pytest.mark.parametrize("change", [{"interval_start": "at"}, {"pattern": "FROM EVENTS NEXT A"}])
def test_every_event_matters(change: dict[str, Any]) -> None:
    """Of any type; or one that starts after its end, which is an error wherever it is."""
    schema = {"event_id": pa.string(), "event_type": pa.string(), "event_time": algebra.TIME, "at": algebra.TIME}
    table = pa.table({name: pa.array([], kind) for name, kind in schema.items()})
    query = {"kind": "algebra", "pattern": "FROM A NEXT A", "within": "1 hour", **change}
    assert KINDS["algebra"].bindings(compile_query(query, schema_of(table))) is None
