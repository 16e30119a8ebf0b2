"""The mistakes of the page: each with its place and a way out, and all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, compile_query, evaluate, explain
from trendlake.cep_core.errors import BadEventsError, PatternWarning, TooManyMatchesError
from trendlake.cep_core.events.schema import EventSchema

COLUMNS = {
    "event_id": "string",
    "event_time": "timestamp",
    "event_type": "string",
    "opened": "timestamp",
    "symbol": "string",
    "price": "double",
    "volume": "bigint",
    "blob": "array<int>",
    "start": "timestamp",
}
SCHEMA = EventSchema(COLUMNS, types=("Trade", "Quote"))


def query(pattern: str, **more: Any) -> dict[str, Any]:
    return {"kind": "algebra", "within": "1 hour", "pattern": pattern, **more}


def mistakes(pattern: str, **more: Any) -> list[tuple[str, str]]:
    """The message of each mistake, and the text above its carets."""
    with pytest.raises(PatternErrors) as failure:
        compile_query(query(pattern, **more), SCHEMA)
    return [
        (f"[{e.code}] {e.message}", e.place.text[e.place.column - 1 :][: e.place.width] if e.place else "")
        for e in failure.value.errors
    ]


FOLD = "(SELECT symbol, price, 1 AS n FROM Trade) FOLD{, , $.n + 1 AS n} (SELECT price FROM Trade)"
ONE = [
    ("FROM Trad", "[UNKNOWN_TYPE] there is no stream 'Trad'", "Trad"),
    ("SELECT prise FROM Trade", "[UNKNOWN_ATTRIBUTE] the stream has no attribute 'prise'", "prise"),
    ("SELECT f(price) AS p FROM Trade", "[TYPE_MISMATCH] there is no function 'f'", "f(price)"),
    ("FROM Trade NEXT{price > 1} Quote", "[BAD_CONDITION] both streams have an attribute 'price'", "price"),
    ("FROM Trade NEXT{$.price > 1} Quote", "[BAD_CONDITION] $ is the instance of a FOLD: this is a NEXT", "$.price"),
    ("FROM FILTER{$.price > 1}(Trade)", "[BAD_CONDITION] $ is the instance of a FOLD: there is none here", "$.price"),
    ("FROM FILTER{$2.price > 1}(Trade)", "[BAD_CONDITION] $2 is the right stream of NEXT or FOLD", "$2.price"),
    ("SELECT $1.price AS p FROM Trade", "[BAD_CONDITION] SELECT has no decorators", "$1.price"),
    ("SELECT Trade.price AS p FROM Trade", "[UNKNOWN_VARIABLE] there is no variable 'Trade'", "Trade.price"),
    (
        "FROM (SELECT price FROM Trade) FOLD{, , } (SELECT price, volume, symbol FROM Trade)",
        "[BAD_PATTERN] FOLD: the left stream lacks attributes of the right one: volume, symbol",
        "(SELECT",
    ),
    (
        f"FROM {FOLD.replace('AS n}', 'AS m}')}",
        "[BAD_PATTERN] FOLD computes 'm', which its left stream does not begin",
        "m",
    ),
    (f"FROM {FOLD.replace('AS n}', 'AS price}')}", "[BAD_PATTERN] FOLD takes 'price' from its right stream", "price"),
    (f"FROM {FOLD.replace('AS n}', 'AS n, 2 AS n}')}", "[BAD_PATTERN] FOLD computes 'n' twice", "n"),
    (f"FROM {FOLD.replace('$.n + 1', 'symbol')}", "[TYPE_MISMATCH] 'n' begins as an integer, this", "symbol"),
    (
        "FROM (SELECT price FROM Trade) UNION (SELECT symbol FROM Trade)",
        "[BAD_PATTERN] UNION takes streams of the same attributes: only the left has price; only the right has symbol",
        "(SELECT",
    ),
    (
        "FROM (SELECT price FROM Trade) UNION (SELECT symbol AS price FROM Trade)",
        "[TYPE_MISMATCH] UNION: 'price' is a double on the left and a string on the right",
        "(SELECT",
    ),
    ("SELECT price, volume AS price FROM Trade", "[BAD_PATTERN] SELECT has 'price' twice", "price"),
    (
        "FROM (SELECT price, 1 AS price_1 FROM Trade) NEXT (SELECT price, 1 AS price_1 FROM Quote)",
        "[BAD_PATTERN] the output has two attributes called 'price_1'",
        "(SELECT",
    ),
    ("SELECT COUNT(*) AS n, price FROM Trade", "[BAD_CONDITION] an attribute beside aggregates", "price"),
    ("FROM FILTER{SUM(price) > 1}(Trade)", "[BAD_CONDITION] SUM is an aggregate", "SUM(price)"),
    ("SELECT 1 + COUNT(*) AS n FROM Trade", "[BAD_CONDITION] COUNT is an aggregate", "COUNT(*)"),
    ("SELECT MAX_BY(price) AS n FROM Trade", "[TYPE_MISMATCH] MAX_BY takes 2 arguments, not 1", "MAX_BY(price)"),
    ("SELECT SUM(symbol) AS n FROM Trade", "[TYPE_MISMATCH] SUM does not take a string", "symbol"),
    ("FROM Trade FROM Quote", "[BAD_PATTERN] statement 1 is read by nothing: PUBLISH is missing", "e"),
    ("FROM Trade PUBLISH a FROM Quote PUBLISH a", "[BAD_PATTERN] 'a' is published twice", "a"),
    ("FROM Trade PUBLISH Quote FROM Trade", "[BAD_PATTERN] 'Quote' is an event type", "Quote"),
    ("FROM b PUBLISH a FROM Quote PUBLISH b", "[BAD_PATTERN] 'b' is published later, or by this statement", "b"),
    ("FROM Trade NEXT a PUBLISH a", "[BAD_PATTERN] 'a' is published later, or by this statement", "a"),
    ("SELECT price + 1 FROM Trade", "[BAD_PATTERN] what SELECT computes needs a name", "price + 1"),
    ("SELECT price AS start FROM Trade", "[BAD_PATTERN] a row cannot have 'start'", "start"),
    ("SELECT price AS run_id FROM Trade", "[BAD_PATTERN] a row cannot have 'run_id'", "run_id"),
    ("SELECT price, volume AS Price FROM Trade", "[BAD_PATTERN] a row cannot have 'Price'", "Price"),
    ("SELECT blob FROM Trade", "[TYPE_MISMATCH] a row cannot have 'blob'", "SELECT blob"),
    ("SELECT start FROM Trade", "[UNKNOWN_ATTRIBUTE] the stream has no attribute 'start'", "start"),
    ("FROM FILTER{price}(Trade)", "[TYPE_MISMATCH] a condition is true or false, this is a double", "price"),
    ("FROM FILTER{volume > 9223372036854775808}(Trade)", "[TYPE_MISMATCH] this number does not fit 64 bits", "9223"),
    ("FROM FILTER{price > 1 Trade", "[SYNTAX] 'Trade' is not expected here", "Trade"),
    ("FROM FILTER{price > ${least}}(Trade)", "[SYNTAX] '{' is not expected here", "{"),
    ("FROM FILTER{price > $least}(Trade)", "[UNKNOWN_PARAMETER] '$least' has no values", "$least"),
    ("FROM FILTER{price > $least.price}(Trade)", "[SYNTAX] there is no stream '$least'", "$least"),
    ("FROM FILTER{price > $2}(Trade)", "[SYNTAX] '}' is not expected here", "}"),
    ("FROM Trade NEXT{$3.price > 1} Trade", "[SYNTAX] there is no stream '$3'", "$3"),
]


@pytest.mark.parametrize(("pattern", "message", "caret"), ONE, ids=[one[0] for one in ONE])
def test_mistake(pattern: str, message: str, caret: str) -> None:
    """Its class and message, and what stands above the caret."""
    ((actual, place),) = [one for one in mistakes(pattern) if one[0].startswith(message)]
    assert place.startswith(caret), actual


def test_all_mistakes_come_at_once() -> None:
    pattern = """SELECT prise, volume AS v
FROM FILTER{$2.price > 1 AND prise > 2}(Trad) PUBLISH a
SELECT COUNT(*) AS n, v FROM a NEXT{$.x = 1} Trade"""
    codes = [message.split("]")[0].strip("[") for message, _ in mistakes(pattern)]
    assert codes == ["UNKNOWN_TYPE", "BAD_CONDITION", "BAD_CONDITION", "BAD_CONDITION"]


def test_a_place_in_a_file_is_that_of_the_line(tmp_path: Path) -> None:
    """Lines of a block may be indented deeper than the block."""
    path = tmp_path / "p.yaml"
    text = "  SELECT price\n  FROM Trade\n    NEXT{$2.prise > 1} Trade\n"
    path.write_text(f"name: p\nkind: algebra\nsource: trades\nwithin: 1 hour\npattern: |\n{text}")
    with pytest.raises(PatternErrors) as failure:
        compile_query(path, SCHEMA)
    assert str(failure.value).splitlines()[:3] == [
        f"{path}:8:10: [UNKNOWN_ATTRIBUTE] the right stream has no attribute 'prise'",
        "        NEXT{$2.prise > 1} Trade",
        "             ^^^^^^^^",
    ]


def test_a_partition_column_is_never_set() -> None:
    """SELECT may name it, as every stream has it."""
    ((message, place),) = mistakes("SELECT price AS symbol FROM Trade", partition_by=["symbol"])
    assert (message[:15], place) == ("[BAD_PATTERN] '", "symbol")
    plan = compile_query(query("SELECT symbol, price FROM Trade", partition_by=["symbol"]), SCHEMA)
    assert plan.result_schema.names == ["symbol", "start", "end", "price"]
    ((message, _),) = mistakes("SELECT price FROM Trade", partition_by=["cymbal"])
    assert "no attribute 'cymbal'" in message


def test_the_last_name_is_the_patterns() -> None:
    compile_query(query("SELECT price FROM Trade PUBLISH dear", name="dear"), SCHEMA)
    ((message, _),) = mistakes("SELECT price FROM Trade PUBLISH dearer", name="dear")
    assert "its name is 'dear'" in message
    ((message, _),) = mistakes("SELECT price FROM dear", name="dear")
    assert "'dear' is this pattern" in message


def test_interval_start_is_a_time_of_the_source() -> None:
    assert "'symbol' is a string" in mistakes("SELECT price FROM Trade", interval_start="symbol")[0][0]
    assert "no column 'opend'" in mistakes("SELECT price FROM Trade", interval_start="opend")[0][0]


def test_a_statement_that_nothing_reads_is_a_warning() -> None:
    with pytest.warns(PatternWarning, match="'a' is read by nothing"):
        compile_query(query("SELECT price FROM Trade PUBLISH a SELECT price FROM Quote"), SCHEMA)


def test_a_whole_number_beyond_64_bits_is_an_error_of_the_events_alone() -> None:
    """Of the pairs of which the safe parts are true, up to the least end of candidates: see ADR 25."""
    rows = [{"id": f"e{i}", "type": "Trade", "time": i, "k": i % 2, "v": v} for i, v in enumerate((2, 2**62, 3, 4))]
    pattern = "SELECT event_id FROM Trade NEXT{$1.v * $2.v > 0 AND $1.k = $2.k} Trade"
    assert evaluate(query(pattern), to_table(rows[:3])).column("event_id").to_pylist() == ["e2"]
    with pytest.raises(BadEventsError, match="overflows"):
        evaluate(query(pattern), to_table(rows))  # e1 and e3 are of one key
    with pytest.raises(BadEventsError, match=r"overflows in NEXT's condition, statement 1: \$1.v \* \$2.v > 0"):
        evaluate(query(pattern.replace("$1.k = $2.k", "$1.k <= $2.k")), to_table(rows[:3]))
    fold = "FROM (SELECT v, v AS n FROM Trade) FOLD{, , $.n * $2.v AS n} (SELECT v FROM Trade)"
    with pytest.raises(BadEventsError, match="overflows in FOLD's value 'n', statement 1"):
        evaluate(query(fold), to_table(rows))
    with pytest.raises(BadEventsError, match=r"overflows in SELECT \.\.\. AS total, statement 1"):
        evaluate(query("SELECT SUM(v * 4) AS total FROM Trade"), to_table(rows))


def test_the_limit_names_the_partition() -> None:
    rows = [{"id": f"e{i}", "type": "Trade", "time": i, "k": "x"} for i in range(10)]
    asked = query("SELECT event_id FROM Trade", partition_by=["k"], limit_per_partition=10)
    with pytest.raises(TooManyMatchesError, match=r"k = 'x': limit_per_partition, 10 rows, is reached in \[1970"):
        evaluate(asked, to_table(rows))
    assert evaluate({**asked, "limit_per_partition": 11}, to_table(rows)).num_rows == 10


def test_an_event_that_starts_after_its_end_is_refused() -> None:
    row = {"id": "a", "type": "Trade", "time": 1}
    table = to_table([row])
    later = table.append_column("opened", table.column("event_time"))
    assert evaluate(query("FROM Trade", interval_start="opened"), later).num_rows == 1
    later = table.append_column("opened", pa.array([2_000_000], pa.timestamp("us", "UTC")))
    with pytest.raises(BadEventsError, match="'opened' is later than its time"):
        evaluate(query("FROM Trade", interval_start="opened"), later)


def test_explain_says_how_and_warns() -> None:
    text = explain(compile_query(query("SELECT price FROM Trade FOLD{, , } Trade"), SCHEMA))
    assert "warning: only `within` ends an instance: up to O(n^2) rows" in text
    pattern = "SELECT price FROM Trade NEXT{$1.symbol = $2.symbol AND $2.price > $1.price} Trade"
    text = explain(compile_query(query(pattern), SCHEMA))
    assert "groups by $1.symbol = $2.symbol" in text
    assert "$2.price > $1.price: the next such event by a tree of extremes" in text
    assert "cost: O(log n) an event, and O(1) a row" in text


def test_the_hash_follows_results_only() -> None:
    plan = compile_query(query("SELECT price FROM Trade"), SCHEMA)
    wider = EventSchema({**COLUMNS, "more": "string"}, types=SCHEMA.types)
    assert compile_query(query("SELECT price FROM Trade", description="x"), wider).hash == plan.hash
    assert compile_query(query("-- the same\nFROM (SELECT price, volume FROM Trade PUBLISH t) PUBLISH query"), SCHEMA)
    assert compile_query(query("SELECT price FROM Quote"), SCHEMA).hash != plan.hash
    assert compile_query(query("SELECT price FROM Trade", interval_start="opened"), SCHEMA).hash != plan.hash
