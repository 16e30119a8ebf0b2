"""What `return` and `output` refuse, with the place and a hint that is true; and what `explain` says of a pass."""

from __future__ import annotations

from typing import Any

import pytest

from trendlake.cep_core import EventSchema, PatternErrors, compile_query, explain

SCHEMA = EventSchema(
    {"event_time": "timestamp", "event_type": "string", "event_id": "string", "x": "int", "g": "string", "b": "boolean"}
)


def query(measure: str, **more: Any) -> dict[str, Any]:
    return {"pattern": "SEQ(S, NOT T t, S+)", "return": {"m": measure}, "within": "1 day", **more}


@pytest.mark.parametrize(
    ("measure", "code", "width", "words"),
    [
        (
            "MEDIAN(S.x)",
            "NOT_SUPPORTED",
            11,
            "kind trends has COUNT, MIN, MAX, SUM, AVG, FIRST, LAST, MIN_BY and MAX_BY",
        ),
        ("ARG_MAX(S.x)", "NOT_SUPPORTED", 12, "MAX_BY(V.a, V.b) is V.a where V.b is largest"),
        ("COUNT(DISTINCT S.x)", "NOT_SUPPORTED", 19, "COUNT(DISTINCT ...) is not supported"),
        ("COUNT(DISTINKT S.x)", "SYNTAX", 8, "such as COUNT(DISTINCT V.attribute)"),
        ("LENGTH(S)", "BAD_CONDITION", 9, "MAX(LENGTH(S))"),
        ("DURATION(S)", "BAD_CONDITION", 11, "MAX(DURATION(*))"),
        ("MAX(DURATION(S))", "BAD_CONDITION", 16, "DURATION takes *"),
        ("MAX(LENGTHS(*))", "BAD_CONDITION", 15, "did you mean 'length'?"),
        ("COUNT(LENGTH(*))", "BAD_CONDITION", 16, "not among the measures"),
        ("MAX(LENGTH(t))", "BAD_CONDITION", 14, "'t' is under NOT"),
        ("LONGEST(S)", "BAD_CONDITION", 10, "LONGEST takes *"),
        ("FIRST(S)", "BAD_CONDITION", 8, "such as FIRST(S.price)"),
        ("MAX_BY(S.x)", "BAD_CONDITION", 11, "two attributes of a variable"),
        ("MAX_BY(S.x, t.x)", "BAD_CONDITION", 16, "not of S and t"),
        ("MAX_BY(S.x, S.b)", "TYPE_MISMATCH", 16, "MAX_BY does not order a boolean"),
        ("SUM(S.g)", "TYPE_MISMATCH", 8, "SUM does not take a string"),
        ("COUNT(*) FILTER (WHERE LENGTH(*) >= 100)", "BAD_VALUE", 16, "64 at most"),
        ("COUNT(*) FILTER (WHERE LENGTH(*) < 0)", "BAD_VALUE", 13, "a number from 1 to 64"),
        ("COUNT(*) FILTER (WHERE LENGTH(*) != 3)", "NOT_SUPPORTED", 14, "then = < <= > or >="),
        ("COUNT(*) FILTER (WHERE LENGTH(*) > 1.5)", "NOT_SUPPORTED", 15, "no whole number"),
        ("COUNT(*) FILTER (WHERE LENGTH(t) > 1)", "BAD_CONDITION", 1, "'t' is under NOT"),
        ("COUNT(*) FILTER (WHERE DURATION(*) > 1)", "NOT_SUPPORTED", 15, "a FILTER by duration"),
        ("COUNT(*) FILTER (WHERE S.x > 1)", "BAD_CONDITION", 7, "is filtered by the length of trends"),
        ("COUNT(S) FILTER (WHERE LENGTH(*) > 1)", "NOT_SUPPORTED", 13, "only COUNT(*) is filtered by the length"),
        ("COUNT(S) FILTER (WHERE t.x > 1)", "BAD_CONDITION", 7, "is on S, not on t"),
        ("COUNT(S) FILTER (WHERE NEXT(S).x > 1)", "BAD_CONDITION", 13, "on one event of S"),
        ("COUNT(S) FILTER (WHERE 1 = 1)", "BAD_CONDITION", 5, "reads no event of S"),
        ("COUNT(S) FILTER (WHERE S.x)", "TYPE_MISMATCH", 3, "this is int"),
        ("COUNT(S) FILTER (WHERE S.z = 1)", "UNKNOWN_ATTRIBUTE", 3, "no attribute 'z'"),
        ("COUNT(S) FILTER (WHERE S.x > $p)", "UNKNOWN_PARAMETER", 2, "no for_each"),
        ("LONGEST(*) FILTER (WHERE S.x > 1)", "NOT_SUPPORTED", 7, "a FILTER here"),
        ("MAX(LENGTH(S)) FILTER (WHERE S.x > 1)", "NOT_SUPPORTED", 7, "a FILTER here"),
    ],
)
def test_a_measure_is_refused(measure: str, code: str, width: int, words: str) -> None:
    with pytest.raises(PatternErrors) as caught:
        compile_query(query(measure), SCHEMA)
    (error,) = caught.value.errors
    shown = str(error)
    assert f"[{code}]" in shown
    assert words in shown
    assert f" {'^' * width}\n" in shown + "\n"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "`output: maximal` needs `select: partition_contiguous` or `contiguous`"),
        ({"select": "contiguous", "return": {"m": "LONGEST(*)"}}, "LONGEST with `output: maximal`"),
        ({"select": "contiguous", "pattern": "S+ AND S+"}, "`output: maximal` with AND"),
        ({"select": "contiguous", "where": ["[S.g]"]}, "with an equivalence of some variables only"),
        ({"output": "largest"}, "Input should be 'all' or 'maximal'"),
    ],
)
def test_maximal_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(PatternErrors) as caught:
        compile_query({**query("COUNT(*)", output="maximal"), **more}, SCHEMA)
    assert words in str(caught.value.errors[0])


def test_durations_are_within_what_a_double_holds() -> None:
    with pytest.raises(PatternErrors, match="285 years"):
        compile_query(query("MAX(DURATION(*))", within="110000 days"), SCHEMA)
    assert compile_query(query("MAX(DURATION(*))", within="104000 days"), SCHEMA).hash


def test_explain_names_the_passes() -> None:
    measures = {"many": "COUNT(*) FILTER (WHERE LENGTH(S) >= 4)", "events": "LONGEST(*)"}
    text = explain(compile_query(query("", **{"return": measures}, pattern="S+", slide="6 hours"), SCHEMA))
    assert "measure   many: a pass of its own, over trends of 4 events or more under S; 4 states" in text
    assert "measure   LONGEST: a pass for the longest way to each event, then a walk back" in text
    assert "turns     4: windows that overlap are computed apart" in text
    maximal = compile_query(query("COUNT(*)", output="maximal", select="contiguous"), SCHEMA)
    assert "output    maximal: " in explain(maximal)


def test_measures_that_others_have_do_not_change_a_hash() -> None:
    """Of what the language had before, the hash is as it was; `output: all` is no other pattern."""
    plain = compile_query(query("COUNT(*)"), SCHEMA)
    assert compile_query(query("COUNT(*)", output="all"), SCHEMA).hash == plain.hash
    hashes = {
        compile_query(query(measure), SCHEMA).hash
        for measure in (
            "COUNT(*)",
            "COUNT(*) FILTER (WHERE LENGTH(*) >= 3)",
            "COUNT(*) FILTER (WHERE LENGTH(*) >= 4)",
            "COUNT(*) FILTER (WHERE LENGTH(S) >= 3)",
            "COUNT(S)",
            "COUNT(S) FILTER (WHERE S.x > 1)",
            "COUNT(S) FILTER (WHERE S.x > 2)",
            "MAX(LENGTH(*))",
            "MAX(LENGTH(S))",
            "MAX(DURATION(*))",
            "MAX_BY(S.x, S.g)",
            "MAX_BY(S.x, S.x)",
            "LONGEST(*)",
        )
    }
    assert len(hashes) == 13
