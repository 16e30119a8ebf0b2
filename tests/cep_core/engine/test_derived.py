"""`derive`: columns of a pattern's own, computed once a row, usable wherever a column is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.cases import Case, load
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, compile_query, evaluate, run_plan, run_plans
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import schema_of

QUERY = {"kind": "trends", "pattern": "S+", "return": {"n": "COUNT(*)"}, "within": "1 minute"}
EVENTS = [{"id": f"e{k}", "type": "S", "time": k, "x": k, "g": "ab"[k % 2]} for k in range(4)]


@pytest.mark.parametrize("case", load("derive.yaml"), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    rows = evaluate(case.query, to_table(case.events)).to_pylist()
    answer = [{name: plain(name, row[name]) for name in case.expect[0]} for row in rows]
    assert sorted(map(str, answer)) == sorted(map(str, case.expect)), rows


def plain(name: str, cell: Any) -> Any:
    if name == "window_start":
        return int(cell.timestamp())
    return int(cell) if name == "n" and not isinstance(cell, float) else cell


def test_plans_together() -> None:
    """One name for different columns, and plans without any: each plan has its rows."""
    table = to_table(EVENTS)
    texts = ({"y": "x + 1"}, {"y": "x * 10"}, {}, {"y": "x + 1"}, {"z": "x"})
    plans = [
        compile_query({**QUERY, "derive": text, "where": ["S.x >= 0"], "group_by": list(text)}, schema_of(table))
        for text in texts
    ]
    answers = dict(run_plans(plans, table))
    assert [answers[k].num_rows for k in range(5)] == [4, 4, 1, 4, 4]
    assert [answers[k] == run_plan(plan, table) for k, plan in enumerate(plans)] == [True] * 5


def test_what_a_source_is_asked_for() -> None:
    """The columns that a derived one is computed of; work is cut by stored columns only."""
    schema = schema_of(to_table(EVENTS))
    where = ["[h, g]"]
    plan = compile_query({**QUERY, "derive": {"h": "x % 2"}, "where": where, "group_by": ["h", "g"]}, schema)
    assert set(plan.columns) == {"event_time", "event_type", "x", "g"}
    unread = compile_query({**QUERY, "derive": {"y": "x + 1"}}, schema)
    read = to_table(EVENTS).select(list(unread.columns))
    assert run_plan(unread, read).num_rows == 1
    assert plan.shard_key == ("h", "g")
    assert plan.unit_key == ("g",)
    assert plan.key[:2] == ("h", "g")


def test_the_hash() -> None:
    schema = schema_of(to_table(EVENTS))
    hashes = [compile_query({**QUERY, "derive": text}, schema).hash for text in ({}, {"y": "x + 1"}, {"y": "x + 2"})]
    assert hashes[0] == compile_query(QUERY, schema).hash
    assert len(set(hashes)) == 3


def test_a_number_that_does_not_fit() -> None:
    table = to_table([{**EVENTS[0], "x": 2**62}])
    with pytest.raises(BadEventsError, match="overflow"):
        evaluate({**QUERY, "derive": {"y": "x * 4"}}, table)


def test_no_events() -> None:
    table = to_table(EVENTS).slice(0, 0)
    assert evaluate({**QUERY, "derive": {"y": "x + 1"}, "group_by": ["y"]}, table).num_rows == 0


@pytest.mark.parametrize(
    ("derive", "message", "hint"),
    [
        ({"x": "g"}, "'x' is a column of the source", ""),
        ({"plan_hash": "x"}, "or of every result", ""),
        ({"y": "S.x"}, "computed before any variable binds", "write x"),
        ({"y": "q + 1"}, "no column 'q'", "known: "),
        ({"y": "event_time - event_time"}, "a derived column is a duration", "seconds"),
        ({"y": "3"}, "reads no column", ""),
        ({"y": "[x]"}, "an equivalence is no value", ""),
        ({"y": "x + 'a'"}, "does not take", ""),
        ({"y": "$p + x"}, "has no value|no parameter", ""),
    ],
)
def test_mistakes(derive: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(PatternErrors, match=message) as failure:
        evaluate({**QUERY, "derive": derive}, to_table(EVENTS))
    assert hint in str(failure.value.errors[0].hint)
    assert f"derive.{next(iter(derive))}" in str(failure.value)


@pytest.mark.parametrize(("kind", "key"), [("trends", "group_by"), ("automaton", "partition_by")])
def test_a_group_that_is_an_expression(kind: str, key: str) -> None:
    """The hint is the line to paste, and does what was asked."""
    arcs = {"start": "p", "final": ["q"], "arcs": [{"from": "p", "to": "q"}]}
    query = {**QUERY, "kind": kind} if kind == "trends" else {"kind": kind, "within": "1 minute", **arcs}
    with pytest.raises(PatternErrors) as failure:
        evaluate({**query, key: ["hour(event_time)"]}, to_table(EVENTS))
    hint = "derive: {hour_event_time: hour(event_time)} and " + key + ": [hour_event_time]"
    assert hint == failure.value.errors[0].hint
    table = evaluate(
        {**query, "derive": {"hour_event_time": "hour(event_time)"}, key: ["hour_event_time"]}, to_table(EVENTS)
    )
    assert table.schema.field("hour_event_time").type == pa.int64()
