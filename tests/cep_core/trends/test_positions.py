"""skip_till_next_match goes by positions: what the plan says of them, its hash, and when it is refused."""

from __future__ import annotations

import pytest

from trendlake.cep_core import AnyPlan, EventSchema, PatternErrors, compile_query
from trendlake.cep_core.engine import explain

SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "bigint"},
    "event_id",
    "event_time",
    "event_type",
)


def plan(pattern: str, select: str = "skip_till_next_match") -> AnyPlan:
    query = {"kind": "trends", "pattern": pattern, "return": {"n": "COUNT(*)"}, "within": "1 day", "select": select}
    return compile_query(query, SCHEMA)


@pytest.mark.parametrize(
    ("pattern", "older"),
    [
        ("A+", "e333cbf8e06484b9"),
        ("SEQ(A+, B)", "fef5c1026ab36cf5"),
        ("SEQ(A, NOT C, B?, C)", "d52905f7053d9283"),
        ("SEQ(A, C) AND SEQ(A, B?, C)", "ad042e0fede3fc16"),
        ("(SEQ(A+, B))+", "418456a701aab299"),
        ("SEQ(C, A{2}, B)", "8cb0e1e1f4c8c904"),
    ],
)
def test_plans_keep_the_hash_of_version_1(pattern: str, older: str) -> None:
    """Table results name it. What may follow a position needs no place in the hash where the automaton says it."""
    assert plan(pattern).hash == older


def test_the_hash_tells_positions_apart() -> None:
    """The same sequences of pairs, but other trends once events in between matter."""
    one, other = "SEQ(A, (B OR C))", "SEQ(A, B) OR SEQ(A, C)"
    assert plan(one).hash != plan(other).hash
    assert plan(one, "skip_till_any_match").hash == plan(other, "skip_till_any_match").hash


def test_a_plan_says_what_each_event_is_the_next_of() -> None:
    """Of all that may follow at the position, or at each of those at which a derivation still stands."""
    text = explain(plan("SEQ(A{1,2}, B)"))
    assert "A#0 -> B#2: linked to the next A or B\n" in text
    assert "A#1 -> B#2: linked to the next B\n" in text
    assert "A#0 -> C#1: linked to the next B or C and the next C\n" in explain(plan("SEQ(A, C) AND SEQ(A, B?, C)"))


@pytest.mark.parametrize("alternatives", [3, 12])
def test_too_many_sets_of_positions_are_refused(alternatives: int) -> None:
    """A trend of As is alive in any subset of these alternatives. Where that is too much to count exactly, the pattern
    is refused; variables of their own help."""
    shared, own = (" OR ".join(f"SEQ(A {a.format(n)}+, B b{n})" for n in range(alternatives)) for a in ("a", "a{}"))
    plan(shared, "skip_till_any_match"), plan(own)
    if alternatives == 3:
        plan(shared)
        return
    with pytest.raises(PatternErrors) as refused:
        plan(shared)
    (error,) = refused.value.errors
    assert error.code == "BAD_PATTERN"
    assert "more than 500 states" in error.message
    assert "variables of their own" in str(error.hint)
