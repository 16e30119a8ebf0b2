"""What `expect` in a pattern file means: one group's windows, each beside those before it; and mistakes in it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.cep_core.trends.test_errors import GOOD, SCHEMA, messages_of
from trendlake.cep_core import PatternErrors, compile_query, load_pattern
from trendlake.cep_core.patterns.expectations import ExpectationModel
from trendlake.pipelines.history_checks.evaluate import ZERO, Judged, Number, Row, judge, judged_of
from trendlake.pipelines.history_checks.read import OUTCOMES, judging, number

AGES = Judged(((-1_000, 1_000),))


def expected(**said: Any) -> ExpectationModel:
    return ExpectationModel(**({"measure": "trends", "of_last": "3 windows", "between": [0.5, 2]} | said))


def outcomes(
    one: ExpectationModel, values: dict[int, Any], judged: Judged = AGES, missing: Number | None = ZERO
) -> dict[int, tuple[str, str, str]]:
    """By window what came of it, the value and the usual one; `values` by window, "10^50" beyond all columns."""
    rows = [Row(window, _number(value)) for window, value in sorted(values.items())]
    return {
        outcome.window: (outcome.word, str(outcome.value), str(outcome.usual))
        for outcome in judge(one, rows, judged, missing)
    }


def _number(value: Any) -> Number | None:
    return number(None, float(value[3:])) if isinstance(value, str) else number(value, None)


def test_beside_the_median_of_the_windows_before() -> None:
    """20 beside 10, 12 and 14 is 1.67 times the median; 25 is more than twice, 5 less than half."""
    before = {1: 10, 2: 14, 3: 12}
    for value, word in ((20, "kept"), (24, "kept"), (25, "broken"), (6, "kept"), (5, "broken")):
        assert outcomes(expected(), before | {4: value})[4] == (word, str(value), "12")
    assert outcomes(expected(between=[0.5, None]), before | {4: 10**6})[4][0] == "kept"
    assert outcomes(expected(between=[None, 2]), before | {4: 1})[4][0] == "kept"


def test_between_two_values_the_median_is_their_mean() -> None:
    assert outcomes(expected(of_last="2 windows"), {1: 10, 2: 13, 3: 11})[3] == ("kept", "11", "11.5")


def test_a_window_without_a_row_is_a_count_of_zero() -> None:
    """It breaks a lower bound, counts in the median of those that follow, and is looked at while it is remembered."""
    outcome = outcomes(expected(), {1: 10, 2: 10, 3: 10, 6: 10})
    assert outcome[4] == ("broken", "0", "10")
    assert outcome[5] == ("broken", "0", "10")
    assert outcome[6] == ("unjudged", "10", "0")  # 10, nothing, nothing: no number is a multiple of nothing
    assert outcome[9] == ("unjudged", "0", "0")
    assert 10 not in outcome


def test_a_group_that_was_not_seen_before_is_not_judged() -> None:
    assert outcomes(expected(), {4: 99})[4][0] == "unjudged"


def test_a_measure_that_is_no_count_has_no_value_where_there_is_no_row() -> None:
    """The median is of the values there are; where there is none, and where the value is none, nothing is judged."""
    outcome = outcomes(expected(), {1: 4.0, 3: 6.0, 4: 11.0, 5: float("nan")}, missing=None)
    assert outcome[4] == ("broken", "11", "5")
    assert outcome[2] == ("unjudged", "None", "4")
    assert outcome[5][:2] == ("unjudged", "None")
    assert outcome[6] == ("unjudged", "None", "8.5")  # what is not a number is left out of the median


def test_below_zero_the_ratio_counts() -> None:
    before = {1: -10.0, 2: -10.0, 3: -10.0}
    for value, word in ((-15.0, "kept"), (-21.0, "broken"), (-4.0, "broken"), (10.0, "broken")):
        assert outcomes(expected(), before | {4: value}, missing=None)[4][0] == word


def test_large_counts_are_compared_exactly() -> None:
    """38 digits, of which the last one decides."""
    before = {window: Decimal(5 * 10**36 + 1) for window in (1, 2, 3)}
    assert outcomes(expected(), before | {4: Decimal(10**37 + 2)})[4][0] == "kept"
    assert outcomes(expected(), before | {4: Decimal(10**37 + 3)})[4][0] == "broken"


def test_counts_beyond_every_column_are_compared_by_their_logarithms() -> None:
    before = {1: "10^1000", 2: "10^1000", 3: "10^1000"}
    assert outcomes(expected(), before | {4: "10^1000.3"})[4] == ("kept", "10^1000.3", "10^1000")
    assert outcomes(expected(), before | {4: "10^1000.31"})[4][0] == "broken"
    assert outcomes(expected(), before | {4: 0})[4][0] == "broken"
    assert outcomes(expected(), before | {4: Decimal(10**37)})[4] == ("broken", str(10**37), "10^1000")
    assert outcomes(expected(), {1: 3, 2: 4, 3: 5, 4: "10^40"})[4] == ("broken", "10^40", "4")
    mixed = outcomes(expected(of_last="2 windows"), {1: 0, 2: "10^40", 3: "10^39.7"})
    assert mixed[3] == ("kept", "10^39.7", "10^39.699")


def test_bounds_are_what_is_written() -> None:
    """3 is 0.1 times 30, though no double is a tenth."""
    assert expected(between=[0.1, 2]).between == (Fraction(1, 10), Fraction(2))
    assert outcomes(expected(between=[0.1, 2]), {1: 30, 2: 30, 3: 30, 4: 3})[4][0] == "kept"


def test_no_group_vanishes() -> None:
    """Told of once, where a group was there in each of the windows before; whoever comes and goes is not judged."""
    one = ExpectationModel(groups="none_vanish", of_last="2 windows")
    words = {window: outcome[0] for window, outcome in outcomes(one, {1: 1, 2: 1, 3: 1, 6: 1, 7: 1}).items()}
    assert words == {3: "kept", 4: "broken", 8: "broken"}
    assert outcomes(one, {1: 1, 3: 1, 5: 1, 7: 1}) == {}


def test_judged_are_windows_of_which_all_before_are_known() -> None:
    assert judged_of([(10, 20)], [(0, 20)], 3).stretches == ((10, 20),)
    assert judged_of([(10, 20)], [(8, 20)], 3).stretches == ((11, 20),)
    assert judged_of([(10, 20)], [(10, 20)], 30).stretches == ()
    assert judged_of([(1, 1), (4, 9)], [(-5, 1), (4, 12)], 3).stretches == ((1, 1), (7, 9))
    some = judged_of([(1, 1), (4, 9)], [(-5, 1), (4, 12)], 3)
    assert [window for window in range(-9, 20) if window in some] == [1, 7, 8, 9]
    assert list(some.between(1, 8)) == [1, 7, 8]
    assert list(some.between(2, 6)) == []
    assert len(some) == 4


def test_windows_that_are_not_judged_are_history() -> None:
    outcome = outcomes(expected(), {1: 10, 2: 10, 3: 10, 4: 10}, Judged(((4, 5),)))
    assert outcome == {4: ("kept", "10", "10"), 5: ("broken", "0", "10")}


def test_rows_out_of_order_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="window 1 after 2"):
        list(judge(expected(), [Row(2, ZERO), Row(1, ZERO)], AGES, ZERO))


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_a_worker_reads_a_stream(rows: int) -> None:
    """However a partition comes in batches, its groups are whole: what breaks it, and how many others there are."""
    given = [(who, window, 10) for who in (None, "a", "b") for window in range(1, 6) if (who, window) != ("a", 5)]
    cells = [{"group": [who], "window": window, "value": n, "log10": None} for who, window, n in given]
    schema = pa.schema(
        [("group", pa.list_(pa.string())), ("window", pa.int64()), ("value", pa.int64()), ("log10", pa.float64())]
    )
    batches = pa.Table.from_pylist(cells, schema=schema).to_batches(max_chunksize=rows)
    batches_judged = list(judging(expected(), Judged(((4, 5),)), ZERO)(iter(batches)))
    outcome = pa.Table.from_batches(batches_judged, schema=OUTCOMES).to_pylist()
    empty = {"kept": None, "unjudged": None}
    assert outcome == [
        {"group": ["a"], "window": 5, "value": "0", "usual": "10", **empty},
        {"group": None, "window": None, "value": None, "usual": None, "kept": 5, "unjudged": 0},
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "{measure: trend, between: [1, 2], of_last: 7 windows}",
            "no measure is called 'trend'|did you mean 'trends'?",
        ),
        ("{measure: trends, of_last: 7 windows}", "'between' is missing"),
        ("{measure: trends, between: [2, 1], of_last: 7 windows}", "the first number is larger"),
        ("{measure: trends, between: [null, null], of_last: 7 windows}", "a number at one side at least"),
        ("{measure: trends, between: [-1, 2], of_last: 7 windows}", "from 0 to a billion"),
        ("{measure: trends, between: [.nan, 2], of_last: 7 windows}", "from 0 to a billion"),
        ("{measure: trends, between: [true, 2], of_last: 7 windows}", "from 0 to a billion"),
        ("{measure: trends, between: 2, of_last: 7 windows}", "expected two numbers such as [0.5, 2]"),
        ("{measure: trends, between: [1, 2], of_last: 7}", "expected a number of windows such as 7 windows"),
        ("{measure: trends, between: [1, 2], of_last: 0 windows}", "expected 1 to 1,000 windows"),
        ("{measure: trends, between: [1, 2]}", "'of_last' is missing"),
        ("{of_last: 7 windows}", "one of the two"),
        ("{measure: rows, groups: none_vanish, between: [1, 2], of_last: 7 windows}", "one of the two"),
        ("{groups: none_vanish, of_last: 7 windows}", "no groups that could vanish|the measure 'rows'"),
        ("{groups: vanish, of_last: 7 windows}", "'none_vanish'"),
        ("{measure: trends, betwen: [1, 2], of_last: 7 windows}", "unknown key 'betwen'|did you mean 'between'?"),
        ("{measure: trends, between: [1, 2], of_last: 7 windows, on_break: stop}", "'warn' or 'fail'"),
        ("{measure: first, between: [1, 2], of_last: 7 windows}", "'first' is a string, not a number"),
        ("7 windows", "expect.0"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, line: str, words: str) -> None:
    """Each in its line of the file, with what was expected."""
    text = GOOD.replace("  trends: COUNT(*)", "  trends: COUNT(*)\n  first: MIN(S.sector)") + f"expect:\n  - {line}\n"
    (error,) = messages_of(tmp_path, text)
    assert error.startswith("falling.yaml:12:")
    for word in words.split("|"):
        assert word in error


def test_the_same_twice_is_a_mistake(tmp_path: Path) -> None:
    line = "  - {measure: rows, between: [1, 2], of_last: 7 windows}\n"
    assert "this is expected already" in messages_of(tmp_path, f"{GOOD}expect:\n{line}{line}")[0]


@pytest.mark.parametrize(
    ("kind", "more", "mistake"),
    [
        ("matches", "select: contiguous", "no groups that could vanish"),
        ("automaton", "start: a\nfinal: [b]\narcs: [{from: a, to: b}]\npartition_by: [sector]", None),
        ("automaton", "start: a\nfinal: [b]\narcs: [{from: a, to: b}]", "no groups that could vanish"),
    ],
)
def test_groups_of_other_kinds(tmp_path: Path, kind: str, more: str, mistake: str | None) -> None:
    """The partitions of an automaton are groups; matches do not show theirs."""
    given = "pattern: SEQ(Stock a, Stock b)\n" if kind == "matches" else ""
    text = f"name: falling\nkind: {kind}\nsource: trades\n{given}within: 1 day\n{more}\nexpect:\n"
    text += (
        "  - {measure: rows, between: [0.5, 2], of_last: 7 windows}\n  - {groups: none_vanish, of_last: 7 windows}\n"
    )
    if mistake:
        assert mistake in "".join(messages_of(tmp_path, text))
    else:
        (tmp_path / "falling.yaml").write_text(text)
        assert [one.name for one in load_pattern(tmp_path / "falling.yaml").expect] == [
            "rows_between_0.5_and_2_of_last_7",
            "none_vanish_of_last_7",
        ]


def test_what_is_expected_is_no_part_of_the_plan(tmp_path: Path) -> None:
    """So nothing that is published becomes stale by it."""
    hashes = set()
    for more in ("", "expect: [{measure: trends, between: [0.5, 2], of_last: 7 windows}]\n"):
        (tmp_path / "falling.yaml").write_text(GOOD + more)
        hashes.add(compile_query(tmp_path / "falling.yaml", SCHEMA).hash)
    assert len(hashes) == 1


def test_a_measure_must_be_a_number_in_a_query_too() -> None:
    query = {
        "pattern": "Stock S+",
        "return": {"last": "MAX(S.event_time)"},
        "within": "1 day",
        "expect": [{"measure": "last", "between": [1, 2], "of_last": "1 window"}],
    }
    with pytest.raises(PatternErrors, match="not a number"):
        compile_query(query, SCHEMA)
