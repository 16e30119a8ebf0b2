"""The contract of a family's results: the parameters are the first columns of the key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ROOT
from trendlake.cep_core import EventSchema, compile_query
from trendlake.pipelines.contracts.results import contract_name, results_contract

SCHEMA = EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "bigint"})
KINDS: dict[str, dict[str, Any]] = {
    "trends": {"pattern": "A a", "where": ["a.x = $x_is", "a.event_time > $since"], "return": {"n": "COUNT(*)"}},
    "matches": {"pattern": "A a", "where": ["a.x = $x_is", "a.event_time > $since"]},
    "matches, compressed": {
        "pattern": "A a",
        "where": ["a.x = $x_is", "a.event_time > $since"],
        "output": "compressed",
    },
    "automaton": {
        "start": "p",
        "final": ["q"],
        "arcs": [{"from": "p", "to": "q", "when": "e.x = $x_is AND e.event_time > $since"}],
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_the_first_columns_of_the_key(kind: str) -> None:
    query = {"kind": kind.split(",")[0], "within": "1 hour", **KINDS[kind]}
    import datetime

    times = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    plan = compile_query({**query, "for_each": {"x_is": [1, None], "since": times}}, SCHEMA)
    contract = results_contract(ROOT / "data_contracts" / f"{contract_name(plan)}.yaml", plan, "watched")
    assert [column.name for column in contract.columns][:2] == ["x_is", "since"]
    assert [column.type for column in contract.columns][:2] == ["bigint", "timestamp"]
    assert tuple(contract.key) == plan.key


def test_durations_name_their_unit() -> None:
    query = {"kind": "matches", "pattern": "SEQ(A a, A b)", "within": "1 hour"}
    plan = compile_query({**query, "return": {"d": "b.event_time - a.event_time", "x": "b.x"}}, SCHEMA)
    contract = results_contract(ROOT / "data_contracts" / f"{contract_name(plan)}.yaml", plan, "watched")
    columns = {item.name: item for item in contract.columns}
    assert columns["d"].type == "bigint"
    assert ["microseconds" in columns[name].description for name in ("d", "x")] == [True, False]
