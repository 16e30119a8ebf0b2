"""Queries of one template run as one: each has the rows, or the error, that it has alone."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.algebra import COLUMNS, exact, rows_of
from tests.random.profile import examples
from tests.support.intervals import plain, table_of
from trendlake.cep_core import AnyPlan, PatternWarning, compile_query, run_plan, run_plans
from trendlake.cep_core.algebra import runtime
from trendlake.cep_core.algebra.run import members
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.sharing.explain import shared_passes
from trendlake.cep_core.sharing.run_plans import template_of

pytestmark = pytest.mark.random

TEMPLATES = (
    "FROM FILTER{{s = {s} AND x > {x}}}(A)",
    "FROM FILTER{{s = {s} AND x < {w}}}(FILTER{{s = {s} AND y >= {y}}}(FILTER{{x <= {x}}}(A) NEXT A) NEXT A)",
    "FROM FILTER{{x < {x}}}(FILTER{{s = {s}}}(A) NEXT{{DUR <= 3 seconds AND $2.s = {s} AND $2.x = {w}}} EVENTS)",
    "FROM FILTER{{y < {y}}}(FILTER{{s = {s}}}(A) FOLD{{$2.s = {s} AND DUR < 5 seconds, $2.x > $.x, }} A)",
    "FROM FILTER{{n >= {w}}}(FILTER{{s >= {s} AND y BETWEEN {y} AND 2}}(A) FOLD{{, , }} A)",
    "FROM FILTER{{total > {x}}}((SELECT *, n AS total FROM FILTER{{s = {s}}}(A)) FOLD{{$2.n = {w}, , $.total + $2.n "
    "AS total}} A)",
    "SELECT s, x FROM FILTER{{x + n > 0 AND s = {s}}}(A NEXT{{$1.n = $2.n}} (SELECT s, n FROM B)) PUBLISH q "
    "SELECT s FROM q NEXT{{x < {w}}} (SELECT x AS z FROM A)",
    "SELECT x * 2 AS d FROM FILTER{{b = TRUE AND x != {x} AND y > {y} AND {s} < s}}(EVENTS)",
    "FROM FILTER{{k = {s} AND x = {x}}}(A NEXT B)",
    "FROM FILTER{{x * n > 0 AND x > {x} AND y <= {y}}}(A)",
    "SELECT COUNT(*) AS c FROM FILTER{{s = {s}}}(A)",
    "FROM A NEXT FILTER{{x = {x}}}(B)",
)
"""The last two have a stream of each query's own where there is no template."""
VALUES = {
    "s": ("'a'", "'b'", "''", "'zz'"),
    "x": ("0", "1", "2", "-1"),
    "w": ("1", "2", "3"),
    "y": ("0.5", "1", "-1.5"),
}


def outcome(answer: Any) -> Any:
    """Rows in one order, or an error as text."""
    return f"{type(answer).__name__}: {answer}" if isinstance(answer, TrendlakeError) else exact(plain(answer))


def alone(plan: AnyPlan, table: pa.Table, windows: range | None) -> Any:
    try:
        return outcome(run_plan(plan, table, windows))
    except TrendlakeError as error:
        return outcome(error)


@pytest.mark.long
@pytest.mark.more_in_chaos
@examples(60)
@given(st.data())
def test_each_has_its_own_rows_or_error(data: st.DataObject) -> None:
    draw = data.draw
    wide = draw(st.booleans())
    table = table_of(draw(rows_of(14, wide=wide, big=draw(st.integers(0, 3)) == 0)), COLUMNS)
    other: dict[str, Any] = {"kind": "algebra", "within": draw(st.sampled_from(("4 seconds", "20 seconds")))}
    if wide:
        other["interval_start"] = "start"
    if draw(st.booleans()):
        other["partition_by"] = ["k"]
    if draw(st.integers(0, 3)) == 0:
        other["limit_per_partition"] = draw(st.integers(1, 4))
    templates = draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=3, unique=True))
    plans: list[AnyPlan] = []
    for _ in range(draw(st.integers(2, 9))):
        values = {name: draw(st.sampled_from(choices)) for name, choices in VALUES.items()}
        query = {**other, "pattern": draw(st.sampled_from(templates)).format(**values)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            plans.append(compile_query(query, schema_of(table)))
    windows = draw(st.sampled_from((None, range(1), range(3))))
    expected = [alone(plan, table, windows) for plan in plans]
    answers = {number: outcome(answer) for number, answer in run_plans(plans, table, [windows] * len(plans))}
    assert [answers[number] for number in range(len(plans))] == expected


def test_what_a_template_is() -> None:
    """Constants that attributes are compared with; any other constant, and any other text, is another template."""
    table = table_of([], COLUMNS)

    def template(pattern: str, **keys: Any) -> Any:
        query = {"kind": "algebra", "within": "9 seconds", "pattern": pattern, **keys}
        return template_of(compile_query(query, schema_of(table)))

    one = template("FROM FILTER{s = 'a' AND x < -1}(A) NEXT{$2.s = 'a' AND DUR <= 1 second} A")
    assert one[1] == ("a", -1, "a")
    assert template("FROM FILTER{s = 'b' AND x < 7}(A) NEXT{$2.s = 'c' AND DUR <= 1 second} A")[0] == one[0]
    assert template("FROM FILTER{s = 'b' AND x <= 7}(A) NEXT{$2.s = 'c' AND DUR <= 1 second} A")[0] != one[0]
    assert template("FROM FILTER{s = 'b' AND x < 7}(A) NEXT{$2.s = 'c' AND DUR <= 2 seconds} A")[0] != one[0]
    within = template("FROM FILTER{s = 'b' AND x < 7}(A) NEXT{$2.s = 'c' AND DUR <= 1 second} A", within="8 seconds")
    assert within[0] != one[0]
    assert template("FROM A NEXT A") is None
    assert template("SELECT COUNT(*) AS c FROM FILTER{s = 'a'}(A)") is None


def test_explain_knows_templates() -> None:
    table = table_of([], COLUMNS)
    texts = ("FROM FILTER{x < 1}(A)", "FROM FILTER{x < 2}(A)", "FROM A NEXT A", "FROM FILTER{x > 1}(A)")
    queries = [{"kind": "algebra", "within": "9 seconds", "pattern": text} for text in texts]
    passes = shared_passes([compile_query(query, schema_of(table)) for query in queries])
    assert {one.plans: one.way for one in passes} == {(0, 1): "template", (2,): "all", (3,): "own"}


def test_queries_that_are_too_many_together_run_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {
            "id": f"e{at}",
            "type": "A",
            "time": at,
            "x": at % 3,
            "n": 0,
            "y": 0.0,
            "s": "a",
            "b": True,
            "k": "u",
            "start": None,
        }
        for at in range(20)
    ]
    table = table_of(rows, COLUMNS)
    queries = [
        {"kind": "algebra", "within": "9 seconds", "pattern": f"FROM FILTER{{x < {c}}}(A) NEXT A"} for c in range(1, 9)
    ]
    plans = [compile_query(query, schema_of(table)) for query in queries]
    expected = [outcome(run_plan(plan, table)) for plan in plans]
    runs: list[int] = []
    whole = members.run_members

    def counted(plan: Any, constants: Any, columns: Any, windows: Any) -> Any:
        runs.append(len(constants))
        return whole(plan, constants, columns, windows)

    monkeypatch.setattr(runtime, "run_template", counted)
    for most in (members.MOST_PAIRS, 60):
        runs.clear()
        monkeypatch.setattr(members, "MOST_PAIRS", most)
        answers = {number: outcome(answer) for number, answer in run_plans(plans, table)}
        assert [answers[number] for number in range(len(plans))] == expected
        assert runs[0] == len(plans)
        assert (len(runs) > 1) == (most == 60)


def test_an_overflow_is_the_error_of_the_queries_that_meet_it() -> None:
    """What can leave 64 bits is asked of events only of which the query's own comparisons are true."""
    row = {"type": "A", "y": 0.0, "s": "a", "b": True, "k": "u", "start": None}
    rows = [{**row, "id": f"e{at}", "time": at, "x": x, "n": 4} for at, x in enumerate((1, 2**62, 3))]
    table = table_of(rows, COLUMNS)
    pattern = "FROM FILTER{{x * n > 0 AND x < {c}}}(A)"
    queries = [{"kind": "algebra", "within": "9 seconds", "pattern": pattern.format(c=c)} for c in (2, 9, 2**62 + 1, 4)]
    plans = [compile_query(query, schema_of(table)) for query in queries]
    answers = dict(run_plans(plans, table))
    assert [answers[number].num_rows for number in (0, 1, 3)] == [1, 2, 2]
    assert "overflows in FILTER" in str(answers[2])
    assert outcome(answers[2]) == alone(plans[2], table, None)
