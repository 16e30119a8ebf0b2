"""How many neighbours only their ids order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines import to_table
from trendlake.cep_core import compile_query, explain
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.total_order import ordered_by_id

EVENTS = [
    {"id": f"e{k}", "type": "A", "time": time, "g": g, "n": n}
    for k, (time, g, n) in enumerate([(0, "x", 1), (0, "x", 2), (0, "y", 1), (1, "x", 1), (1, "x", 1), (2, "x", None)])
]
ARCS = {"start": "p", "final": ["q"], "arcs": [{"from": "p", "to": "q"}]}


@pytest.mark.parametrize(
    ("query", "sequence", "expected"),
    [
        ({"kind": "automaton", **ARCS}, None, 3),
        ({"kind": "automaton", **ARCS, "partition_by": ["g"]}, None, 2),
        ({"kind": "automaton", **ARCS, "partition_by": ["g"]}, "n", 1),
        ({"kind": "matches", "pattern": "A a"}, None, 0),
        ({"kind": "matches", "pattern": "A a", "select": "contiguous"}, None, 3),
        ({"kind": "matches", "pattern": "A a", "where": ["[g]"], "select": "partition_contiguous"}, "n", 1),
        ({"kind": "trends", "pattern": "A", "return": {"c": "COUNT(*)"}, "select": "contiguous"}, None, 3),
        ({"kind": "trends", "pattern": "A", "return": {"c": "COUNT(*)"}}, None, 0),
    ],
)
def test_count(query: dict[str, Any], sequence: str | None, expected: int) -> None:
    table = to_table(EVENTS)
    plan = compile_query({**query, "within": "1 minute"}, schema_of(table, sequence=sequence))
    assert ordered_by_id(plan, table) == expected
    assert ordered_by_id(plan, table.slice(0, 0)) == 0


def test_no_number_orders_nothing() -> None:
    table = to_table([{**EVENTS[0], "n": None}, EVENTS[1]])
    plan = compile_query({"kind": "automaton", **ARCS, "within": "1 minute"}, schema_of(table, sequence="n"))
    assert ordered_by_id(plan, table) == 1


def test_of_some_windows() -> None:
    """Those of the chosen windows alone."""
    table = to_table([{**event, "time": event["time"] * 60} for event in EVENTS])
    text = {"kind": "trends", "pattern": "A", "return": {"c": "COUNT(*)"}, "select": "contiguous"}
    plan = compile_query({**text, "within": "1 minute"}, schema_of(table))
    assert [ordered_by_id(plan, table, range(j, j + 1)) for j in range(4)] == [2, 1, 0, 0]
    assert "ids       decide which event of one time is next" in explain(plan)
    ordered = compile_query({**text, "within": "1 minute"}, schema_of(table, sequence="n"))
    assert "ids " not in explain(ordered)
