"""`ANY c` binds an event of every type, in kinds trends and matches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines import to_table
from trendlake.cep_core import EventSchema, PatternErrors, compile_query, evaluate, run_plans
from trendlake.cep_core.events.schema import schema_of

EVENTS = [{"id": f"e{k}", "type": kind, "time": k} for k, kind in enumerate("ACBA")]


def rows(**keys: Any) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = evaluate({"within": "1 minute", **keys}, to_table(EVENTS)).to_pylist()
    return answer


def test_trends() -> None:
    """Each event but the first A may follow it: C, B and A; 15 sub-sequences of 4 events."""
    assert [row["n"] for row in rows(kind="trends", pattern="ANY c+", **{"return": {"n": "COUNT(*)"}})] == [15]
    assert [row["n"] for row in rows(kind="trends", pattern="SEQ(A, ANY c)", **{"return": {"n": "COUNT(*)"}})] == [3]
    only = rows(kind="trends", pattern="ANY c", where=["c.event_type != 'A'"], **{"return": {"n": "COUNT(*)"}})
    assert [row["n"] for row in only] == [2]


def test_matches() -> None:
    """The next event after an A, whatever it is; and no event at all between two."""
    assert [(row["a"], row["c"]) for row in rows(kind="matches", pattern="SEQ(A a, ANY c)")] == [(["e0"], ["e1"])]
    assert rows(kind="matches", pattern="SEQ(A a, NOT ANY c, B b)") == []
    assert [row["a"] for row in rows(kind="matches", pattern="SEQ(A a, NOT ANY c)")] == [["e3"]]


@pytest.mark.parametrize("kind", ["trends", "matches"])
def test_with_other_plans(kind: str) -> None:
    """Its rows are those that it has alone."""
    returned = {"return": {"n": "COUNT(c)"}}
    query = {"kind": kind, "within": "1 minute", **returned}
    table = to_table(EVENTS)
    patterns = ["ANY c", "A c", "ANY c", "B c", *[f"{name} c" for name in "CDEF"]]
    plans = [compile_query({**query, "pattern": pattern}, schema_of(table)) for pattern in patterns]
    answers = dict(run_plans(plans, table))
    assert [answers[k].num_rows for k in range(4)] == ([1, 1, 1, 1] if kind == "trends" else [4, 2, 4, 1])


@pytest.mark.parametrize("kind", ["trends", "matches"])
def test_a_type_of_that_name(kind: str) -> None:
    schema = EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string"}, types=("A", "ANY"))
    query = {"kind": kind, "within": "1 minute", "pattern": "ANY c", "return": {"n": "COUNT(c)"}}
    with pytest.raises(PatternErrors, match="the source has a type of that name"):
        compile_query(query, schema)
