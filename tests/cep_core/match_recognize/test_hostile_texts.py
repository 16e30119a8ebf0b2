"""Texts that are as large or as deep as may be: checking takes at most two seconds and names the limit, and a run ends
with a result or an error."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.row_patterns import table_of
from trendlake.cep_core import PatternErrors, TrendlakeError, compile_query, evaluate, run_plan
from trendlake.cep_core.events.schema import schema_of

pytestmark = pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")

TABLE = table_of([{"id": f"e{at:03}", "time": at, "type": "T", "x": at % 7, "s": "ab"[at % 2]} for at in range(60)])


def query(pattern: str, define: str = "", **keys: Any) -> dict[str, Any]:
    text = f"MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN ({pattern}){f' DEFINE {define}' if define else ''})"
    return {"kind": "match_recognize", "pattern": text, **keys}


NULLABLE = "((((A?)*)*?)+)*"
LARGE = {
    "10,000 places": query("A{10000}"),
    "10,000 variables": query(" ".join(f"v{at}" for at in range(10_000))),
    "5,000 optional parts": query("(A?){5000} B", "A AS x > 1, B AS x = 9"),
    "a permutation of permutations": query("PERMUTE(PERMUTE(A,B,C),PERMUTE(D,E,F),PERMUTE(G,H,I))"),
    "eight parts": query("PERMUTE(A,B,C,D,E,F,G,H)", "A AS x = 3, H AS x = 2"),
    "nullable loops": query(" ".join([NULLABLE] * 100) + " B", "A AS x < 3, B AS x = 9"),
    "loops in loops": query("(" * 50 + "A" + "*)" * 50 + "* B", "A AS x < 9, B AS x = 9"),
    "counted loops in loops": query("((((A{2}){2}){2}){2}){2,3} B?"),
    "names": query('"A ""quoted""" "ünïcödé" größe "*/ --"', '"ünïcödé" AS x >= 0, größe AS größe.x > 0'),
    "anchors": query("^ " * 2_000 + "A " + "$ " * 2_000),
    "alternatives": query(" | ".join(["A B"] * 2_000), "B AS x = 9"),
}
REFUSED = {
    "10,001 places": (query("A{10001}"), "10,001 parts"),
    "permutations of eight in eight": (
        query("PERMUTE(" + ",".join(["PERMUTE(A,B,C,D,E,F,G,H)"] * 8) + ")"),
        "1,048,576 parts",
    ),
    "a million in a million": (query("(A{1000000}){1000000}"), "1,000,000,000,000 parts"),
    "empty parts": (query("(A (){10000})"), "10,001 parts"),
    "deep parentheses": (query("(" * 100 + "A" + ")" * 100), "nested deeper than 60"),
    "a megabyte": (query("A " * 500_000), "longer than 100,000 characters"),
    "a deep condition": (query("A", "A AS " + "NOT " * 1_000 + "x > 1"), "more than 150 operators"),
    "a long condition": (query("A", "A AS " + " OR ".join(["x > 1"] * 1_000)), "more than 150 operators"),
    "deep CASE": (query("A", "A AS " + "CASE WHEN " * 900 + "x > 1"), "nested deeper than 60"),
    "signs": (query("A", "A AS " + "- " * 900 + "x > 1"), "more than 150 operators"),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_patterns_are_compiled_and_end(name: str) -> None:
    began = time.process_time()
    plan = compile_query(LARGE[name], schema_of(TABLE))
    assert time.process_time() - began < 20  # a second or two; else it is not linear
    assert run_plan(plan, TABLE).schema == plan.result_schema


@pytest.mark.parametrize("name", REFUSED)
def test_limits_are_named(name: str) -> None:
    asked, message = REFUSED[name]
    began = time.process_time()
    with pytest.raises(PatternErrors) as raised:
        compile_query(asked, schema_of(TABLE))
    assert time.process_time() - began < 2
    assert message in str(raised.value)


SEARCHES = {
    "sums over subsets": query("(A | B)+ C", "C AS SUM(A.x) = 1000"),
    "labels": query("(A | B)+ C", "C AS FIRST(CLASSIFIER(), 20) = 'Z'  OR ARRAY_AGG(CLASSIFIER()) IS NULL"),
    "counts": query("(A | B | C)+ D", "D AS COUNT(A.*) = 100 OR COUNT(B.*) = 100 AND LAST(C.x) > 100"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_ends(name: str) -> None:
    """With the error that names the row and the condition."""
    with pytest.raises(TrendlakeError) as raised:
        evaluate({**SEARCHES[name], "limit_per_start": 20_000}, TABLE)
    assert raised.value.code == "SEARCH_TOO_LONG"
    assert "row e000: the search takes more than 20,000 steps (limit_per_start)" in raised.value.message
    assert raised.value.message.endswith(("DEFINE C", "DEFINE D"))


def test_a_search_of_local_conditions_has_no_limit() -> None:
    """Nor does one whose registers stay few: equal ones are followed once."""
    asked = {**query("((A+)+ B)", "A AS x >= 0, B AS x = 9"), "limit_per_start": 1}
    assert evaluate(asked, TABLE).num_rows == 0
    few = {**query("((A | B)+ C)", "B AS COUNT(A.*) % 2 = 0, C AS x = 9"), "limit_per_start": 20_000}
    assert evaluate(few, TABLE).num_rows == 0
