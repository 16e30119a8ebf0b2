"""Mistakes: each message and hint of the page, its place, and all mistakes of a text at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.row_patterns import table_of
from trendlake.cep_core import PatternErrors, compile_query, evaluate
from trendlake.cep_core.errors import PatternWarning, TrendlakeError
from trendlake.cep_core.events.schema import EventSchema

SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "long", "y": "double", "s": "string"}
    | {"start": "timestamp", "x1": "long", "tags": "array<string>"}
)
"""Columns of most types."""


def errors(text: str, **keys: object) -> list[TrendlakeError]:
    """The mistakes of a text."""
    with pytest.raises(PatternErrors) as raised:
        compile_query({"kind": "match_recognize", "pattern": text, **keys}, SCHEMA)
    return list(raised.value.errors)


def shown(error: TrendlakeError) -> str:
    return error.message if error.hint is None else f"{error.message}; {error.hint}"


def clause(*, measures: str = "x AS n", pattern: str = "A B", define: str = "A AS x > 1", between: str = "") -> str:
    return f"MATCH_RECOGNIZE (MEASURES {measures} {between} PATTERN ({pattern}) DEFINE {define}, B AS x > 2)"


TEXTS = {
    clause(define="A AS D.x > 1"): "DEFINE A: unknown pattern variable 'D'; the pattern has A and B",
    clause(define="C AS x > 1"): "DEFINE C: 'C' is not in PATTERN; the pattern has A and B",
    clause(define="A AS true, A AS true"): "DEFINE A: the variable is defined twice",
    clause(define="A AS x < FINAL LAST(x)"): "DEFINE A: FINAL is for MEASURES; the match is not finished",
    clause(define="A AS x + 1"): "DEFINE A: a condition is expected, this is a bigint",
    clause(measures="z AS n"): "MEASURES n: the source has no column 'z'",
    clause(measures="x AS n, y AS N"): "MEASURES: two are called 'n'",
    clause(measures="x + 1"): "MEASURES: a measure needs a name; expression AS name",
    clause(measures="x AS start"): "MEASURES start: 'start' is a column of every result; choose another name",
    clause(
        measures="x AS plan_hash"
    ): "MEASURES plan_hash: 'plan_hash' is a column of every result; choose another name",
    clause(
        measures="y AS x", between="ALL ROWS PER MATCH"
    ): "with ALL ROWS PER MATCH the result has a column 'x' already",
    clause(measures="LAST(A.x + B.x) AS n"): "MEASURES n: the argument of LAST reads A and B; one is allowed",
    clause(measures="LAST(A.x + x) AS n"): "MEASURES n: the argument of LAST reads A and all rows; one is allowed",
    clause(measures="PREV(1) AS n"): "MEASURES n: the argument of PREV reads no column",
    clause(measures="FIRST(PREV(x)) AS n"): "MEASURES n: PREV inside FIRST; PREV(FIRST(x)) is possible",
    clause(measures="PREV(PREV(x)) AS n"): "MEASURES n: PREV inside PREV",
    clause(measures="PREV(x, -1) AS n"): "the offset of PREV is a whole number from 0; NEXT looks forward",
    clause(measures="NEXT(x, x) AS n"): "the offset of NEXT is a whole number from 0; PREV looks back",
    clause(measures="PREV(SUM(x)) AS n"): "an aggregate inside PREV",
    clause(measures="FINAL x AS n"): "MEASURES n: FINAL stands before FIRST, LAST and aggregates",
    clause(measures="FINAL PREV(x) AS n"): "FINAL stands before FIRST, LAST and aggregates",
    clause(measures="SUM(COUNT(*)) AS n"): "MEASURES n: an aggregate inside an aggregate",
    clause(measures="SUM(LAST(x)) AS n"): "MEASURES n: LAST inside SUM",
    clause(measures="SUM(A.x + B.x) AS n"): "MEASURES n: SUM reads A and B; make a SUBSET of them",
    clause(measures="SUM(s) AS n"): "MEASURES n: SUM takes numbers, this is a varchar",
    clause(measures="MIN(DISTINCT x) AS n"): "MIN takes no DISTINCT",
    clause(measures="COUNT(*) OVER () AS n"): "no window functions",
    clause(measures="COUNT(*) FILTER (WHERE x > 1) AS n"): "no FILTER in an aggregate",
    clause(measures="ARRAY_AGG(x ORDER BY y) AS n"): "no ORDER BY in an aggregate",
    clause(measures="MATCH_ROWTIME() AS n"): "MATCH_ROWTIME is not part of the standard; LAST(event_time)",
    clause(measures="MATCH_SEQUENCE_NUMBER() AS n"): "MATCH_SEQUENCE_NUMBER is not part of the standard; COUNT(*)",
    clause(measures="ARRAY_AGG(x) = ARRAY_AGG(y) AS n"): "a list stands alone",
    clause(measures="foo(x) AS n"): "MEASURES n: there is no function 'foo'",
    clause(measures="x || 'a' AS n"): "concat takes a string, this is an integer; CAST(x AS VARCHAR)",
    clause(measures="CAST(event_time AS BIGINT) AS n"): "a timestamp cannot be cast to bigint",
    clause(
        measures="CAST(x AS DATE) AS n"
    ): "expected a type, found 'DATE'; BIGINT, DOUBLE, VARCHAR, BOOLEAN or TIMESTAMP",
    clause(measures="x1 AS a, X1 AS b, tags AS n"): "the type of column 'tags', array<string>, is none",
    clause(measures="x AS n, CASE WHEN x THEN 1 END AS m"): "MEASURES m: WHEN takes a condition, this is an integer",
    clause(measures="9223372036854775808 AS n"): "this number does not fit 64 bits",
    clause(pattern="A{0} B"): "PATTERN: A{0} matches nothing; an upper bound is 1 or more",
    clause(pattern="A{,0} B"): "PATTERN: A{,0} matches nothing",
    clause(pattern="A{3,2} B"): "PATTERN: {3,2} has its bounds the wrong way round",
    clause(pattern="A B)"): "'A' is not expected here",
    clause(pattern="A | + B"): "PATTERN: expected a variable, ( or ^, found '+'",
    clause(pattern="(A B"): "the ( of MATCH_RECOGNIZE has no )",
    clause(pattern="A+* B"): "PATTERN: two quantifiers; put A+ in parentheses",
    clause(pattern="A?? ? B"): "PATTERN: two quantifiers; put A?? in parentheses",
    clause(pattern="{- A B"): "PATTERN: expected -} behind {-",
    clause(pattern="PERMUTE(A,B,A,B,A,B,A,B,A)"): "PATTERN: PERMUTE has 9 parts; at most 8 are possible",
    clause(pattern="A{5000} B{5001}"): "PATTERN: 10,001 parts, its bounds written out; at most 10,000 are possible",
    clause(pattern="(A{100000000}){100000000} B"): "PATTERN: 10,000,000,000,000,001 parts",
    "MATCH_RECOGNIZE (PATTERN (()))": "PATTERN: a pattern has at least one variable",
    "MATCH_RECOGNIZE (PATTERN (A B) SUBSET U = (A, C))": "SUBSET U: 'C' is not in PATTERN",
    "MATCH_RECOGNIZE (PATTERN (A B) SUBSET A = (A, B))": "SUBSET A: the pattern has a variable of that name",
    "MATCH_RECOGNIZE (PATTERN (A B) SUBSET U = (A), U = (B))": "SUBSET: U is defined twice",
    "MATCH_RECOGNIZE (PATTERN (A B) SUBSET U = (A, B) DEFINE U AS true)": "'U' is a SUBSET; define A and B",
    "MATCH_RECOGNIZE (ONE ROW PER MATCH OMIT EMPTY MATCHES PATTERN (A))": (
        "OMIT EMPTY MATCHES follows ALL ROWS PER MATCH"
    ),
    "SELECT x FROM t MATCH_RECOGNIZE (ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN ({- A -} B))": (
        "{- -} leaves rows out, WITH UNMATCHED"
    ),
    "MATCH_RECOGNIZE (AFTER MATCH SKIP TO LAST Z PATTERN (A B))": (
        "AFTER MATCH SKIP TO LAST Z: unknown pattern variable 'Z'"
    ),
    "MATCH_RECOGNIZE (AFTER MATCH SKIP BEHIND PATTERN (A B))": "expected where matching goes on, found 'BEHIND'",
    "MATCH_RECOGNIZE (PATTERN (A) MEASURES x AS n)": "MEASURES stands before PATTERN",
    "MATCH_RECOGNIZE (DEFINE A AS true PATTERN (A))": "DEFINE stands after PATTERN and SUBSET",
    "MATCH_RECOGNIZE (PATTERN (A) PATTERN (B))": "PATTERN stands here a second time; each clause stands once",
    "MATCH_RECOGNIZE (MEASURES x AS n)": "PATTERN is missing",
    "MATCH_RECOGNIZE (SEEK PATTERN (A))": "SEEK belongs to row patterns in WINDOW",
    "MATCH_RECOGNIZE (PARTITION BY q PATTERN (A))": "PARTITION BY: the source has no column 'q'",
    "MATCH_RECOGNIZE (PARTITION BY start PATTERN (A))": "PARTITION BY: 'start' is a column of every result",
    "MATCH_RECOGNIZE (PARTITION BY x % 2 PATTERN (A))": "PARTITION BY: '%' is not expected here; a computed column",
    "MATCH_RECOGNIZE (ORDER BY tags PATTERN (A))": "ORDER BY: the type of column 'tags'",
    "MATCH_RECOGNIZE (ORDER BY x PATTERN (A) WITHIN INTERVAL '1' DAY)": (
        "ORDER BY: within needs 'event_time' as the first key"
    ),
    "MATCH_RECOGNIZE (PATTERN (A) WITHIN INTERVAL '0' DAY)": "WITHIN: a duration is more than zero",
    "MATCH_RECOGNIZE (PATTERN (A)": "the ( of MATCH_RECOGNIZE has no )",
    "SELECT * FROM trades": "the text has no MATCH_RECOGNIZE",
    "SELECT n FROM t MATCH_RECOGNIZE (PATTERN (A))": "SELECT: the result has no column 'n'",
    "SELECT m.x FROM t MATCH_RECOGNIZE (MEASURES y AS x PATTERN (A)) AS q": (
        "SELECT: there is no table 'M' here; write q.x"
    ),
    "SELECT SUM(x) FROM t MATCH_RECOGNIZE (MEASURES y AS x PATTERN (A))": "SELECT: no navigation and no aggregate here",
    "SELECT x + 1 FROM t MATCH_RECOGNIZE (MEASURES y AS x PATTERN (A))": "SELECT: a column needs a name",
    "SELECT DISTINCT * FROM t MATCH_RECOGNIZE (PATTERN (A))": "no SELECT DISTINCT",
    "SELECT * FROM t JOIN u MATCH_RECOGNIZE (PATTERN (A))": "FROM: a join; make one table of it first",
    "SELECT * FROM (SELECT * FROM t, u) MATCH_RECOGNIZE (PATTERN (A))": "FROM: a join; make one table of it first",
    "SELECT * FROM (SELECT x AS event_time FROM t) MATCH_RECOGNIZE (PATTERN (A))": (
        "'event_time' is a column that each event"
    ),
    "SELECT * FROM (SELECT *, 1 AS x FROM t) MATCH_RECOGNIZE (PATTERN (A))": "FROM: two are called 'x'",
    "SELECT * FROM (SELECT x FROM t GROUP BY x) MATCH_RECOGNIZE (PATTERN (A))": "the query behind FROM has no GROUP",
    "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) GROUP BY x": "GROUP BY around MATCH_RECOGNIZE",
    "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) LIMIT 5": "LIMIT around MATCH_RECOGNIZE",
    "MATCH_RECOGNIZE (PATTERN (A)) OPTIONS (use_longest_match = true)": (
        "OPTIONS around MATCH_RECOGNIZE: the match is the pre"
    ),
    "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x IN (SELECT 1))": "DEFINE A: no subqueries",
    "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS EXISTS (SELECT 1))": "DEFINE A: no subqueries",
    "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x = 1 = 2)": "DEFINE A: '=' behind a comparison",
    "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x > $low)": "DEFINE A: '$low' has no values: the pattern has no for_each",
    "MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (A))": "a row cannot have 'tags': its type is not known",
    "MATCH_RECOGNIZE (PATTERN (A)) 'open": "the text has no end",
    "MATCH_RECOGNIZE (PATTERN (A)) /* open": "the comment has no end",
}
"""Texts, each with a part of the one mistake that is reported."""


@pytest.mark.parametrize("text", TEXTS)
def test_a_mistake_is_named(text: str) -> None:
    """The first one in the text is the one that is asked for, and has a place."""
    first = errors(text)[0]
    assert TEXTS[text] in shown(first)
    assert first.place is not None


def test_all_mistakes_of_a_text_are_reported_at_once() -> None:
    text = """SELECT n FROM t MATCH_RECOGNIZE (
  PARTITION BY q
  ORDER BY event_time
  MEASURES z AS n, SUM(LAST(x)) AS m, x +
  ALL ROWS PER MATCH
  AFTER MATCH SKIP TO Z
  PATTERN (A{0} B+*)
  SUBSET U = (C)
  DEFINE A AS w > 1, B AS x, A AS (x > 1)"""
    reported = [(error.place.line, error.place.column, shown(error)) for error in errors(text) if error.place]
    assert [line for line, _, _ in reported] == sorted(line for line, _, _ in reported)
    said = "\n".join(message for _, _, message in reported)
    for part in (
        "MATCH_RECOGNIZE has no )",
        "no column 'q'",
        "no column 'z'",
        "LAST inside SUM",
        "expected a value",
        "'Z'",
        "A{0} matches nothing",
        "two quantifiers",
        "'C' is not in PATTERN",
        "no column 'w'",
        "a condition is expected",
        "defined twice",
    ):
        assert part in said
    assert (4, 12, "MEASURES n: the source has no column 'z'") in [
        (line, column, message.split(";")[0]) for line, column, message in reported
    ]


def test_the_caret_is_below_the_mistake() -> None:
    (error,) = errors("MATCH_RECOGNIZE (PATTERN (A)\n DEFINE A AS x > price)")
    assert str(error).splitlines()[1:3] == ["     DEFINE A AS x > price)", "                     ^^^^^"]


def test_within_is_stated_once() -> None:
    text = "MATCH_RECOGNIZE (PATTERN (A) WITHIN INTERVAL '1' DAY DEFINE A AS x > 1)"
    (error,) = errors(text, within="2 days")
    assert shown(error) == "WITHIN: within is 2 days in the file and 1 day here; state it once"
    assert (
        compile_query({"kind": "match_recognize", "pattern": text, "within": "1 day"}, SCHEMA).within == 86_400_000_000
    )


def test_the_text_reads_the_source_of_the_file() -> None:
    text = "SELECT * FROM orders MATCH_RECOGNIZE (MEASURES A.x AS n PATTERN (A))"
    (error,) = errors(text, source="trades")
    assert shown(error) == "the text reads 'orders', the source is 'trades'; FROM trades"
    same = text.replace("orders", "Trades")
    assert compile_query({"kind": "match_recognize", "pattern": same, "source": "trades"}, SCHEMA).key == ("match_id",)


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
def test_columns_in_two_cases() -> None:
    (error,) = errors('MATCH_RECOGNIZE (MEASURES x1 AS a, X1 AS b, "x1" AS c, x AS d PATTERN (A) DEFINE A AS z1 > 1)')
    assert "no column 'z1'" in shown(error)
    schema = EventSchema({**dict(SCHEMA.columns), "Ab": "long", "aB": "long"})
    with pytest.raises(PatternErrors) as raised:
        compile_query({"kind": "match_recognize", "pattern": "MATCH_RECOGNIZE (MEASURES ab AS n PATTERN (A))"}, schema)
    assert "'ab' may be Ab or aB" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("MATCH_RECOGNIZE (PATTERN (A Bx) DEFINE A AS x > 1)", "nothing names 'BX', and DEFINE leaves it out"),
        ("MATCH_RECOGNIZE (AFTER MATCH SKIP TO FIRST A PATTERN (A B) DEFINE B AS x > 1)", "is the first row of every"),
        ("MATCH_RECOGNIZE (AFTER MATCH SKIP TO LAST A PATTERN (A B) DEFINE B AS x > 1)", "is the first row of every"),
    ],
)
def test_warnings(text: str, warning: str) -> None:
    with pytest.warns(PatternWarning, match=warning):
        plan = compile_query({"kind": "match_recognize", "pattern": text}, SCHEMA)
    assert warning in "\n".join(plan.warnings)


def test_skip_failed_names_partition_and_match() -> None:
    text = "MATCH_RECOGNIZE (PARTITION BY sym AFTER MATCH SKIP TO LAST C PATTERN (A C?) DEFINE A AS x = 1, C AS x = 2)"
    table = table_of([{"id": "e1", "time": 1, "type": "T", "sym": "AAPL", "x": 1}])
    with pytest.raises(TrendlakeError) as raised:
        evaluate({"kind": "match_recognize", "pattern": text}, table)
    assert shown(raised.value) == (
        "partition sym=AAPL, match e1: AFTER MATCH SKIP TO LAST C, but no row of the match is mapped to C; "
        "make C mandatory, or skip to a SUBSET"
    )


def test_too_many_rows_are_an_error() -> None:
    query = {"kind": "match_recognize", "pattern": "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x > 0)"}
    table = table_of([{"id": f"e{at}", "time": at, "type": "T", "x": 1} for at in range(5)])
    assert evaluate({**query, "limit_per_partition": 5}, table).num_rows == 5
    with pytest.raises(TrendlakeError, match="more than limit_per_partition, 4 rows") as raised:
        evaluate({**query, "limit_per_partition": 4}, table)
    assert raised.value.code == "LIMIT"
    few = {
        **query,
        "limit_per_partition": 4,
        "pattern": "SELECT * FROM t " + query["pattern"] + " WHERE match_id <> 'e0'",
    }
    assert evaluate(few, table).num_rows == 4


@pytest.mark.parametrize("text", ["MEASURES SUM(A.x) AS n PATTERN (A+)", "PATTERN (A+) DEFINE A AS SUM(x) > 0"])
def test_a_sum_beyond_64_bits_is_an_error(text: str) -> None:
    table = table_of([{"id": f"e{at}", "time": at, "type": "T", "x": 2**62} for at in range(3)], {"x": pa.int64()})
    with pytest.raises(TrendlakeError, match="SUM of whole numbers does not fit 64 bits"):
        evaluate({"kind": "match_recognize", "pattern": f"MATCH_RECOGNIZE ({text})"}, table)
