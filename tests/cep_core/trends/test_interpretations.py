"""What the team reads where language.md leaves room, each in its smallest example, over every engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.reference.trends import reference
from tests.support.engines import ENGINES, Engine, from_table, to_table
from trendlake.cep_core import evaluate

Count: TypeAlias = Callable[..., int]


def stream(text: str) -> list[dict[str, Any]]:
    """`A1 B2:x=3,g=u` as rows: type, time in seconds, attributes; ids in reading order."""
    rows: list[dict[str, Any]] = []
    for place, word in enumerate(text.split()):
        actual = re.fullmatch(r"([A-Z])(\d+)(?::(.*))?", word)
        assert actual, word
        cells = dict(cell.split("=") for cell in (actual[3] or "").split(",") if cell)
        row: dict[str, Any] = {"id": f"e{place}", "type": actual[1], "time": int(actual[2])}
        rows.append(row | {name: _cell(value) for name, value in cells.items()})
    return rows


def _cell(text: str) -> int | float | str | None:
    if text in ("NULL", "NaN"):
        return None if text == "NULL" else float("nan")
    return int(text) if re.fullmatch(r"-?\d+", text) else text


@pytest.fixture(params=ENGINES)
def rows(request: pytest.FixtureRequest) -> Callable[..., list[dict[str, Any]]]:
    """`rows(pattern, stream, **keys of the query)`: the engine's result rows."""

    def ask(pattern: str, events: str, **keys: Any) -> list[dict[str, Any]]:
        query = {"kind": "trends", "pattern": pattern, "return": {"trends": "COUNT(*)"}, "within": "60 seconds"}
        return ENGINES[request.param](query | keys, stream(events))

    return ask


@pytest.fixture
def count(rows: Callable[..., list[dict[str, Any]]]) -> Count:
    """`count(pattern, stream, ...)`: trends over all rows."""
    return lambda pattern, events, **keys: sum(row["trends"] for row in rows(pattern, events, **keys))


@pytest.mark.parametrize(
    ("pattern", "events", "trends"),
    [
        ("SEQ(A, B?, NOT C, D)", "A1 C2 D3", 0),  # B absent: between A and D
        ("SEQ(A, B?, NOT C, D)", "A1 C2 B3 D4", 1),  # A B D; A D has C in its gap
        ("SEQ(A?, NOT C, D)", "C1 D2", 0),  # nothing before it: as a leading NOT
        ("SEQ(A?, NOT C, D)", "C1 A2 D3", 1),  # A D
        ("SEQ(A, NOT C, D?)", "A1 C2", 0),  # nothing after it: as a trailing NOT
        ("SEQ(A, NOT C, D?)", "A1 D2 C3", 1),  # A D
        ("SEQ(A, B?, NOT C, B?, D)", "A1 C2 B3 D4", 1),  # A B D by its first derivation; A D has C in its gap
        ("SEQ(A, NOT B, NOT C, D)", "A1 C2 D3", 0),  # both stand in the gap
        ("(SEQ(A, NOT C, B))+", "A1 B2 C3 A4 B5", 3),  # C may stand between two repetitions
        ("SEQ(A, (SEQ(B, NOT C, D) OR SEQ(B, D)))", "A1 B2 C3 D4", 1),  # any derivation's NOTs
    ],
)
def test_not_stands_in_a_gap_between_events(count: Count, pattern: str, events: str, trends: int) -> None:
    """All NOTs a derivation passes between two events apply to that gap; any derivation will do."""
    assert count(pattern, events) == trends


@pytest.mark.parametrize(
    ("pattern", "events", "trends"),
    [
        ("SEQ(A, NOT C, B)", "A1 C1 B2", 1),  # not after A
        ("SEQ(A, NOT C, B)", "A1 C2 B2", 1),  # not before B
        ("SEQ(NOT C, A)", "C1 A1", 1),
        ("SEQ(A, NOT C)", "A1 C1", 1),
        ("SEQ(A, NOT SEQ(C, D), B)", "A1 C1 C2 D3 B4", 0),
        ("SEQ(A, NOT SEQ(C, D), B)", "A2 C1 D3 B4", 1),  # starts before the gap
        ("SEQ(A, NOT SEQ(C, D), B)", "A1 C2 D3 B3", 1),  # ends after it
    ],
)
def test_not_is_strict(count: Count, pattern: str, events: str, trends: int) -> None:
    """N's trend starts after the event before it and ends before the event after it."""
    assert count(pattern, events) == trends


def test_not_looks_no_further_than_the_window(count: Count) -> None:
    """C in another window does not rule A out."""
    assert count("SEQ(NOT C, A)", "C9 A11", within="10 seconds") == 1
    assert count("SEQ(A, NOT C)", "A9 C11", within="10 seconds") == 1


def test_not_obeys_where(count: Count) -> None:
    """Local and adjacent conditions and equivalence hold inside NOT, `select` does not."""
    pattern, events = "SEQ(A, NOT SEQ(C, D), B)", "A1:x=0,g=u C2:x=1,g=u D3:x=2,g=u B4:x=0,g=u"
    assert count(pattern, events) == 0
    assert count(pattern, events, where=["C.x > 1"]) == 1
    assert count(pattern, events, where=["C.x > NEXT(D).x"]) == 1
    assert count(pattern, events.replace("D3:x=2,g=u", "D3:x=2,g=v"), where=["[g]"]) == 1
    assert count(pattern, events.replace("D3", "E3:x=0,g=u D3"), select="skip_till_next_match") == 0


@pytest.mark.parametrize("key", [{"where": ["[g]"]}, {"group_by": ["g"]}])
def test_null_agrees_with_null(count: Count, key: dict[str, Any]) -> None:
    """As in SQL's PARTITION BY; a group_by attribute is an equivalence attribute of all events."""
    assert count("S+", "S1:g=NULL S2:g=u S3:g=NULL", **key) == 4  # three single ones, and the first with the last


def test_group_by_binds_the_events_of_not(count: Count) -> None:
    """C of another group does not rule A out."""
    assert count("SEQ(NOT C, A)", "C1:g=u A2:g=v", group_by=["g"]) == 1
    assert count("SEQ(NOT C, A)", "C1:g=v A2:g=v", group_by=["g"]) == 0


def test_scoped_equivalence_frees_the_others(count: Count) -> None:
    """`[S.g]` asks nothing of T's events, nor of those of NOT."""
    events = "S1:g=u C2:g=v T3:g=v S4:g=v T5:g=u"
    assert count("SEQ(S, NOT C, T)", events, where=["[S.g]"]) == 1
    assert count("SEQ(S, S, T)", events, where=["[S.g]"]) == 0


def test_and_counts_unordered_pairs_of_different_trends(count: Count) -> None:
    """Two trends of A+ make one pair, though each is on either side; pairs stay in a group."""
    assert count("A AND A", "A1 A2") == 1
    assert count("A+ AND A", "A1 A2") == 3
    assert count("A AND B", "A1:g=u B2:g=v B3:g=u", group_by=["g"]) == 1
    assert count("A AND A x", "A1") == 1  # other variables: another trend


def test_a_trend_of_both_is_one_that_both_select(count: Count) -> None:
    """B could have followed A in the second pattern alone, so (A, C) is a trend of the first only: 1 x 1 pairs. Of the
    6 trends of `(B OR A)+`, which all have their next event, those of B alone are two; `B+` has 3 of its own."""
    selected = {"select": "skip_till_next_match"}
    assert count("SEQ(A, C) AND SEQ(A, B?, C)", "A0 B1 C2", **selected) == 1
    assert count("(B OR A)+ AND B+", "B0 A1 B2", **selected) == 6 * 3 - 2 - 1


def test_between_is_two_conditions(count: Count) -> None:
    """Its first half is one of a single event, which an event without a successor must meet too."""
    for line in ("A.x BETWEEN 2 AND NEXT(A).x", "A.x >= 2 AND A.x <= NEXT(A).x"):
        assert count("A+", "A0:x=1 A1:x=2 A2:x=3", where=[line]) == 3


def test_next_match_compares_times_strictly(count: Count) -> None:
    """B of the same time as w is no event in between."""
    assert count("SEQ(A, B)", "A1 B2 B2 B3", select="skip_till_next_match") == 2
    assert count("SEQ(A, B)", "A1 A1 B2", select="skip_till_next_match") == 2


def test_next_match_goes_by_what_the_pattern_can_take(count: Count) -> None:
    """Neither an event of another type nor one that fails a condition is an event in between."""
    assert count("S{2}", "S1 S2 S3", select="skip_till_next_match") == 2
    assert count("SEQ(A, B, C)", "A1 C2 B3 C4", select="skip_till_next_match") == 1  # C may not follow A
    assert count("SEQ(A, B, C)", "A1 B2:x=0 B3:x=1 C4", where=["B.x > 0"], select="skip_till_next_match") == 1


@pytest.mark.parametrize(
    ("pattern", "events", "trends"),
    [
        ("SEQ(C, A{2}, B)", "C1 A2 A3 A4 B5", 1),  # after the second A only B can follow
        ("SEQ(C, A{2}, B)", "C1 A2 A3 A4 A5 B6 B7", 1),
        ("SEQ(C, A{2}, B)", "C1 A2 A3 C4 B5", 1),
        ("SEQ(C, A{2}, B)", "C1 B2 A3 A4 B5", 1),  # B may not follow C
        ("SEQ(C, A{2,}, B)", "C1 A2 A3 A4 B5", 1),  # the last of {2,} repeats: A4 is taken
        ("SEQ(C, A{1,2}, B)", "C1 A2 A3 A4 B5", 1),  # A2 A3 at both positions; A2 alone may not skip A3
        ("SEQ(C, A{1,2}, B)", "C1 A2 B3", 1),
        ("A{1,3}", "A1 A2 A3 A4", 4 + 3 + 2),
        ("SEQ(A, B, A, C)", "A1 C2 B3 A4 B5 C6", 1),  # C follows the second A only, B the first only
        ("SEQ(A{2}, A, B)", "A1 A2 A3 A4 B5", 2),  # A A A B twice: the third A is followed by B only
        ("SEQ(A{1,2}, A, B)", "A1 A2 A3 B4", 3),  # A1 A2 B4 too: A2 stands at the last A, which no A may follow
        ("SEQ(A{1,2}, A, B)", "A1 A2 A3 A4 B5", 2 + 3),  # three As or two in a row
        ("(SEQ(A+, B)){2}", "A1 B2 A3 B4 A5 B6", 2),
        ("SEQ((SEQ(A, B)){2}, C)", "A1 B2 A3 B4 A5 C6", 1),  # after the second B only C can follow
        ("SEQ(A, B) OR SEQ(A, C)", "A1 C2 B3", 2),  # each alternative has an A of its own
        ("SEQ(A, (B OR C))", "A1 C2 B3", 1),  # one A, which C may follow
        ("A OR A", "A1 A2", 2),
        ("SEQ(A, B+, C)", "A1 B2 D3 B4 D5 B6 C7", 1),  # docs/comparison.md: Flink leaves the loop early
        ("SEQ(A, B{1,2}, C)", "A1 B2 D3 B4 D5 B6 C7", 1),  # after the second B only C can follow
        ("SEQ(A?, A, B)", "A1 A2 B3", 3),  # A1 B3 too
        ("SEQ(A?, A, B)", "A1 A2 A3 B4", 3 + 2),
    ],
)
def test_next_match_goes_by_positions(count: Count, pattern: str, events: str, trends: int) -> None:
    """Positions that share a variable are separate; a trend counts if one of its derivations is allowed."""
    assert count(pattern, events, select="skip_till_next_match") == trends


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("SEQ(C, A{2}, B)", "SEQ(C, A x, A y, B)"),
        ("SEQ(C, A{1,2}, B)", "SEQ(C, A x, (A y)?, B)"),
        ("SEQ(C, A{2,3}, B)", "SEQ(C, A x, A y, (A z)?, B)"),
        ("SEQ(C, A{2,}, B)", "SEQ(C, A x, (A y)+, B)"),
        ("SEQ(C, (SEQ(A, B)){2}, D)", "SEQ(C, A x, B u, A y, B v, D)"),
        ("SEQ(C, (SEQ(A+, B)){1,2}, D)", "SEQ(C, (A x)+, B u, (SEQ((A y)+, B v))?, D)"),
    ],
)
@pytest.mark.parametrize("select", ["skip_till_any_match", "skip_till_next_match", "contiguous"])
def test_repetition_is_what_it_abbreviates(count: Count, short: str, long: str, select: str) -> None:
    """`P{n,m}` counts what its positions count under variables of their own (where no trend has two derivations)."""
    actual = [
        [
            count(pattern, " ".join(f"{kind}{time}" for time, kind in enumerate(kinds)), select=select)
            for kinds in ("CAAABD", "CAABABD", "CAABCABDABD", "CABABABD", "CABAABABBD", "CCAAABBD")
        ]
        for pattern in (short, long)
    ]
    assert actual[0] == actual[1]


def test_next_match_skips_events_of_another_partition(count: Count) -> None:
    """Also where equivalence is of some variables only: B2 is not of the trend (A1, B3)."""
    events = "A1:g=u B2:g=u B3:g=v"
    assert count("SEQ(A, B)", events, where=["[B.g]"], select="skip_till_next_match") == 2
    assert count("SEQ(A, B)", events, where=["[g]"], select="skip_till_next_match") == 1


def test_contiguity_is_of_the_total_order(count: Count) -> None:
    """Among equal times the id decides which event stands in between."""
    assert count("SEQ(A, B)", "A1 B2 B2", select="contiguous") == 1
    assert count("SEQ(A, B)", "A1 A1 B2", select="contiguous") == 1
    assert count("SEQ(A, B)", "A1 E2 B3", select="contiguous") == 0


def test_ties_break_on_the_sequence_column() -> None:
    """If the contract names one; its values, not the ids, say what stands between A and the second B."""
    query = {
        "kind": "trends",
        "pattern": "SEQ(A, B)",
        "return": {"trends": "COUNT(*)", "x": "MIN(B.x)"},
        "within": "60 seconds",
        "select": "contiguous",
    }
    events = stream("A1:seq=0,x=0 B2:seq=2,x=1 B2:seq=1,x=2")
    for sequence, nearest in ((None, 1), ("seq", 2)):
        (wanted,) = reference(query, events, sequence=sequence)
        (actual,) = from_table(evaluate(query, to_table(events), sequence=sequence))
        assert (wanted["trends"], wanted["x"]) == (actual["trends"], actual["x"]) == (1, nearest)


def test_contiguity_is_of_the_equivalence_partition(count: Count) -> None:
    """`group_by` makes no partition; the unscoped equivalence of `where` does."""
    events = "A1:g=u A2:g=v A3:g=u"
    assert count("A{2}", events, select="partition_contiguous", where=["[g]"]) == 1
    assert count("A{2}", events, select="partition_contiguous", group_by=["g"]) == 0
    assert count("A{2}", events, select="contiguous", where=["[g]"]) == 0


@pytest.mark.parametrize("null", ["NULL", "NaN"])
def test_nan_reads_as_null(rows: Callable[..., list[dict[str, Any]]], null: str) -> None:
    """A comparison with NULL is not true, nor is its negation; NULL is skipped in measures."""
    events = f"S1:x=1 S2:x={null} S3:x=3"
    assert rows("S", events, where=["NOT (S.x = 1)"])[0]["trends"] == 1
    actual = rows("S", events, **{"return": {"n": "COUNT(S)", "mean": "AVG(S.x)", "total": "SUM(S.x)"}})[0]
    assert (actual["n"], actual["mean"], actual["total"]) == (3, 2.0, 4.0)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_zero_has_no_sign_and_nan_no_group(engine: Engine) -> None:
    """-0.0 equals 0.0 in a group key; NaN is in the group of NULL."""
    events = stream("S1 S2 S3 S4")
    for row, value in zip(events, (0.0, -0.0, float("nan"), None), strict=True):
        row["y"] = value
    query = {"kind": "trends", "pattern": "S", "return": {"n": "COUNT(*)"}, "within": "60 seconds"}
    actual = engine(query | {"group_by": ["y"]}, events)
    assert sorted((row["y"] is None, row["y"], row["n"]) for row in actual) == [(False, 0.0, 2), (True, None, 2)]
    (pairs,) = engine(query | {"pattern": "S{2}", "where": ["[y]"]}, events)
    assert pairs["n"] == 2


def test_empty_windows_has_every_group_with_events(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """A group with events but no trend has COUNT 0 and nothing else; a window without events has no row."""
    asked = {"trends": "COUNT(*)", "total": "SUM(A.x)"}
    actual = rows(
        "SEQ(A, B)",
        "A1:x=1,g=u B2:x=1,g=u A3:x=1,g=v A25:x=1,g=v",
        group_by=["g"],
        empty_windows=True,
        within="10 seconds",
        **{"return": asked},
    )
    seen = sorted((row["window_start"] // 1_000_000, row["g"], row["trends"], row["total"]) for row in actual)
    assert seen == [(0, "u", 1, 1.0), (0, "v", 0, None), (20, "v", 0, None)]
