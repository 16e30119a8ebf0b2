"""Random patterns over three tables have the rows that they have over the one table that a loop makes of them."""

from __future__ import annotations

import warnings
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from tests.random import sources
from tests.random.agreement import TALLIES
from tests.random.profile import examples
from tests.support.several_tables import Case, load, shown
from trendlake.cep_core import EventSchema, compile_query, evaluate, run_plan, run_plans
from trendlake.cep_core.errors import BadEventsError

pytestmark = pytest.mark.random

COUNTS = {"trends": 240, "matches": 240, "automaton": 180, "algebra": 180, "match_recognize": 180}


@pytest.mark.more_in_chaos
@pytest.mark.parametrize("kind", sources.KINDS)
def test_rows_are_those_of_the_union(kind: str) -> None:
    """The same rows, ids and errors; equal times, colliding ids and unlike types among them."""
    tally = TALLIES.setdefault(f"sources, {kind}", sources.SourcesTally())

    @examples(COUNTS[kind])
    @given(sources.cases(kind))
    def agree(case: Any) -> None:
        assert sources.disagreement(case, tally) == []

    agree()
    assert tally.counts["with rows"] > 0.05 * tally.counts[f"of kind {kind}"]


def test_a_question_that_names_no_type() -> None:
    """Of no rows, too, it is one that the engine takes: `sources: {}` is refused, whatever is asked."""
    query = {"kind": "trends", "pattern": "ANY e", "return": {"n": "COUNT(*)"}, "within": "1 day"}
    types = dict.fromkeys(sources.types_in(query, []), "orders")
    tables = tuple(
        sources.Table(name, typed=True, seq=False, texts=False, names={}, doubles=frozenset(), absent=frozenset())
        for name in sources.TABLES
    )
    case = sources.Case(query, tables, types, [], {}, ties=None, watermark=None, numbered=False)
    expected, actual = sources.answers(case)
    assert expected == actual
    assert not isinstance(actual, str)


GOOD = [case for case in load() if not case.error and len(case.rows) > 1]


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.PatternWarning")
@pytest.mark.parametrize("case", GOOD[::3], ids=lambda case: case.name)
def test_the_order_of_keys_and_rows_decides_nothing(case: Case) -> None:
    """Neither that of `sources`, nor of the tables, nor of their rows: rows and hash are the same."""
    plan = compile_query(case.query, case.schemas())
    wanted = shown(case, run_plan(plan, case.tables))
    for keys in permutations(case.query["sources"]):
        query = {**case.query, "sources": {key: case.query["sources"][key] for key in keys}}
        tables = {
            name: table.take(pa.array(range(len(table))[::-1], pa.int64()))
            for name, table in reversed(case.tables.items())
        }
        other = compile_query(query, dict(reversed(case.schemas().items())))
        assert other.hash == plan.hash
        assert shown(case, run_plan(other, tables)) == wanted


def test_plans_run_together_have_their_own_rows() -> None:
    """Plans of the same tables share their union, others have their own; one that reads one table is refused."""
    alike = [
        case
        for case in GOOD
        if set(case.rows) == {"orders", "payments"} and not (case.roles or case.types or case.sequence)
    ]
    tables = max(alike, key=lambda case: sum(map(len, case.rows.values()))).tables
    schemas = next(case for case in alike if case.tables == tables).schemas()
    common: dict[str, Any] = {"sources": {"Order": "orders", "Payment": "payments"}, "within": "1 day"}
    queries: list[dict[str, Any]] = [
        {"kind": "trends", "pattern": "SEQ(Order o, Payment p)", "return": {"n": "COUNT(*)"}},
        {"kind": "matches", "pattern": "SEQ(Order o, Payment p)", "select": "skip_till_any_match"},
        {"kind": "matches", "pattern": "SEQ(Payment p, Order o)", "ties": ["payments", "orders"]},
        {"kind": "trends", "pattern": "ANY e", "return": {"n": "COUNT(*)"}, "group_by": ["event_source"]},
    ]
    plans = [compile_query(common | query, schemas) for query in queries]
    together = dict(run_plans(plans, tables))
    for number, query in enumerate(queries):
        alone = evaluate(common | query, tables)
        answer = together[number]
        assert sorted(map(str, answer.to_pylist())) == sorted(map(str, alone.to_pylist()))  # type: ignore[union-attr]
    assert any(len(answer) for answer in together.values())  # type: ignore[arg-type]


def test_a_wrong_value_fails_only_plans_that_read_it() -> None:
    """A whole number that no double holds, where doubles of another table have its name."""
    times = pa.array([0], pa.timestamp("us", "UTC"))
    tables = {
        "orders": pa.table({"event_id": [1], "event_time": times, "x": [2**53 + 1]}),
        "payments": pa.table({"event_id": [1], "event_time": times, "x": [0.5]}),
    }
    columns = {"event_id": "bigint", "event_time": "timestamp"}
    kinds = {"orders": "bigint", "payments": "double"}
    schemas = {name: EventSchema({**columns, "x": kinds[name]}, event_type="") for name in tables}
    common = {"kind": "matches", "sources": {"Order": "orders", "Payment": "payments"}, "within": "1 day"}
    good = compile_query({**common, "pattern": "SEQ(Order o, Payment p)", "return": {"x": "o.x"}}, schemas)
    bad = compile_query({**common, "pattern": "ANY e", "return": {"x": "e.x"}}, schemas)
    answers = dict(run_plans([bad, good], tables))
    assert isinstance(answers[0], BadEventsError)
    assert isinstance(answers[1], pa.Table)
    assert answers[1]["x"].to_pylist() == [2**53 + 1]


def test_texts_that_look_like_numbers() -> None:
    """The advice names a column as the pattern does, and looks at that of its type."""
    tables = {
        "orders": pa.table({"event_id": [1], "event_time": pa.array([0], pa.timestamp("us", "UTC")), "size": ["10"]}),
        "payments": pa.table({"event_id": [1], "event_time": pa.array([1], pa.timestamp("us", "UTC")), "size": [9]}),
    }
    query = {
        "kind": "matches",
        "sources": {"Order": "orders", "Payment": "payments"},
        "pattern": "SEQ(Order o, Payment p)",
        "where": ["o.size < '9'"],
        "within": "1 day",
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(query, tables)
    assert ["compares size letter by letter" in str(one.message) for one in caught] == [True]
