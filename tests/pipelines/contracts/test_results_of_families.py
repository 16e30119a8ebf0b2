"""The contract of a family's results: the parameters are the first columns of the key."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tests.conftest import ROOT
from trendlake.cep_core import EventSchema, compile_query
from trendlake.jobs.terminal.rows import table_of
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.report.amounts import time_text
from trendlake.pipelines.results.columns import Reading

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


def test_seconds_name_their_unit() -> None:
    """Measures of durations of kind trends are doubles of seconds: the contract and everything printed say which."""
    measures = {"longest": "MAX(DURATION(*))", "total": "SUM(DURATION(*))", "n": "COUNT(*)", "s": "SUM(A.x)"}
    plan = compile_query({"kind": "trends", "pattern": "A+", "within": "1 day", "return": measures}, SCHEMA)
    contract = results_contract(ROOT / "data_contracts" / f"{contract_name(plan)}.yaml", plan, "watched")
    columns = {item.name: item for item in contract.columns}
    assert ["in seconds" in columns[name].description for name in ("longest", "total", "n")] == [True, True, False]
    values = {"longest": 10_140.0, "total": 0.5, "n": 3, "s": 10_140.0}
    shown = {name: time_text(value, unit) for name, value in values.items() if (unit := Reading.of(plan).unit(name))}
    assert shown == {"longest": "2:49:00", "total": "0:00:00.5"}
    assert time_text(1e300, 1) == f"{1e300:,} s"
    row = {field.name: None for field in plan.result_schema} | {"longest": 10_140.0}
    console = Console(width=200, record=True, file=StringIO())
    console.print(table_of(plan, "watched", [row]))
    assert "\n2:49:00 " in console.export_text()
