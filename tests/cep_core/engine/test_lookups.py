"""`lookup`: columns of reference tables as attributes, in every kind."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines import to_table
from tests.support.lookup_cases import Case, load
from trendlake.cep_core import (
    AssumptionWarning,
    PatternErrors,
    PatternWarning,
    compile_query,
    evaluate,
    explain,
    run_plan,
    run_plans,
)
from trendlake.cep_core.errors import BadEventsError, LookupRepeatedError, TrendlakeError
from trendlake.cep_core.events import lookup as run
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.lookup import look_up
from trendlake.cep_core.events.schema import Derived, schema_of
from trendlake.cep_core.lookups import tables_of

CUSTOMER = {"table": "customers", "key": "c", "columns": ["segment"]}
QUERY = {"kind": "trends", "pattern": "S+", "return": {"n": "COUNT(*)"}, "within": "1 minute"}
LOOKING = {**QUERY, "lookup": {"customer": CUSTOMER}, "group_by": ["segment"]}
EVENTS = to_table([{"id": f"e{k}", "type": "S", "time": k, "c": k % 3} for k in range(6)])
CUSTOMERS = pa.table({"c": [0, 1], "segment": ["gold", "blue"], "plant": ["north", "south"]})
TABLES = {"customers": CUSTOMERS}


@pytest.mark.parametrize("case", load(), ids=lambda case: case.name)
@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
def test_case(case: Case, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of events and rows, with compiled code and without."""
    monkeypatch.setattr(run, "FEW", 10_000 if few else -1)
    numbers = random.Random(1)
    events, tables = shuffled(case.events, numbers), {name: shuffled(t, numbers) for name, t in case.reference.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case.error is not None:
            with pytest.raises(TrendlakeError) as failure:
                evaluate(case.query, events, reference=tables)
            assert_error(case, str(failure.value))
            return
        rows = evaluate(case.query, events, reference=tables).to_pylist()
    answer = [{name: shown(row[name]) for name in case.expect[0]} for row in rows] if case.expect else rows
    assert sorted(map(str, answer)) == sorted(map(str, case.expect))
    if case.report is not None:
        assert report_of(case.query, events, tables) == case.report


def shuffled(table: pa.Table, numbers: random.Random) -> pa.Table:
    return table.take(pa.array(numbers.sample(range(table.num_rows), table.num_rows), pa.int64()))


def shown(cell: Any) -> Any:
    return int(cell) if isinstance(cell, Decimal) else cell


def assert_error(case: Case, text: str) -> None:
    assert str(case.error) in text
    assert (case.hint or "") in text
    assert f"query.{case.place}:" in text if case.place else True


def report_of(query: Mapping[str, Any], events: pa.Table, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    (lookup,) = compile_query(query, schema_of(events), tables_of(tables)).schema.lookups
    _, reference, matching = look_up(events, lookup, tables)
    report = reference.report(Columns(events), matching)
    examples = [list(one) for one in report.examples]
    return {"missing": report.missing, "examples": examples, "unused": report.unused}


def test_plans_together() -> None:
    """One name for columns of several tables, of the events, and of a derived one: each plan has its own."""
    other = pa.table({"c": [0, 1, 2], "segment": ["x", "x", "x"]})
    events = EVENTS.append_column("own", pa.array(list("ababab")))
    tables = {"customers": CUSTOMERS, "others": other}
    lookups: list[dict[str, Any]] = [
        {"lookup": {"customer": CUSTOMER}},
        {"lookup": {"customer": {**CUSTOMER, "table": "others"}}},
        {"lookup": {"customer": {**CUSTOMER, "columns": [{"segment": "plant"}]}}},
        {"derive": {"segment": "own"}},
        {"lookup": {"renamed": CUSTOMER}},
        {"lookup": {"customer": {**CUSTOMER, "of": ["S"]}}},
    ]
    queries = [{**QUERY, **more, "group_by": ["segment"]} for more in lookups] + [{**QUERY, "group_by": ["own"]}]
    plans = [compile_query(query, schema_of(events), tables_of(tables)) for query in queries]
    answers = dict(run_plans(plans, events, reference=tables))
    alone = [run_plan(plan, events, reference=tables) for plan in plans]
    assert [answers[k] == one for k, one in enumerate(alone)] == [True] * len(plans)
    segments = [sorted(map(str, one.column(0).to_pylist())) for one in alone]
    three = ["None", "blue", "gold"]
    assert segments == [three, ["x"], ["None", "north", "south"], ["a", "b"], three, three, ["a", "b"]]


def test_a_failing_table_stops_no_other_plan() -> None:
    """A repeated key is an error of the plans that read the table."""
    repeated = pa.table({"c": [0, 0], "segment": ["gold", "blue"]})
    tables = {"customers": repeated}
    plans = [compile_query(query, schema_of(EVENTS), tables_of(tables)) for query in (QUERY, LOOKING)]
    answers = dict(run_plans(plans, EVENTS, reference=tables))
    assert isinstance(answers[1], LookupRepeatedError)
    assert answers[0].num_rows == 1


def test_columns_of_the_source() -> None:
    """A source is asked for keys and times, and work is not cut by columns that it does not have."""
    events = EVENTS.append_column("day", pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 6, pa.timestamp("us", "UTC")))
    table = CUSTOMERS.append_column("since", pa.array([None, None], pa.timestamp("us", "UTC")))
    customer = {**CUSTOMER, "valid_from": "since", "as_of": "day"}
    plan = compile_query(
        {**LOOKING, "lookup": {"customer": customer}}, schema_of(events), tables_of({"customers": table})
    )
    assert set(plan.columns) == {"event_time", "event_type", "c", "day"}
    assert plan.unit_key == ()
    assert plan.shard_key == ("segment",)


def test_a_lookup_that_nothing_reads() -> None:
    """It is warned of; its table is not needed, and it is no part of the hash."""
    unread = {**QUERY, "lookup": {"customer": CUSTOMER}}
    with pytest.warns(PatternWarning, match="lookup customer: nothing reads a column of it, so table customers is not"):
        plan = compile_query(unread, schema_of(EVENTS), tables_of(TABLES))
    assert plan.schema.lookups == ()
    assert len(plan.warnings) == 1
    assert plan.hash == compile_query(QUERY, schema_of(EVENTS)).hash
    assert run_plan(plan, EVENTS).num_rows == 1


def test_the_hash() -> None:
    """It changes with what rows depend on, and not with names for messages, columns that are not read or the order of
    keys."""

    def hash_of(**more: Any) -> str:
        query = {**LOOKING, "lookup": {more.pop("name", "customer"): {**CUSTOMER, **more}}}
        table = CUSTOMERS.append_column("since", pa.array([None, None], pa.date32()))
        return compile_query(query, schema_of(EVENTS), tables_of({"customers": table, "others": table})).hash

    usual = hash_of()
    assert hash_of(name="other") == usual
    assert hash_of(columns=["plant", "segment"]) == usual
    assert hash_of(missing={"most": 0.5}, most_windows=7) == usual
    others = [hash_of(table="others"), hash_of(columns=[{"segment": "plant"}]), hash_of(valid_from="since")]
    others += [hash_of(of=["S"]), hash_of(valid_from="since", valid_to="since")]
    assert len({usual, *others}) == 1 + len(others)


def test_contracts_derive_before_lookups() -> None:
    """A column that the contract derives may be the key, though nothing else reads it."""
    from trendlake.cep_core.language.parse import parse_condition

    expression = parse_condition("c % 2")
    schema = schema_of(EVENTS).extended((Derived("half", "bigint", expression),))  # type: ignore[arg-type]
    lookup = {"customer": {**CUSTOMER, "key": {"half": "c"}}}
    plan = compile_query({**LOOKING, "lookup": lookup}, schema, tables_of(TABLES))
    rows = run_plan(plan, EVENTS, reference=TABLES).to_pylist()
    assert [one.names for one in plan.schema.derived] == [("half",), ("segment",)]
    assert sorted((row["segment"], int(row["n"])) for row in rows) == [("blue", 3), ("gold", 15)]


def test_explain() -> None:
    table = CUSTOMERS.append_column("since", pa.array([None, None], pa.date32()))
    customer = {**CUSTOMER, "columns": [{"level": "segment"}], "valid_from": "since"}
    query = {**LOOKING, "time_zone": "Europe/Berlin", "lookup": {"customer": customer}, "group_by": ["level"]}
    plan = compile_query(query, schema_of(EVENTS), tables_of({"customers": table}))
    line = "looks up  customer: level = segment of customers by c, the row with since <= event_time < the next since "
    assert line + "in Europe/Berlin" in explain(plan).split("\n")


def test_a_plan_of_unknown_tables() -> None:
    """It compiles, as far as the pattern alone says, and does not run."""
    plan = compile_query(LOOKING, schema_of(EVENTS))
    assert "looks up  customer: segment of customers by c" in explain(plan)
    with pytest.raises(BadEventsError, match="lookup customer reads table customers, which is not given"):
        run_plan(plan, EVENTS)
    with pytest.raises(PatternErrors, match="there is no reference table 'customers'"):
        evaluate(LOOKING, EVENTS)


def test_a_table_without_a_column_of_the_plan() -> None:
    plan = compile_query(LOOKING, schema_of(EVENTS), tables_of(TABLES))
    with pytest.raises(BadEventsError, match="table customers has no column 'segment'"):
        run_plan(plan, EVENTS, reference={"customers": CUSTOMERS.drop_columns(["segment"])})
    texts = pa.table({"c": ["0"], "segment": ["x"]})
    with pytest.raises(BadEventsError, match="lookup customer: key 'c' is a int64 in the events and a string in the"):
        run_plan(plan, EVENTS, reference={"customers": texts})


def test_times_without_a_zone() -> None:
    """They are read as those of events: in `time_zone`, else as UTC, which is said."""
    since = pa.array([datetime(1970, 1, 1, 1), None], pa.timestamp("us"))
    tables = {"customers": CUSTOMERS.append_column("since", since)}
    query = {**LOOKING, "lookup": {"customer": {**CUSTOMER, "valid_from": "since"}}}
    with pytest.warns(AssumptionWarning, match="since of customers has times without a zone"):
        rows = evaluate(query, EVENTS, reference=tables).to_pylist()
    assert "gold" not in {row["segment"] for row in rows}
    rows = evaluate(query, EVENTS, reference=tables, time_zone="Europe/Berlin").to_pylist()
    assert "gold" in {row["segment"] for row in rows}


def test_a_date_that_no_calendar_has() -> None:
    table = CUSTOMERS.append_column("since", pa.array([3_000_000, 0], pa.int32()).cast(pa.date32()))
    query = {**LOOKING, "lookup": {"customer": {**CUSTOMER, "valid_from": "since"}}}
    with pytest.raises(BadEventsError, match="column 'since', row 1: a date outside of the years 1 to 9999"):
        evaluate(query, EVENTS, reference={"customers": table})
    last = CUSTOMERS.append_column("since", pa.array([2_932_896, None], pa.int32()).cast(pa.date32()))
    assert evaluate(query, EVENTS, reference={"customers": last}).num_rows == 2


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_types_of_texts(kind: pa.DataType) -> None:
    """As keys and as values."""

    def cells(values: list[str]) -> pa.Array:
        plain = pa.array(values)
        return plain.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else plain.cast(kind)

    segment = cells(["gold", "blue"])
    tables = {"customers": CUSTOMERS.set_column(1, "segment", segment), "towns": pa.table({"s": segment, "t": [1, 2]})}
    rows = evaluate(LOOKING, EVENTS, reference=tables).to_pylist()
    assert {row["segment"] for row in rows} == {"gold", "blue", None}
    events = EVENTS.append_column("s", cells(["gold", "blue", "gold", "blue", "gold", "gold"]))
    query = {**QUERY, "lookup": {"town": {"table": "towns", "key": "s", "columns": ["t"]}}, "group_by": ["t"]}
    assert {row["t"]: int(row["n"]) for row in evaluate(query, events, reference=tables).to_pylist()} == {1: 15, 2: 3}


SINCE = CUSTOMERS.append_column("since", pa.array([None, None], pa.date32()))
VALID = {"customer": {**CUSTOMER, "valid_from": "since"}}
ROW_PATTERN = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY segment ORDER BY event_time MEASURES COUNT(A.c) AS n "
    "PATTERN (A+) DEFINE A AS A.c > 0)"
)
ARCS = {"start": "p", "final": ["q"], "arcs": [{"from": "p", "to": "q", "when": "e.segment = 'gold'"}]}
STORED = {
    "trends": LOOKING,
    "matches": {"kind": "matches", "pattern": "SEQ(S s)", "where": ["s.segment = 'gold'"], "within": "1 day"},
    "automaton": {"kind": "automaton", **ARCS, "within": "1 day"},
    "algebra": {"kind": "algebra", "pattern": "SELECT segment FROM S", "within": "1 minute"},
    "match_recognize": {"kind": "match_recognize", "pattern": ROW_PATTERN},
}
HASHES = {
    "trends": "f478fe1d8477c537",
    "matches": "419f0bd04852602f",
    "automaton": "a7c2c76fbfabc81e",
    "algebra": "efdfb7b22d6c6f7e",
    "match_recognize": "d865b5dbe37c4e0c",
}


@pytest.mark.parametrize("kind", STORED)
def test_stored_hashes(kind: str) -> None:
    """Hashes that tables of results hold: they change with nothing but the meaning of a lookup."""
    plan = compile_query({**STORED[kind], "lookup": VALID}, schema_of(EVENTS), tables_of({"customers": SINCE}))
    assert plan.hash == HASHES[kind]
