"""The worked cases of events of several tables, and what holds of all of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.golden.several_tables import AUTOMATON, QUERIES, SCHEMAS, SOURCES
from tests.support.engines import TIME
from tests.support.several_tables import Case, expected, load, shown
from trendlake.cep_core import (
    AssumptionWarning,
    EventSchema,
    PatternErrors,
    PatternWarning,
    compile_query,
    evaluate,
    explain,
    run_plan,
)
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import Derived, schema_of
from trendlake.cep_core.events.union import united
from trendlake.cep_core.language.parse import parse_condition
from trendlake.cep_core.total_order import ordered_by_id

CASES = load()


@pytest.mark.parametrize("case", [case for case in CASES if not case.error], ids=lambda case: case.name)
def test_case(case: Case) -> None:
    assert shown(case, case.answer()) == expected(case)


@pytest.mark.parametrize("case", [case for case in CASES if case.error], ids=lambda case: case.name)
def test_mistake(case: Case) -> None:
    mistake, place = case.mistake()
    assert mistake.startswith(str(case.error))
    assert case.at is None or place == case.at


def hash_of(query: dict[str, Any], schemas: Mapping[str, EventSchema] = SCHEMAS) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        return compile_query({"sources": SOURCES, "within": "1 day", **query}, schemas).hash


def with_column(table: str, name: str, kind: str) -> dict[str, EventSchema]:
    return {**SCHEMAS, table: SCHEMAS[table].wider({name: kind})}


@pytest.mark.parametrize("name", QUERIES)
def test_what_nothing_reads_is_no_part_of_the_hash(name: str) -> None:
    """A column more, in a table that has it alone and in all; a name for one; `idle`; `ties` as tables come anyway."""
    query = {**QUERIES[name]}
    known = hash_of(query)
    if "SELECT *" not in str(query):
        assert hash_of(query, with_column("orders", "note", "string")) == known
    assert hash_of({**query, "sources": {**SOURCES, "Order": {"source": "orders", "idle": "1 day"}}}) == known
    if "ties" not in query:
        assert hash_of({**query, "ties": ["orders", "payments", "support"]}) == known
    other = {**SOURCES, "Payment": {"source": "payments", "columns": {"customer": "cust", "number": "lsn"}}}
    assert hash_of({**query, "sources": other}) == known


def test_what_is_read_is_a_part_of_the_hash() -> None:
    query = {**QUERIES["matches"]}
    other_type = {**SOURCES, "Ticket": {"source": "support", "type": "closed", "columns": {"amount": None}}}
    other_column = {**SOURCES, "Payment": {"source": "payments", "columns": {"customer": "payment_id"}}}
    known = [
        hash_of(query),
        hash_of({**query, "sources": other_type}),
        hash_of({**query, "sources": other_column}),
        hash_of({**query, "ties": ["payments", "orders", "support"]}),
    ]
    assert len(set(known)) == len(known)


def test_ties_without_an_order_are_a_warning() -> None:
    """And no part of the hash."""
    query = {"sources": SOURCES, "within": "1 day", **QUERIES["trends"], "ties": ["payments", "orders", "support"]}
    with pytest.warns(PatternWarning, match="nothing in this pattern asks which of two events of one time is first"):
        plan = compile_query(query, SCHEMAS)
    assert plan.hash == hash_of({**QUERIES["trends"]})
    assert len(plan.warnings) == 1


def test_explain_names_tables_and_columns() -> None:
    query = {"sources": SOURCES, "within": "1 day", **QUERIES["matches, ties"], "where": ["p.customer = o.customer"]}
    lines = explain(compile_query(query, SCHEMAS)).splitlines()
    at = lines.index("sources   Order: orders")
    assert lines[at + 1 : at + 4] == [
        "          Payment: payments, customer is cust",
        "          Ticket: support, kind = 'opened'",
        "ties      at one time payments, then support, then orders",
    ]
    assert not any("@" in line for line in lines[:at] if not line.startswith("reads"))


def test_a_mistake_has_its_place(tmp_path: Path) -> None:
    """Line, column and caret in the file."""
    file = tmp_path / "unpaid.yaml"
    file.write_text(
        "name: unpaid\nkind: matches\nsources:\n  Order: orders\n  Payment:\n    source: payments\n"
        "    columns: {customer: customr}\npattern: SEQ(Order o, Payment p)\nwithin: 1 day\n"
    )
    with pytest.raises(PatternErrors) as caught:
        compile_query(file, SCHEMAS)
    assert str(caught.value) == (
        f"{file}:7:25: [UNKNOWN_ATTRIBUTE] payments has no column 'customr'\n"
        "        columns: {customer: customr}\n"
        "                            ^^^^^^^\n"
        "    did you mean 'cust'?"
    )


def test_one_table_for_several_and_several_for_one() -> None:
    table = pa.table({"event_id": ["a"], "event_time": pa.array([0], TIME), "event_type": ["Order"]})
    one: dict[str, Any] = {"kind": "matches", "pattern": "Order o", "within": "1 day"}
    with pytest.raises(PatternErrors, match="the pattern reads several tables, and one is given"):
        evaluate({**one, "sources": {"Order": "orders"}}, table)
    with pytest.raises(PatternErrors, match="the pattern reads one table, and several are given"):
        evaluate(one, {"orders": table})
    plan = compile_query(one, EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string"}))
    with pytest.raises(BadEventsError, match="the pattern reads one table, and several are given"):
        run_plan(plan, {"orders": table})


def test_local_times_of_each_table() -> None:
    """Of 12:00 in New York and 17:30 UTC the first is earlier; both are of one day."""
    local = pa.array([datetime(2026, 1, 5, 12)], pa.timestamp("ns"))
    orders = pa.table({"event_id": [1], "event_time": local})
    payments = pa.table({"event_id": [1], "event_time": pa.array([datetime(2026, 1, 5, 17, 30, tzinfo=UTC)], TIME)})
    query = {
        "kind": "matches",
        "sources": {"Order": "orders", "Payment": "payments"},
        "pattern": "SEQ(Order o, Payment p)",
        "return": {"later": "minutes(p.event_time - o.event_time)"},
        "within": "1 day",
    }
    tables = {"orders": orders, "payments": payments}
    rows = evaluate(query, tables, time_zone="America/New_York").to_pylist()
    assert [row["later"] for row in rows] == [30.0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = evaluate(query, tables).to_pylist()
    assert [one.category for one in caught] == [AssumptionWarning]
    assert "event_time has times without a zone" in str(caught[0].message)
    assert [row["later"] for row in rows] == [330.0]


def test_columns_that_contracts_compute() -> None:
    """A table's own derived columns are computed of its own columns, before names are changed."""
    node: Any = parse_condition("x + y")
    schema = schema_of(ONE, event_time="at", roles=("event_time",))
    derived = EventSchema(dict(schema.columns), "id", "at", "").extended((Derived("sum", "bigint", node),))
    query = {
        "kind": "matches",
        "sources": {"A": {"source": "one", "columns": {"total": "sum", "y": "x", "x": "y"}}},
        "pattern": "A a",
        "where": ["a.total > 5"],
        "return": {"total": "a.total", "x": "a.x"},
        "within": "1 day",
    }
    rows = run_plan(compile_query(query, {"one": derived}), {"one": ONE}).to_pylist()
    assert [(row["a"], row["total"], row["x"]) for row in rows] == [(["one:8"], 30, 20)]


ONE = pa.table({"id": [7, 8], "at": pa.array([0, 1], TIME), "x": [1, 10], "y": [2, 20]})


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        (pa.array([-5, 12], pa.int8()), ["t:-5", "t:12"]),
        (pa.array(["é", ""], pa.large_string()), ["t:", "t:é"]),
        (pa.array(["b", "a"]).dictionary_encode(), ["t:a", "t:b"]),
        (pa.array([Decimal("1.50"), Decimal("20")], pa.decimal128(20, 2)), ["t:1.50", "t:20.00"]),
    ],
    ids=str,
)
def test_ids_as_text(ids: pa.Array, written: list[str]) -> None:
    table = pa.table({"event_id": ids, "event_time": pa.array([0, 1], TIME)})
    query = {"kind": "matches", "sources": {"A": "t"}, "pattern": "A a", "within": "1 day"}
    assert sorted(row["a"][0] for row in evaluate(query, {"t": table}).to_pylist()) == sorted(written)


def test_neighbours_that_only_ids_order() -> None:
    """Two orders of one time; a payment of that time is ordered by its table."""
    tables = {
        "orders": pa.table({"event_id": [1, 2], "event_time": pa.array([5, 5], TIME)}),
        "payments": pa.table({"event_id": [1], "event_time": pa.array([5], TIME)}),
    }
    schemas = {name: EventSchema({"event_id": "bigint", "event_time": "timestamp"}, event_type="") for name in tables}
    query = {**AUTOMATON, "sources": {"Order": "orders", "Payment": "payments"}, "within": "1 day", "partition_by": []}
    query["arcs"] = [{"from": "s", "to": "f"}]
    plan = compile_query(query, schemas)
    assert plan.schema.tables is not None
    assert ordered_by_id(plan, united(tables, plan.schema.tables, plan.columns)) == 1


def test_explain_has_the_names_of_the_pattern() -> None:
    """Each once, without the names by which the engine tells columns of several tables apart."""
    columns = {"event_id": "string", "event_time": "timestamp", "x": "int", "place": "int"}
    query = {
        "kind": "automaton",
        "sources": {"A": "left", "B": "right"},
        "start": "s",
        "final": ["f"],
        "arcs": [{"from": "s", "to": "f", "when": "e.x > 1"}],
        "within": "1 day",
    }
    schemas = {name: EventSchema(columns, event_type="", sequence="place") for name in ("left", "right")}
    lines = explain(compile_query(query, schemas)).splitlines()
    assert [line for line in lines if line.startswith("reads ")] == [
        "reads     event_time, event_source, event_id, sequence, x"
    ]
    assert "@" not in "\n".join(lines)
