"""The mistakes of a pattern file of kind automaton: each with its place, all at once; and those that events can
hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines import to_table
from trendlake.cep_core import EventSchema, PatternErrors, PatternWarning, compile_query, evaluate, explain
from trendlake.cep_core.errors import BadEventsError

SCHEMA = EventSchema(
    {
        "event_id": "string",
        "event_time": "timestamp",
        "event_type": "string",
        "symbol": "string",
        "price": "double",
        "volume": "bigint",
    }
)
GOOD = """\
name: drops
kind: automaton
source: trades
register:
  n: {type: int, init: 0}
  top: {type: double, init: null}
start: q0
final: [q2]
arcs:
  - {from: q0, to: q1, when: "e.price > 10", set: {top: e.price}}
  - {from: q1, to: q1, when: "e.volume < 5", ignore: true}
  - {from: q1, to: q2, when: "e.price < top AND n = 0", set: {n: n + 1}}
partition_by: [symbol]
within: 10 minutes
"""


def messages_of(folder: Path, old: str = "", new: str = "") -> list[str]:
    """The errors of GOOD with one change."""
    if old not in GOOD:
        raise ValueError(old)
    path = folder / "drops.yaml"
    path.write_text(GOOD.replace(old, new, 1) if old else GOOD)
    with pytest.raises(PatternErrors) as failure:
        compile_query(path, SCHEMA)
    return [str(error).replace(f"{folder}/", "") for error in failure.value.errors]


def test_the_good_file_is_good(tmp_path: Path) -> None:
    path = tmp_path / "drops.yaml"
    path.write_text(GOOD)
    plan = compile_query(path, SCHEMA)
    assert plan.columns == ("event_time", "event_id", "symbol", "price", "volume")
    assert plan.shard_key == ("symbol",)
    assert plan.result_schema.names == [
        "symbol",
        "first",
        "last",
        "state",
        "n",
        "top",
        "lifetime_start",
        "lifetime_end",
    ]


MISTAKES = [
    ("final: [q2]", "final: [q9]", "[BAD_VALUE] no arc leads to the final state 'q9'", "q9]"),
    ("start: q0", "start: qo", "[BAD_VALUE] no arc leaves the start state 'qo'", "qo"),
    ("e.price > 10", "e.prise > 10", "[UNKNOWN_ATTRIBUTE] the source has no attribute 'prise'", "e.prise"),
    ("e.price > 10", "price > 10", "[UNKNOWN_VARIABLE] the register has no field 'price'", "price"),
    ("e.price > 10", "f.price > 10", "[UNKNOWN_VARIABLE] there is no variable 'f': the event is e", "f.price"),
    ("e.price > 10", "e.symbol > 10", "[TYPE_MISMATCH] cannot compare a string with an integer", "e.symbol > 10"),
    ("e.price > 10", "e.price", "[TYPE_MISMATCH] a condition is true or false, this is a double", "e.price"),
    ("e.price > 10", "e.price >", "[SYNTAX] it ends too early", '"'),
    ("e.price > 10", "NEXT(e).price > 10", "[BAD_CONDITION] an arc reads its own event", "NEXT(e).price"),
    ("e.price > 10", "[symbol]", "[BAD_CONDITION] an arc has no equivalence: use partition_by", "[symbol]"),
    ("e.price > 10", "e.volume > 9223372036854775808", "[TYPE_MISMATCH] this number does not fit 64 bits", "9223"),
    ("{top: e.price}", "{tip: e.price}", "[BAD_VALUE] the register has no field 'tip'", "tip"),
    ("{n: n + 1}", "{n: n + 0.5}", "[TYPE_MISMATCH] the field 'n' is of type int, this is a double", "n + 0.5"),
    ("{type: int, init: 0}", "{type: tinyint, init: 200}", "[BAD_VALUE] init: 200 does not fit a tinyint", "200}"),
    ("{type: int, init: 0}", "{type: int, init: x}", "[BAD_VALUE] init: expected a value of type int, or null", "x}"),
    ("{type: int, init: 0}", "{type: int}", "[BAD_VALUE] 'init' is missing", "{type: int}"),
    ("{type: int, init: 0}", "{type: float, init: 0}", "[BAD_VALUE] register.n.type: Input should be", "float"),
    ("  n: {", "  first: {", "[BAD_VALUE] 'first' is a column of every results table of kind automaton", "first"),
    ("  n: {", "  e: {", "[BAD_VALUE] 'e' is a word of the language", "e"),
    ("partition_by: [symbol]", "partition_by: [cymbal]", "[UNKNOWN_ATTRIBUTE] the source has no attribute", "cymbal]"),
    ("partition_by: [symbol]", "partition_by: [n]", "[BAD_VALUE] 'n' is a partition column already", "n"),
    ("ignore: true", "ignore: true, set: {n: 1}", "[BAD_VALUE] an arc that ignores its event leaves", "set"),
    ("q1, to: q1", "q1, to: q2", "[BAD_VALUE] an arc that ignores its event stays in its state", "q2, when:"),
    ("ignore: true", "ignore: true, epsilon: true", "[BAD_VALUE] an arc is one of epsilon, ignore and at", "ignore"),
    ("ignore: true", "at: window_begin", "[BAD_VALUE] arcs.1.at: Input should be 'window_end'", "window_begin}"),
    ("ignore: true", "at: window_end", "[BAD_CONDITION] this arc consumes no event: there is no e.volume", "e.volume"),
    ("ignore: true", "valid_from: 2013-06-01, valid_to: 2013-05-01", "[BAD_VALUE] the arc's lifetime is empty", "2013"),
    ("ignore: true", "valid_from: June", "[BAD_VALUE] 'June' is not a time", "June"),
    ("ignore: true", "ignored: true", "[UNKNOWN_KEY] unknown key 'ignored'", "ignored"),
    ("minutes", "minutes\nslide: 1 day", "[UNKNOWN_KEY] 'slide' is a key of kind trends, not", "slide"),
]


@pytest.mark.parametrize(("old", "new", "error", "caret"), MISTAKES, ids=[new for _, new, _, _ in MISTAKES])
def test_mistake(tmp_path: Path, old: str, new: str, error: str, caret: str) -> None:
    """Its class and message, and what stands above the caret."""
    shown = messages_of(tmp_path, old, new)
    places = {}
    for one in shown:
        first, text, marks = one.splitlines()[:3]
        places[first.split(": ", 1)[1]] = text[marks.index("^") :][: marks.count("^")]
    (actual,) = [place for message, place in places.items() if message.startswith(error)]
    assert actual.startswith(caret)


def test_a_misspelt_key_of_an_arc_is_recognised(tmp_path: Path) -> None:
    (shown,) = messages_of(tmp_path, "ignore: true", "ignore: true, valid_form: 2013-06-01")
    assert "did you mean 'valid_from'?" in shown


def test_a_field_with_a_mistake_is_told_once(tmp_path: Path) -> None:
    """The arcs that use it are not."""
    assert len(messages_of(tmp_path, "{type: int, init: 0}", "{type: int}")) == 1


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "drops.yaml"
    path.write_text(GOOD.replace("e.price > 10", "e.prise > 10").replace("n + 1", "m + 1").replace("[q2]", "[q3]"))
    with pytest.raises(PatternErrors) as failure:
        compile_query(path, SCHEMA)
    assert [error.code for error in failure.value.errors] == [
        "BAD_VALUE",
        "UNKNOWN_ATTRIBUTE",
        "UNKNOWN_VARIABLE",
        "BAD_PATTERN",
    ]
    assert "did you mean 'price'?" in str(failure.value)


def automaton(*arcs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "automaton", "start": "a", "final": ["z"], "within": "1 day", "arcs": list(arcs), **more}


def test_an_epsilon_cycle_that_changes_the_register_is_refused() -> None:
    """One that leaves it alone ends by itself."""
    register = {"n": {"type": "int", "init": 0}}
    around = [
        {"from": "a", "to": "b"},
        {"from": "b", "to": "c", "epsilon": True},
        {"from": "c", "to": "b", "epsilon": True},
        {"from": "b", "to": "z"},
    ]
    rows = [{"id": f"e{i}", "type": "T", "time": i} for i in range(3)]
    actual = evaluate(automaton(*around, register=register), to_table(rows)).to_pylist()
    assert {(row["first"], row["last"]) for row in actual} == {("e0", "e1"), ("e1", "e2")}
    around[2]["set"] = {"n": "n + 1"}
    with pytest.raises(PatternErrors, match="cycle of epsilon arcs"):
        evaluate(automaton(*around, register=register), to_table(rows))


def test_an_arc_that_can_never_fire_is_a_warning() -> None:
    query = automaton({"from": "a", "to": "z"}, {"from": "b", "to": "c"}, {"from": "c", "to": "b"})
    with pytest.warns(PatternWarning) as caught:
        compile_query(query, SCHEMA)
    assert [str(one.message).split(":")[0] for one in caught] == [
        "arc 2 (b -> c) can never fire",
        "arc 3 (c -> b) can never fire",
    ]


def test_an_overflow_is_seen_and_named() -> None:
    """The arc and the event; nothing wraps."""
    query = automaton(
        {"from": "a", "to": "a", "set": {"n": "n * 2 + 1"}},
        {"from": "a", "to": "z", "when": "n < 0"},
        register={"n": {"type": "tinyint", "init": 1}},
    )
    rows = [{"id": f"e{i}", "type": "T", "time": i} for i in range(10)]
    assert evaluate(query, to_table(rows[:6])).num_rows == 0
    with pytest.raises(BadEventsError, match=r"overflows on arc 1 \(a -> a\) at event 'e6'"):
        evaluate(query, to_table(rows))


def test_events_without_an_order_are_refused() -> None:
    """Two of one partition with one time and one id; a sequence that tells them apart is enough."""
    row = {"id": "x", "type": "T", "time": 1}
    query = automaton({"from": "a", "to": "z"})
    with pytest.raises(BadEventsError, match="they have no order"):
        evaluate(query, to_table([row, row]))
    apart = to_table([row | {"turn": 2}, row | {"turn": 1}])
    assert evaluate(query, apart, sequence="turn").num_rows == 2


def test_an_event_without_an_id_is_refused() -> None:
    table = to_table([{"id": "x", "type": "T", "time": 1}]).set_column(0, "event_id", pa.array([None], pa.string()))
    with pytest.raises(BadEventsError, match="has a NULL"):
        evaluate(automaton({"from": "a", "to": "z"}), table)


def test_the_hash_follows_results_only() -> None:
    """Descriptions and columns that are not read do not count; every arc does."""
    query = automaton({"from": "a", "to": "z", "when": "e.price > 1"})
    plan = compile_query(query, SCHEMA)
    wider = EventSchema({**dict(SCHEMA.columns), "more": "string"})
    assert compile_query(query | {"description": "other"}, wider).hash == plan.hash
    changed = automaton({"from": "a", "to": "z", "when": "e.price > 1", "valid_to": "2013-01-01"})
    assert compile_query(changed, SCHEMA).hash != plan.hash


def test_explain_tells_arcs_in_words(tmp_path: Path) -> None:
    path = tmp_path / "drops.yaml"
    path.write_text(GOOD)
    text = explain(compile_query(path, SCHEMA))
    assert "-> q2: takes the event; if e.price < top AND n = 0 (asked of each register); n := n + 1" in text
    assert "q1:\n  -> q1: ignores the event; if e.volume < 5 (of the event: known before any run)" in text
    assert "rests     runs in q1 stay untouched" in text
