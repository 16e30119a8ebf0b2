"""What is legal in a pattern of any kind and rarely meant: comparisons with NULL, and the order of texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trendlake.cep_core import EventSchema, compile_query, explain

SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "t": "string", "s": "string", "n": "int"}
)


def trends(condition: str, **keys: Any) -> dict[str, Any]:
    measures = {"return": keys.pop("measures", {"n": "COUNT(*)"})}
    return {"kind": "trends", "pattern": "R x+", "where": [condition], "within": "1 day", **measures, **keys}


def matches(condition: str, measure: str = "COUNT(a)") -> dict[str, Any]:
    query = {"kind": "matches", "pattern": "SEQ(R a+, R b)", "where": [condition], "within": "1 day"}
    return query | {"return": {"m": measure}}


def automaton(condition: str) -> dict[str, Any]:
    arcs = [{"from": "s", "to": "m", "set": {"top": "e.t"}}, {"from": "m", "to": "f", "when": condition}]
    register = {"top": {"type": "string", "init": None}, "copy": {"type": "string", "init": None}}
    return {"kind": "automaton", "start": "s", "final": ["f"], "register": register, "arcs": arcs, "within": "1 day"}


def algebra(text: str) -> dict[str, Any]:
    return {"kind": "algebra", "pattern": text, "within": "1 day"}


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (trends("x.n = NULL"), "write x.n IS NULL"),
        (trends("x.n <> NULL"), "write x.n IS NOT NULL"),
        (trends("NOT (NULL = x.t)"), "write x.t IS NULL"),
        (trends("x.n < NEXT(x).n OR NEXT(x).n != NULL"), "write NEXT(x).n IS NOT NULL"),
        (trends("x.n > NULL"), "x.n IS NULL is true"),
        (trends("x.n IN (1, NULL)"), "write x.n IS NULL OR ..."),
        (trends("x.n = $p", for_each={"p": [1, None]}), "write x.n IS NULL"),
        (matches("b.n = NULL"), "write b.n IS NULL"),
        (matches("b.n > 0", "b.n = NULL"), "write b.n IS NULL"),
        (automaton("e.n = NULL"), "write e.n IS NULL"),
        (automaton("top <> NULL"), "write top IS NOT NULL"),
        (algebra("SELECT * FROM FILTER{n = NULL}(R)"), "write n IS NULL"),
        (algebra("SELECT * FROM R NEXT{$1.n <> NULL} (SELECT n AS b FROM R)"), "write $1.n IS NOT NULL"),
        (algebra("SELECT n = NULL AS no FROM R"), "write n IS NULL"),
    ],
    ids=lambda part: part if isinstance(part, str) else json.dumps(part)[:60],
)
def test_a_comparison_with_null_names_is_null(query: dict[str, Any], hint: str) -> None:
    """In every kind and place where an expression stands; `explain` says it, and the hint is one that parses."""
    plan = compile_query(query, SCHEMA)
    (advice,) = plan.advice
    assert hint in advice.hint
    assert not advice.columns
    assert hint in explain(plan)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (trends("x.t < NEXT(x).t"), [("t",)]),
        (trends("x.t >= '10'"), [("t",)]),
        (trends("LOWER(x.t) < x.s"), [("t", "s")]),
        (trends("x.n > 0", measures={"top": "MAX(x.t)"}), [("t",)]),
        (trends("GREATEST(x.t, x.s) = 'b'"), [("t", "s")]),
        (trends("x.t > $p", for_each={"p": ["1", "2"]}), [("t",)]),
        (matches("a[i].t > a[i-1].t"), [("t",)]),
        (matches("b.t > min(a[..i-1].s)"), [("s",), ("t", "s")]),
        (matches("b.n > 0", "MIN(a.t)"), [("t",)]),
        (automaton("e.s > '5'"), [("s",)]),
        (automaton("e.s > top"), [("s", "t")]),
        (algebra("SELECT * FROM FILTER{level < '9'}(SELECT t AS level FROM R)"), [("t",)]),
        (algebra("SELECT MAX(t) AS top FROM R"), [("t",)]),
        (
            algebra("SELECT * FROM (SELECT s, t AS top FROM R) FOLD{$.top < $2.s, , $2.s AS top} (SELECT s FROM R)"),
            [("s", "t")],
        ),
        (algebra("SELECT * FROM (SELECT t FROM R) NEXT{$1.t < $2.b} (SELECT s AS b FROM R)"), [("t", "s")]),
    ],
    ids=lambda part: json.dumps(part)[:60],
)
def test_the_order_of_texts_names_their_columns(query: dict[str, Any], columns: list[tuple[str, ...]]) -> None:
    """`<`, MIN, MAX, LEAST, NEXT: also where a register or a SELECT gives the texts another name."""
    assert [one.columns for one in compile_query(query, SCHEMA).advice] == columns


@pytest.mark.parametrize(
    "query",
    [
        trends("x.t = NEXT(x).t"),
        trends("x.n < NEXT(x).n"),
        trends("x.t IS NULL"),
        trends("COALESCE(x.t, 'a') IN ('a', 'b')"),
        trends("x.n = $p", for_each={"p": [1, 2]}),
        automaton("top IS NOT NULL"),
        algebra("SELECT * FROM FILTER{n < 5 AND t = 'x'}(R)"),
    ],
    ids=lambda part: json.dumps(part)[:60],
)
def test_what_is_meant_gets_no_advice(query: dict[str, Any]) -> None:
    assert compile_query(query, SCHEMA).advice == ()


def test_advice_is_no_part_of_a_plan() -> None:
    """Plans that differ in their places only are equal, and have one hash."""
    one, other = trends("x.t < NEXT(x).t"), trends("x.t  <  NEXT(x).t")
    plans = [compile_query(query, SCHEMA) for query in (one, other)]
    assert plans[0] == plans[1]
    assert plans[0].hash == plans[1].hash
    assert plans[0].advice[0].place != plans[1].advice[0].place


@pytest.mark.filterwarnings("ignore:statement:trendlake.cep_core.errors.PatternWarning")
def test_a_stream_that_many_paths_lead_to_is_looked_at_once() -> None:
    """Forty unions double the ways to the column each time; one look at each stream is enough."""
    doubled = "\n".join(f"FROM s{i} UNION s{i} PUBLISH s{i + 1}" for i in range(40))
    text = f"SELECT t AS level FROM R PUBLISH s0\n{doubled}\nFROM FILTER{{level < '9'}}(s40)"
    assert [one.columns for one in compile_query(algebra(text), SCHEMA).advice] == [("t",)]


@pytest.mark.filterwarnings("ignore:statement:trendlake.cep_core.errors.PatternWarning")
def test_a_long_chain_of_streams_is_followed() -> None:
    """As many statements as a text holds, without a limit of Python's stack."""
    chain = "\n".join(f"SELECT t FROM s{i} PUBLISH s{i + 1}" for i in range(270))
    text = f"SELECT t FROM R PUBLISH s0\n{chain}\nFROM FILTER{{t < '9'}}(s270)"
    assert [one.columns for one in compile_query(algebra(text), SCHEMA).advice] == [("t",)]
