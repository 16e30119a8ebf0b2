"""A mistake in a pattern file is reported with its place, what was expected and, where one is close, a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendlake.cep_core import EventSchema, PatternErrors, PatternWarning, compile_query

SCHEMA = EventSchema(
    {"event_time": "timestamp", "event_type": "string", "event_id": "string", "price": "double", "sector": "string"},
    types=("Stock", "Halt"),
)

GOOD = """\
name: falling
source: trades
pattern: Stock S+
where:
  - "[sector]"
  - S.price > NEXT(S).price
return:
  trends: COUNT(*)
within: 10 minutes
"""


def messages_of(folder: Path, text: str) -> list[str]:
    """The errors of a file `falling.yaml` with this text, each as it is shown, without the folder."""
    file = folder / "falling.yaml"
    file.write_text(text)
    with pytest.raises(PatternErrors) as caught:
        compile_query(file, SCHEMA)
    return [str(error).replace(f"{folder}/", "") for error in caught.value.errors]


def test_the_good_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "falling.yaml").write_text(GOOD)
    assert compile_query(tmp_path / "falling.yaml", SCHEMA).group_by == ()


def test_a_place_a_caret_and_a_suggestion(tmp_path: Path) -> None:
    assert messages_of(tmp_path, GOOD.replace("NEXT(S).price", "NEXT(S).prise")) == [
        "falling.yaml:6:15: [UNKNOWN_ATTRIBUTE] the source has no attribute 'prise'\n"
        "      - S.price > NEXT(S).prise\n"
        "                  ^^^^^^^^^^^^^\n"
        "    did you mean 'price'?"
    ]


def test_inside_quotes_the_caret_still_points(tmp_path: Path) -> None:
    (shown,) = messages_of(tmp_path, GOOD.replace('"[sector]"', '"[price, sectr]"'))
    line, caret = shown.splitlines()[1:3]
    assert line[caret.index("^") :].startswith("sectr")


@pytest.mark.parametrize("quantifier", ["+", "*", "?", "{2}", "{2,}", "{1,3}"])
def test_a_reluctant_quantifier_is_refused(tmp_path: Path, quantifier: str) -> None:
    """`A+?` is SQL's reluctant `+`; it would otherwise read as an optional `A+`. In parentheses it does."""
    text = GOOD.replace("Stock S+", f"SEQ(Halt, Stock S{quantifier}?)").replace(
        "S.price > NEXT(S).price", "S.price > 0"
    )
    shown = text.splitlines()[2]
    assert messages_of(tmp_path, text) == [
        "falling.yaml:3:20: [SYNTAX] a reluctant quantifier: SQL has them, this language does not\n"
        f"    {shown}\n"
        f"    {' ' * 19}{'^' * len(f'Stock S{quantifier}?')}\n"
        f"    for a part that may be absent write (Stock S{quantifier})?"
    ]
    (tmp_path / "falling.yaml").write_text(text.replace(f"Stock S{quantifier}?", f"(Stock S{quantifier})?"))
    compile_query(tmp_path / "falling.yaml", SCHEMA)


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    """Those of the file's shape and those of what it says."""
    text = GOOD.replace("Stock S+", "SEQ(Stok S+, NOT Halt)+").replace("10 minutes", "10 minuts") + "slid: 5 minutes\n"
    codes = [error.split("[")[1].split("]")[0] for error in messages_of(tmp_path, text)]
    assert codes == ["BAD_VALUE", "UNKNOWN_KEY", "UNKNOWN_TYPE", "BAD_PATTERN"]


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("Stock S+", "Stock S*", "BAD_PATTERN", "empty sequence"),
        ("Stock S+", "Stock S{3,2}", "SYNTAX", "no repetition"),
        ("Stock S+", "SEQ(Stock S,", "SYNTAX", "ends too early"),
        ("Stock S+", "SEQ(Stock S, Halt S)", "BAD_PATTERN", "of type Stock already"),
        ("Stock S+", "NOT Stock S", "BAD_PATTERN", "only inside SEQ"),
        ("Stock S+", "SEQ(Stock S, (Stock S AND Halt))", "BAD_PATTERN", "outermost"),
        ("Stock S+", "SEQ(Stock S, NOT (Halt+), Stock T)", "BAD_PATTERN", "a type or a SEQ"),
        ("S.price > NEXT(S).price", "S.price > 'high'", "TYPE_MISMATCH", "double with a string"),
        ("S.price > NEXT(S).price", "T.price > 3", "UNKNOWN_VARIABLE", "no variable 'T'"),
        ("S.price > NEXT(S).price", "Stock.price > 3", "UNKNOWN_VARIABLE", "its variable is 'S'"),
        ("S.price > NEXT(S).price", "NEXT(S).price > 3", "BAD_CONDITION", "the event before it"),
        ("S.price > NEXT(S).price", "S.price +", "SYNTAX", "ends too early"),
        ("S.price > NEXT(S).price", "sqrt(S.price) > 3", "TYPE_MISMATCH", "no function 'sqrt'"),
        ("COUNT(*)", "AVG(S.sector)", "TYPE_MISMATCH", "does not take a string"),
        ("COUNT(*)", "COUNT(S.price)", "BAD_CONDITION", "COUNT takes *"),
        ("trends: COUNT(*)", "window_end: COUNT(*)", "BAD_VALUE", "every results table"),
        ("10 minutes", "0 minutes", "BAD_VALUE", "more than zero"),
        ("10 minutes", "10", "BAD_VALUE", "within"),
        ("name: falling", "name: rising", "BAD_VALUE", "expected 'falling'"),
        ("name: falling", "name: ../x", "BAD_VALUE", "letters, digits"),
        ("source: trades\n", "", "BAD_VALUE", "'source' is missing"),
        ("within: 10 minutes", "within: 10 minutes\nwithin: 1 day", "YAML_SYNTAX", "duplicate key"),
        ("pattern: Stock S+", "pattern: [Stock, S", "YAML_SYNTAX", ""),
        ("within: 10 minutes", "<<: {within: 10 minutes}", "YAML_SYNTAX", "a merge key (<<)"),
        ("source: trades", "source: !!python/object/apply:os.system [id]", "YAML_SYNTAX", "without tags"),
    ],
)
def test_each_mistake(tmp_path: Path, old: str, new: str, code: str, words: str) -> None:
    assert old in GOOD
    shown = "\n".join(messages_of(tmp_path, GOOD.replace(old, new)))
    assert f"[{code}]" in shown
    assert words in shown
    assert shown.startswith("falling.yaml:")


@pytest.mark.parametrize("text", ["(" * 200 + "A" + ")" * 200, "A" * 20_000, "A" + "{9}" * 8, "A{100000}"])
def test_huge_patterns_are_refused(text: str) -> None:
    """Nesting and repetition are bounded: an error, not a hang."""
    with pytest.raises(PatternErrors):
        compile_query({"pattern": text, "return": {"n": "COUNT(*)"}, "within": "1 day"}, SCHEMA)


def test_a_condition_without_effect_warns() -> None:
    query = {
        "pattern": "SEQ(Stock S, Halt H)",
        "where": ["H.price > NEXT(S).price"],
        "return": {"n": "COUNT(*)"},
        "within": "1 day",
    }
    with pytest.warns(PatternWarning, match="never makes S follow H"):
        compile_query(query, SCHEMA)


def test_the_hash_follows_results_only() -> None:
    query = {"pattern": "Stock S+", "return": {"n": "COUNT(*)"}, "within": "1 day"}
    plan = compile_query(query, SCHEMA)
    assert (
        compile_query(query | {"description": "words", "owner": "me", "schedule": "@daily"}, SCHEMA).hash == plan.hash
    )
    changed = [
        {"pattern": "Stock S{2,}"},
        {"where": ["S.price > 1"]},
        {"within": "2 days"},
        {"slide": "1 hour"},
        {"group_by": ["sector"]},
        {"select": "contiguous"},
        {"return": {"m": "COUNT(*)"}},
    ]
    hashes = {compile_query(query | change, SCHEMA).hash for change in changed}
    assert len(hashes | {plan.hash}) == len(changed) + 1


def test_a_kind_that_is_misspelt_is_told_with_the_rest(tmp_path: Path) -> None:
    """The file is held against the kind it may have meant."""
    shown = messages_of(tmp_path, GOOD.replace("source: trades", "kind: trend\nsource: trades") + "slid: 1 day\n")
    assert [error.splitlines()[0] for error in shown] == [
        "falling.yaml:2:7: [BAD_VALUE] unknown kind 'trend'; "
        "supported kinds: algebra, automaton, match_recognize, matches, trends, xml_join",
        "falling.yaml:11:1: [UNKNOWN_KEY] unknown key 'slid'",
    ]
    assert "did you mean 'trends'?" in shown[0]


def test_a_key_of_another_kind_is_named_as_such(tmp_path: Path) -> None:
    shown = messages_of(tmp_path, GOOD.replace("source: trades", "kind: matches\nsource: trades") + "slide: 1 minute\n")
    assert shown[0].startswith("falling.yaml:11:1: [UNKNOWN_KEY] 'slide' is a key of kind trends, not of kind matches")


def test_a_list_is_asked_for_in_words(tmp_path: Path) -> None:
    text = GOOD.replace('where:\n  - "[sector]"\n  - S.price > NEXT(S).price\n', "where: S.price > 3\n")
    assert "[BAD_VALUE] where: expected a list, found 'S.price > 3'" in messages_of(tmp_path, text)[0]


def test_a_name_that_no_table_can_have(tmp_path: Path) -> None:
    """One mistake, with a way out."""
    file = tmp_path / "falling-prices.yaml"
    file.write_text(GOOD.replace("name: falling", "name: falling-prices"))
    with pytest.raises(PatternErrors) as caught:
        compile_query(file, SCHEMA)
    (error,) = caught.value.errors
    assert error.hint == "write name: falling_prices, and call the file falling_prices.yaml"


def test_mistakes_that_follow_from_another_are_not_told(tmp_path: Path) -> None:
    """A part that is refused has its variables all the same."""
    text = GOOD.replace("pattern: Stock S+", "kind: matches\npattern: SEQ(Halt h, NOT(Stock S{3}))")
    text = text.replace("S.price > NEXT(S).price", "S.price > 3").replace("trends: COUNT(*)", "sum: SUM(S.price)")
    (error,) = messages_of(tmp_path, text)
    assert "NOT takes one type here" in error


def test_a_variable_where_a_column_belongs(tmp_path: Path) -> None:
    (error,) = messages_of(tmp_path, GOOD.replace("S.price > NEXT(S).price", "abs(S) > 3"))
    assert "'S' is a variable: a condition compares its columns" in error
    assert "write S.COLUMN" in error
