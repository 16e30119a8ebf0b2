"""Operators of kind matches: laws between patterns, plans of the old form, limits, and the plan in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.matches import any_questions, engine, streams
from tests.random.profile import examples
from trendlake.cep_core import EventSchema, PatternErrors, PatternWarning, compile_query, draw, explain

SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "bigint", "g": "string"}
)
SELECTIONS = st.sampled_from(("skip_till_any_match", "skip_till_next_match", "contiguous", "partition_contiguous"))
LAWS = (
    ("SEQ(A a, B b{1,9}, C c)", "SEQ(A a, B b+, C c)"),
    ("SEQ(A a, B b{2,9}, C c)", "SEQ(A a, B b{2,}, C c)"),
    ("SEQ(A a, B b{,9})", "SEQ(A a, B b*)"),
    ("SEQ(A a, (B b+)?, C c)", "SEQ(A a, B b*, C c)"),
    ("SEQ(A a, (B b OR C c)+)", "SEQ(A a, (B b OR C c){1,9})"),
    ("(SEQ(A a, B b))+", "(SEQ(A a, B b)){1,9}"),
)
"""Pairs of patterns with the same matches of nine events at most."""
SPELLED_OUT = (
    ("SEQ(A a{2}, B b)", "SEQ(A a1, A a2, B b)"),
    ("SEQ((SEQ(A a, B b)){2}, C c)", "SEQ(A a1, B b1, A a2, B b2, C c)"),
)


def plan_of(pattern: str, **more: Any) -> Any:
    return compile_query({"kind": "matches", "pattern": pattern, "within": "1 day", **more}, SCHEMA)


def matches_of(query: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], digits: bool = False) -> list[Any]:
    """Of each match its events by variable; without the `digits` of the variables' names."""
    matches = []
    for row in engine(query, list(rows)):
        events: dict[str, list[str]] = {}
        for name, ids in row.items():
            if isinstance(ids, list):
                events.setdefault(re.sub(r"\d", "", name) if digits else name, []).extend(ids)
        matches.append(sorted((name, ids) for name, ids in events.items()))
    return sorted(matches)


@examples(60)
@given(streams("ABC", 9), SELECTIONS, st.sampled_from(LAWS), st.sampled_from(("all", "non_overlap")))
def test_equal_patterns(rows: Any, select: str, pair: tuple[str, str], output: str) -> None:
    asked = {"kind": "matches", "select": select, "within": "1 hour", "output": output, "where": ["b.x > 0"]}
    one, other = (matches_of({**asked, "pattern": pattern}, rows) for pattern in pair)
    assert one == other


@examples(40)
@given(streams("ABC", 9), SELECTIONS, st.sampled_from(SPELLED_OUT))
def test_counted_is_spelled_out(rows: Any, select: str, pair: tuple[str, str]) -> None:
    asked = {"kind": "matches", "select": select, "within": "1 hour"}
    one, other = (matches_of({**asked, "pattern": pattern}, rows, digits=True) for pattern in pair)
    assert one == other


@examples(40)
@given(any_questions(negation=False, output=False))
def test_the_order_of_rows_does_not_matter(question: Any) -> None:
    query, rows = question
    try:
        answers = [engine(query, order) for order in (rows, rows[::-1])]
    except PatternErrors:
        assume(False)
    one, other = (sorted(map(str, answer)) for answer in answers)
    assert one == other


@pytest.mark.parametrize(
    ("pattern", "old"),
    [
        ("SEQ(A a, SEQ(B b+, C c))", "SEQ(A a, B b+, C c)"),
        ("SEQ(A a{1}, (B b+)+)", "SEQ(A a, B b+)"),
        ("SEQ(SEQ(A a), B b{1,})", "SEQ(A a, B b+)"),
    ],
)
def test_patterns_of_the_old_form_have_its_plan(pattern: str, old: str) -> None:
    assert plan_of(pattern) == plan_of(old)
    assert plan_of(pattern).hash == plan_of(old).hash


def test_operators_are_part_of_the_hash() -> None:
    patterns = [
        "SEQ(A a, B b)",
        "SEQ(A a?, B b)",
        "SEQ(A a, B b?)",
        "SEQ(A a, B b{2})",
        "(A a OR B b)",
        "SEQ(A a, B b*)",
    ]
    assert len({plan_of(pattern).hash for pattern in patterns}) == len(patterns)


def test_hashes_are_stored() -> None:
    """Results tables hold them."""
    assert plan_of("SEQ(A a?, B b{2,5}, (C c OR D d))", where=["c.x > a.x"]).hash == "1cae983209e3bc00"
    assert plan_of("(SEQ(A a, NOT C n within 5 seconds, B b?))+", select="contiguous").hash == "9a73a1b017c38e65"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("SEQ(A a{1000}, B b)", "more than 1,000 positions"),
        ("SEQ((A a?){400}, B b)", "20,000 edges"),
        (f"SEQ({', '.join(f'A a{k}?' for k in range(12))}, B b)", "1,000 states"),
    ],
)
def test_what_is_too_large_is_refused(pattern: str, words: str) -> None:
    variables = [f"a{k}" for k in range(12)]
    where = [f"b.x > {name}.x" for name in variables] if "a0" in pattern else []
    with pytest.raises(PatternErrors, match=words):
        plan_of(pattern, where=where)


def test_a_condition_that_nothing_asks() -> None:
    with pytest.warns(PatternWarning, match="no match has events of both d and c"):
        plan_of("SEQ(A a, (C c OR D d))", where=["d.x > c.x"])
    plan_of("SEQ(A a, (C c OR D d)+)", where=["d.x > c.x"])


def test_the_plan_in_words() -> None:
    where = ["c.x > a.x", "b[i].x > b[i-1].x", "b[b.LEN].x > 3", "[a.g, c.g]"]
    plan = plan_of("SEQ(A a?, B b{2,5}, NOT D n, (C c OR D d))", where=where)
    lines = explain(plan).splitlines()
    assert lines[0].endswith("a run ignores what it cannot go on with; in a repetition, what that cannot go on with")
    assert lines[lines.index("pattern   SEQ(A a?, B b{2,5}, NOT D n, (C c OR D d))") :] == [
        "pattern   SEQ(A a?, B b{2,5}, NOT D n, (C c OR D d))",
        "a         A: one event or none",
        "b         B: one event or more",
        "  each event after the first: b[i].x > b[i-1].x",
        "  when b can bind no more: b[b.LEN].x > 3",
        "c         C: one event or none",
        "  each choice of their events, as soon as all are bound: c.x > a.x",
        "d         D: one event or none",
        "states    13, 25 steps between them; matches begin by 2, end in 2",
        "remembers a.x, g of a, b[b.LEN].x",
        "NOT D n between the events around it; known beforehand",
        "output    every match",
        "steps     compiled, a register of 3 fields; in Python from a number beyond 64 bits",
        "cost      O(runs) an event: a run for each state and distinct register; O(length) a match to write it",
    ]
    picture = draw(plan, "operators")
    assert picture.count('class="state') >= len(plan.positions.variables) == 8
    assert "no n between" in picture
