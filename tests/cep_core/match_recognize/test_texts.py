"""Texts as people paste them: names, types, functions, parameters, input queries; and a plan in words and as a
picture."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from tests.support.row_patterns import rows_of, table_of
from trendlake.cep_core import compile_query, draw, evaluate, explain, run_plan
from trendlake.cep_core.events.schema import TIME_TYPE, schema_of

pytestmark = pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")

ROWS = [
    {"id": f"e{at}", "time": at, "type": "T", "x": at, "s": "ab"[at % 2], "y": at / 2, "n": None} for at in range(1, 7)
]
TABLE = table_of(ROWS, {"n": pa.int64()})


def query(text: str, **keys: Any) -> dict[str, Any]:
    return {"kind": "match_recognize", "pattern": text, **keys}


def value(expression: str, table: pa.Table = TABLE) -> Any:
    """A measure of the match of all rows."""
    (row,) = rows_of(evaluate(query(f"MATCH_RECOGNIZE (MEASURES {expression} AS v PATTERN (A+))"), table))
    return row["v"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CASE WHEN x > 9 THEN 'big' WHEN x > 5 THEN 'six' END", "six"),
        ("CASE x WHEN 6 THEN 1 ELSE 2.5 END", 1.0),
        ("CASE WHEN x > 9 THEN 1 END", None),
        ("NULLIF(x, 6)", None),
        ("MOD(x, 4)", 2),
        ("x / 4", 1.5),
        ("x / 0", None),
        ("s || '-' || 'z'", "a-z"),
        ("CONCAT(s, NULL)", None),
        ("LENGTH(s || 'größe')", 6),
        ("s LIKE '_'", True),
        ("'a%b' LIKE 'a!%_' ESCAPE '!'", True),
        ("s NOT LIKE 'b%'", True),
        ("s NOT IN ('b', 'c') AND x NOT BETWEEN 1 AND 5", True),
        ("(n IS NULL) AND (x > 9) IS NOT TRUE", True),
        ("ROUND(2.5) + ROUND(-2.5) + ROUND(1.005, 2)", 1.0),
        ("ROUND(15, -1)", 20),
        ("FLOOR(-1.5) + CEIL(-1.5) + FLOOR(x)", 3.0),
        ("SQRT(x + 3)", 3.0),
        ("SQRT(-1)", None),
        ("CAST(2.5 AS BIGINT) + CAST('7' AS BIGINT)", 10),
        ("CAST(x AS VARCHAR) || CAST(x > 1 AS VARCHAR) || CAST(y AS VARCHAR)", "6true3.0"),
        ("CAST(CAST(event_time AS VARCHAR) AS TIMESTAMP) = event_time", True),
        ("CAST('1970-01-01' AS TIMESTAMP) < event_time", True),
        ("DATE_TRUNC('minute', event_time)", 0),
        ("DATE_TRUNC('month', event_time + INTERVAL '40' DAY)", 31 * 86_400),
        ("DATE_TRUNC('week', event_time)", -3 * 86_400),
        ("(LAST(event_time) - FIRST(event_time)) / 1000000", 5.0),
        ("LAST(event_time) - FIRST(event_time) < INTERVAL '6' SECOND", True),
        ("COALESCE(n, x) + ABS(-1)", 7),
        ("AVG(x)", 3.5),
        ("SUM(y)", 10.5),
        ("SUM(n)", None),
        ("STRING_AGG(s, ', ')", "b, a, b, a, b, a"),
        ("STRING_AGG(CAST(n AS VARCHAR), ',')", None),
        ("MIN_BY(s, -x)", "a"),
        ("MAX_BY(n, x)", None),
        ("ANY_VALUE(n)", None),
        ("BOOL_AND(x > 0) AND NOT BOOL_OR(x > 6)", True),
        ("COUNT(DISTINCT s) + SUM(DISTINCT x % 2)", 3),
        ("MAX(event_time)", 6),
        ("LAG(x, 2) + LEAD(x, 0)", 10),
        ('LAST("x") + `x`', 12),
        ("- -x + +1", 7),
        ("X", 6),
        ("TRUE", True),
    ],
)
def test_expressions(expression: str, expected: Any) -> None:
    assert value(expression) == expected


def test_the_same_expressions_in_define_and_in_columns() -> None:
    """The search evaluates one row at a time where a condition remembers rows, and columns where it does not."""
    condition = (
        "CASE WHEN s LIKE 'a%' THEN LENGTH(s || CAST(x AS VARCHAR)) = 2 ELSE ROUND(y) >= 1 END "
        "AND DATE_TRUNC('hour', event_time) < event_time AND x IN (1, 2, 3, 4) AND NULLIF(x, 3) IS NOT NULL"
    )
    rows = []
    for more in ("", " AND COUNT(*) > 0"):
        text = f"MATCH_RECOGNIZE (MEASURES ARRAY_AGG(A.x) AS v PATTERN (A+) DEFINE A AS {condition}{more})"
        rows.append(rows_of(evaluate(query(text), TABLE)))
    assert [row["v"] for row in rows[0]] == [[1, 2], [4]]
    assert rows[0] == rows[1]


def test_types_of_results() -> None:
    text = (
        "SELECT *, n + 1 AS m FROM t MATCH_RECOGNIZE (MEASURES x AS last, y AS real, COUNT(*) AS n, SUM(y) AS sum, "
        "CLASSIFIER() AS label, ARRAY_AGG(event_time) AS times, event_time AS at, AVG(x) AS mean, "
        "NULL AS none PATTERN (A+))"
    )
    schema = evaluate(query(text), TABLE).schema
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "match_id": pa.string(),
        "start": TIME_TYPE,
        "end": TIME_TYPE,
        "last": pa.int64(),
        "real": pa.float64(),
        "n": pa.int64(),
        "sum": pa.float64(),
        "label": pa.string(),
        "times": pa.list_(TIME_TYPE),
        "at": TIME_TYPE,
        "mean": pa.float64(),
        "none": pa.string(),
        "m": pa.int64(),
    }


def test_long_decimals_stay_exact() -> None:
    """As columns, in comparisons of columns, and as keys of the order."""
    kind = pa.decimal128(20, 0)
    big = 2**53
    values = pa.array([big, big + 1, big], kind)
    table = table_of(ROWS[:3]).append_column("d", values)
    text = (
        "MATCH_RECOGNIZE (ORDER BY d, event_time MEASURES LAST(d) AS v, COUNT(*) AS n PATTERN (A+) DEFINE A AS d = {})"
    )
    rows = evaluate(query(text.format("NEXT(d) OR d <> NEXT(d)")), table)
    assert rows.schema.field("v").type == kind
    (row,) = rows.to_pylist()
    assert (int(row["v"]), row["n"]) == (big, 2)


def test_parameters_in_every_place() -> None:
    text = (
        "SELECT n + $low AS m FROM (SELECT *, x * $low AS z FROM t WHERE x <> $not) MATCH_RECOGNIZE ("
        "MEASURES COUNT(*) + SUM(A.z) AS n PATTERN (A+) DEFINE A AS PREV(x, $back) IS NULL OR x >= $low) WHERE n > $low"
    )
    asked = query(text, for_each={"low": [2, 3], "not": [4], "back": [1]})
    rows = rows_of(evaluate(asked, TABLE))
    by_hand = []
    for low in (2, 3):
        plain = text.replace("$low", str(low)).replace("$not", "4").replace("$back", "1")
        by_hand += [{"low": low, "not": 4, "back": 1, **row} for row in rows_of(evaluate(query(plain), TABLE))]
    assert sorted(rows, key=str) == sorted(by_hand, key=str)
    assert len(rows) > 1


def test_input_queries_rename_and_filter() -> None:
    text = (
        "SELECT * FROM (SELECT x AS value, UPPER(s) AS letter FROM t e WHERE x < 5) AS q MATCH_RECOGNIZE ("
        "PARTITION BY letter ORDER BY value DESC MEASURES ARRAY_AGG(value) AS v ALL ROWS PER MATCH PATTERN (A+)) m"
    )
    rows = evaluate(query(text), TABLE)
    assert rows.schema.names[:6] == ["letter", "match_id", "event_id", "start", "end", "value"]
    assert {row["letter"]: row["v"] for row in rows.to_pylist() if len(row["v"]) == 2} == {"A": [4, 2], "B": [3, 1]}


def test_ties_are_ordered_by_sequence_then_id() -> None:
    rows = [{"id": f"e{at}", "time": 1, "type": "T", "q": -at} for at in range(3)]
    text = query("MATCH_RECOGNIZE (MEASURES ARRAY_AGG(event_id) AS v PATTERN (A+))")
    assert evaluate(text, table_of(rows)).to_pylist()[0]["v"] == ["e0", "e1", "e2"]
    assert evaluate(text, table_of(rows), sequence="q").to_pylist()[0]["v"] == ["e2", "e1", "e0"]


def test_a_plan_survives_a_journey() -> None:
    plan = compile_query(
        query("MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A B+?) DEFINE B AS x > A.x)"), schema_of(TABLE)
    )
    run_plan(plan, TABLE)
    again = pickle.loads(pickle.dumps(plan))
    assert (again, again.hash) == (plan, plan.hash)
    assert run_plan(again, TABLE).equals(run_plan(plan, TABLE))


def test_the_hash_is_that_of_the_meaning() -> None:
    """Blanks, comments, the case of words and names of SUBSETs are no part of it; everything else is."""

    def hash_of(text: str, **keys: Any) -> str:
        return compile_query(query(text, **keys), schema_of(TABLE)).hash

    text = "MATCH_RECOGNIZE (MEASURES LAST(x) AS v PATTERN (A+) DEFINE A AS x > 1)"
    same = "select * from t match_recognize(measures last ( X ) v /* the last */ pattern(a +) define a as (x>1)) as m;"
    assert hash_of(text) == hash_of(same)
    others = [
        text.replace("LAST(x)", "FIRST(x)"),
        text.replace("A+", "A+?"),
        text.replace("> 1", "> 2"),
        text.replace("PATTERN", "AFTER MATCH SKIP TO NEXT ROW PATTERN"),
        text.replace("MEASURES", "ORDER BY event_time DESC MEASURES"),
        text.replace("MEASURES", "PARTITION BY s MEASURES"),
        text.replace("PATTERN", "ALL ROWS PER MATCH PATTERN"),
        text + " WHERE v > 1",
    ]
    hashes = {hash_of(text), *map(hash_of, others), hash_of(text, within="1 day"), hash_of(text, limit_per_start=5)}
    assert len(hashes) == len(others) + 3


CLASSES = {
    "x > 1 AND PREV(s, 2) = NEXT(s)": "local",
    "x > MATCH_NUMBER()": "numbered",
    "x > S.x + FIRST(x)": "of the start",
    "SUM(x) < 9 AND LAST(x, 1) > 2": "of the start",
    "A.x > LAST(B.x)": "registers",
    "COUNT(A.*) < 3": "registers",
    "CLASSIFIER() = 'A'": "local",
    "PREV(CLASSIFIER()) = 'B'": "registers",
}


@pytest.mark.parametrize("condition", CLASSES)
def test_explain_names_the_class_of_a_condition(condition: str) -> None:
    text = f"MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (S (A | B)+) DEFINE A AS {condition})"
    said = explain(compile_query(query(text), schema_of(TABLE)))
    assert f"({CLASSES[condition]})" in next(line for line in said.split("\n") if line.startswith("  A:"))
    because = "" if CLASSES[condition] == "local" else ", because of A"
    assert f"class     {CLASSES[condition]}{because}" in said


def test_explain_and_picture() -> None:
    text = (
        "MATCH_RECOGNIZE (PARTITION BY s ORDER BY event_time MEASURES PREV(FIRST(U.x, 1), 2) AS p, "
        "MATCH_NUMBER() AS m, "
        "FINAL COUNT(DISTINCT A.x) AS c AFTER MATCH SKIP TO LAST B PATTERN (^ A {- B -}+? $) SUBSET U = (A, B) "
        "DEFINE B AS x > AVG(A.x) OR CASE WHEN s LIKE 'a%' THEN TRUE END)"
    )
    plan = compile_query(query(text, within="2 hours"), schema_of(TABLE))
    said = explain(plan)
    for part in (
        "partition s",
        "order     event_time NULLS LAST, event_id",
        "within    2 hours",
        "pattern   2 places: A B",
        "B: x > AVG(A.x) OR CASE WHEN s LIKE 'a%' THEN TRUE ELSE NULL END  (registers)",
        "onward    at the last row of a match that is mapped to B",
        "p: PREV(FIRST(x, 1), 2)",
        "c: FINAL COUNT(DISTINCT A.x)",
        "note: MATCH_NUMBER() is a measure",
        "limit     1,000,000 steps",
    ):
        assert part in said, part
    picture = draw(plan, "dips")
    assert picture.startswith("<svg")
    for part in ("at the first row", "left out of the result", "ends at the last row"):
        assert part in picture


def test_large_patterns_have_no_picture() -> None:
    plan = compile_query(query("MATCH_RECOGNIZE (PATTERN (A{100}))"), schema_of(TABLE))
    assert "100 places" in draw(plan, "many")


def test_the_input_may_be_left_out() -> None:
    clause = "MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A+))"
    rows = [
        rows_of(evaluate(query(f"SELECT n FROM {source} {clause}"), TABLE)) for source in ("", "trades", "trades t")
    ]
    assert rows == [rows[0]] * 3
    assert rows[0][0]["n"] == 6


def test_no_events() -> None:
    empty = TABLE.slice(0, 0)
    for rows in ("ONE ROW PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"):
        clauses = f"PARTITION BY s ORDER BY x {rows} AFTER MATCH SKIP TO LAST A PATTERN (A+) DEFINE A AS x > 1"
        assert evaluate(query(f"MATCH_RECOGNIZE ({clauses})"), empty).num_rows == 0
