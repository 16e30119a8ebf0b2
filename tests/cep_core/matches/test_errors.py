"""A mistake in a pattern of kind matches is reported with its place, what was expected and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendlake.cep_core import EventSchema, PatternErrors, PatternWarning, compile_query, explain

SCHEMA = EventSchema(
    {
        "event_time": "timestamp",
        "event_type": "string",
        "event_id": "string",
        "price": "double",
        "volume": "bigint",
        "symbol": "string",
    },
    types=("Stock", "Halt"),
)

GOOD = """\
name: drop
kind: matches
source: trades
pattern: SEQ(Stock a+, NOT Halt h, Stock b)
where:
  - "[symbol]"
  - a[i].price > avg(a[..i-1].price)
  - b.volume < 0.8 * a[a.LEN].volume
return:
  steps: COUNT(a)
  first_price: a[1].price
within: 1 hour
"""


def messages_of(folder: Path, text: str) -> list[str]:
    """The errors of a file `drop.yaml` with this text, each as it is shown, without the folder."""
    file = folder / "drop.yaml"
    file.write_text(text)
    with pytest.raises(PatternErrors) as caught:
        compile_query(file, SCHEMA)
    return [str(error).replace(f"{folder}/", "") for error in caught.value.errors]


def test_the_good_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "drop.yaml").write_text(GOOD)
    plan = compile_query(tmp_path / "drop.yaml", SCHEMA)
    assert plan.result_schema.names == ["match_id", "start", "end", "a", "b", "steps", "first_price"]
    assert (plan.shard_key, plan.key, plan.event_types) == (("symbol",), ("match_id",), ("Stock", "Halt"))


def test_a_place_a_caret_and_a_suggestion(tmp_path: Path) -> None:
    assert messages_of(tmp_path, GOOD.replace("avg(a[..i-1].price)", "avg(a[..i-1].prise)")) == [
        "drop.yaml:7:18: [UNKNOWN_ATTRIBUTE] the source has no attribute 'prise'\n"
        "      - a[i].price > avg(a[..i-1].prise)\n"
        "                     ^^^^^^^^^^^^^^^^^^^\n"
        "    did you mean 'price'?"
    ]


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    """Those of the file's shape and those of what it says."""
    text = GOOD.replace("Halt h", "Hal h").replace("COUNT(a)", "a.price").replace("b.volume", "c.volume")
    codes = [error.split("[")[1].split("]")[0] for error in messages_of(tmp_path, text + "outputs: all\n")]
    assert codes == ["UNKNOWN_KEY", "UNKNOWN_TYPE", "UNKNOWN_VARIABLE", "BAD_CONDITION"]


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("Stock a+", "Stock a+?", "SYNTAX", "reluctant quantifier"),
        ("Stock a+", "Stock a{3,2}", "SYNTAX", "allows no repetition"),
        ("Stock a+", "Stock a{600}, Stock c{600}", "BAD_PATTERN", "more than 1,000 positions"),
        ("Stock a+", "(Stock a+ OR SEQ(NOT Halt g, Stock c))", "BAD_PATTERN", "only in the outermost SEQ"),
        ("Stock a+", "(Stock a+ OR NOT Halt g)", "BAD_PATTERN", "NOT stands inside SEQ"),
        ("Stock a+", "SEQ(Stock a+, SEQ(NOT Halt g))", "BAD_PATTERN", "a part that is not a NOT"),
        (
            "SEQ(Stock a+, NOT Halt h, Stock b)",
            "SEQ(Stock a*, Stock b?)",
            "BAD_PATTERN",
            "can match the empty sequence",
        ),
        ("Stock a+, NOT Halt h", "Stock a*, NOT Halt h within 5 seconds", "BAD_PATTERN", "there may be none"),
        ("Stock b", "Stock b?, NOT Halt g within 5 seconds", "NOT_SUPPORTED", "NOT h and NOT g may both stand last"),
        ("SEQ(Stock a+, NOT Halt h, Stock b)", "Stock a AND Stock b", "BAD_PATTERN", "AND is of kind trends"),
        ("NOT Halt h", "NOT SEQ(Halt h, Halt x)", "BAD_PATTERN", "NOT takes one type"),
        ("SEQ(Stock a+, NOT Halt h, Stock b)", "NOT Halt a", "BAD_PATTERN", "NOT stands inside SEQ"),
        ("Stock b", "Stock a", "BAD_PATTERN", "stands for another part already"),
        ("Stock b", "Stock start", "BAD_PATTERN", "column of every results table"),
        ("a[i].price >", "b[i].price >", "BAD_CONDITION", "'b' is one event"),
        ("a[i].price >", "h[1].price >", "BAD_CONDITION", "'h' is under NOT"),
        ("a[i].price >", "a.price >", "BAD_CONDITION", "write a[i]"),
        ("a[i].price >", "NEXT(a).price >", "BAD_CONDITION", "NEXT is of kind trends"),
        ("a[i].price >", "price >", "UNKNOWN_VARIABLE", "needs a variable"),
        ("a[i].price >", "a[2].price >", "SYNTAX", "indices are"),
        ("a[a.LEN]", "a[b.LEN]", "SYNTAX", "a[a.LEN]"),
        ("avg(", "avg(a.price) + avg(", "TYPE_MISMATCH", "AVG is an aggregate: it goes into return"),
        ("b.volume < 0.8", "COUNT(a) = 3 AND b.volume < 0.8", "TYPE_MISMATCH", 'having: ["n >= 4"]'),
        ("avg(a[..i-1].price)", "avg(a[..i-1].symbol)", "TYPE_MISMATCH", "AVG does not take a string"),
        ("avg(a[..i-1].price)", "median(a[..i-1].price)", "SYNTAX", "running aggregates are"),
        ("b.volume <", "b.symbol <", "TYPE_MISMATCH", "cannot compare a string"),
        ("COUNT(a)", "COUNT(a.price)", "BAD_CONDITION", "write COUNT(a)"),
        ("COUNT(a)", "COUNT(h)", "BAD_CONDITION", "is under NOT"),
        ("COUNT(a)", "COUNT(*)", "SYNTAX", "not expected"),
        ("COUNT(a)", "SUM(a.symbol)", "TYPE_MISMATCH", "SUM does not take a string"),
        ("COUNT(a)", "a[i].price", "BAD_CONDITION", "several events of a"),
        ("COUNT(a)", "seconds(b.price)", "TYPE_MISMATCH", "seconds takes a duration"),
        ("steps: COUNT(a)", "a: COUNT(a)", "BAD_CONDITION", "column of the variable 'a'"),
        ("steps: COUNT(a)", "match_id: COUNT(a)", "BAD_VALUE", "every results table"),
        ("within: 1 hour", "within: 1 hour\nselect: skip", "BAD_VALUE", "select"),
        ("within: 1 hour", "within: 1 hour\ngroup_by: [symbol]", "UNKNOWN_KEY", "'group_by' is a key of kind trends"),
        ("within: 1 hour", "within: 1 hour\noutput: compressed", "BAD_CONDITION", "leave out return"),
        ("within: 1 hour", "within: 1 hour\nlimit_per_partition: 0", "BAD_VALUE", "limit_per_partition"),
    ],
)
def test_each_mistake(tmp_path: Path, old: str, new: str, code: str, words: str) -> None:
    assert old in GOOD
    shown = "\n".join(messages_of(tmp_path, GOOD.replace(old, new, 1)))
    assert f"[{code}]" in shown
    assert words in shown
    assert shown.startswith("drop.yaml:")


@pytest.mark.parametrize(
    ("pattern", "where", "words"),
    [
        ("SEQ(NOT C c, A a+, NOT D d)", [], "each stretch of events of a is a match of its own"),
        ("SEQ(A a, NOT C c)", ["c.event_time < a.event_time + 2 days"], "write NOT C c within 2 days"),
        ("SEQ(A a, NOT C c)", ["c.event_time - a.event_time <= 2 days"], "write NOT C c within 2 days"),
        ("SEQ(A a, NOT C c)", ["a.event_time + 2 days > c.event_time"], "NOT c looks no further than within, 1 day"),
        ("SEQ(NOT C c, A a)", ["a.event_time - c.event_time < 2 days"], "make within longer"),
    ],
)
def test_legal_and_rarely_meant(pattern: str, where: list[str], words: str) -> None:
    query = {"kind": "matches", "pattern": pattern, "where": where, "within": "1 day"}
    schema = EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string"})
    with pytest.warns(PatternWarning, match=words):
        plan = compile_query(query, schema)
    assert words in explain(plan)
    nearer = [text.replace("2 days", "1 day") for text in where]
    if nearer:  # as far as it looks anyway
        compile_query({**query, "where": nearer}, schema)


def test_kind_trends_has_no_index() -> None:
    query = {"pattern": "Stock S+", "where": ["S[i].price > 1"], "return": {"n": "COUNT(*)"}, "within": "1 day"}
    with pytest.raises(PatternErrors, match="an index is of kind matches"):
        compile_query(query, SCHEMA)


def test_explain_says_when_each_condition_is_looked_at_and_what_a_run_remembers(tmp_path: Path) -> None:
    (tmp_path / "drop.yaml").write_text(GOOD)
    plan = compile_query(tmp_path / "drop.yaml", SCHEMA)
    assert explain(plan).splitlines() == [
        f"plan {plan.hash}, skip_till_next_match: a run ignores what it cannot take (at a Kleene part) or begin the "
        "next part with (elsewhere)",
        "within    1 hour from the first to the last event of a match",
        "reads     event_id, event_time, event_type, symbol, price, volume",
        "events    Stock, Halt",
        "partition symbol",
        "shards    by symbol and time",
        "part 1    Stock a+",
        "  each event after the first: a[i].price > avg(a[..i-1].price)",
        "  remembers a[a.LEN].volume, avg(a[..].price)",
        "part 2    Stock b",
        "  the event: b.volume < 0.8 * a[a.LEN].volume",
        "NOT Halt h between a and b; known beforehand",
        "output    every match",
        "steps     compiled, a register of 3 fields; in Python from a number beyond 64 bits",
        "cost      O(runs) an event: a run for each state and distinct register; O(length) a match to write it",
    ]


def test_explain_says_what_is_not_compiled() -> None:
    query = {"kind": "matches", "pattern": "SEQ(NOT Halt h, Stock a+, Stock b)", "within": "1 day"}
    text = explain(compile_query(query | {"where": ["b.price > a.price", "h.price > a[1].price"]}, SCHEMA))
    assert "  remembers the greatest value of a in [b.price > a.price]" in text
    assert "NOT Halt h before a: h.price > a[1].price; checked on each match" in text
    text = explain(compile_query(query | {"where": ["b.price != a.price"]}, SCHEMA))
    assert "steps     in Python: a register holds the distinct values that a condition asks about" in text


def test_a_compressed_row_takes_a_not_by_place_only() -> None:
    """Whether another NOT rules out depends on the path."""
    query = {"kind": "matches", "pattern": "SEQ(Stock a+, NOT Halt h, Stock b)", "within": "1 day"}
    query |= {"output": "compressed", "where": ["h.price > 1"]}
    compile_query(query, SCHEMA)
    with pytest.raises(PatternErrors, match="more than its place says what NOT h rules out"):
        compile_query(query | {"where": ["h.price > a[1].price"]}, SCHEMA)


def test_the_hash_follows_results_only() -> None:
    query = {"kind": "matches", "pattern": "SEQ(Stock a+, Stock b)", "within": "1 day"}
    plan = compile_query(query, SCHEMA)
    assert (
        compile_query(query | {"description": "words", "owner": "me", "schedule": "@daily"}, SCHEMA).hash == plan.hash
    )
    changed = [
        {"pattern": "SEQ(Stock a, Stock b)"},
        {"where": ["a[1].price > 1"]},
        {"where": ["a[i].price > 1"]},
        {"within": "2 days"},
        {"select": "contiguous"},
        {"output": "non_overlap"},
        {"limit_per_partition": 9},
        {"return": {"m": "COUNT(a)"}},
    ]
    hashes = {compile_query(query | change, SCHEMA).hash for change in changed}
    assert len(hashes | {plan.hash}) == len(changed) + 1


def test_ids_that_no_match_can_list(tmp_path: Path) -> None:
    file = tmp_path / "drop.yaml"
    file.write_text(GOOD)
    columns = dict(SCHEMA.columns) | {"event_id": "binary"}
    with pytest.raises(PatternErrors, match="'event_id' is neither text nor a number"):
        compile_query(file, EventSchema(columns, types=SCHEMA.types))
