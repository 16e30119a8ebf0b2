"""Which window shows which version: claims folded in order, against a slow twin that keeps a word for each window."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cep_core import AnyPlan, EventSchema, compile_query
from pipelines.revision.affected import fewer, united
from pipelines.revision.coverage import Claim, covered, slice_of, spans, windows_of
from tests.property.profile import CI

SCHEMA = EventSchema(
    columns={"event_id": "string", "event_time": "timestamp", "event_type": "string", "place": "string"},
    event_id="event_id", event_time="event_time", event_type="event_type",
)  # fmt: skip
ARC = {"from": "p", "to": "q", "when": "e.place = 'n'"}
QUERIES = {
    "sliding": {"kind": "trends", "pattern": "A a+", "return": {"n": "COUNT(*)"}, "within": "9 hours",
                "slide": "2 hours", "origin": "2026-01-01T01:00:00Z"},
    "matches": {"kind": "matches", "pattern": "SEQ(A a, B b)", "within": "3 hours"},
    "trailing": {"kind": "matches", "pattern": "SEQ(A a, NOT B b)", "within": "3 hours"},
    "automaton": {"kind": "automaton", "start": "p", "final": ["q"], "arcs": [ARC], "within": "5 hours"},
}  # fmt: skip


def plan(name: str) -> AnyPlan:
    return compile_query({"name": "watched", **QUERIES[name]}, SCHEMA)


def windows() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(-20, 20), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    """Any claim, of two forms of the pattern."""
    one = plan("sliding")
    owned = tuple(slice_of(one, *pair) for pair in draw(st.lists(windows(), min_size=1, max_size=2)))
    withheld = tuple(slice_of(one, *pair) for pair in draw(st.lists(windows(), max_size=1)))
    version = draw(st.integers(0, 8))
    return Claim(
        version, draw(st.booleans()), draw(st.sampled_from("pq")), "c", draw(st.integers(0, 5)), owned, withheld
    )


@CI
@given(st.lists(claims(), max_size=6))
def test_the_last_word_on_a_window_holds(told: list[Claim]) -> None:
    """A commit's word replaces any other; that nothing had to change replaces older ones; what is held back only what
    is not published in that form."""
    one, word = plan("sliding"), {}
    for claim in sorted(told, key=lambda claim: (claim.results_version, claim.quiet)):
        for window in (
            j for pair in claim.owned for j in range(windows_of(one, *pair)[0], windows_of(one, *pair)[1] + 1)
        ):
            form, version = word.get(window, (None, None))
            newer = form == claim.plan_hash and version is not None and version >= claim.source_version
            if not (claim.quiet and newer):
                word[window] = (claim.plan_hash, claim.source_version)
        for window in (
            j for pair in claim.withheld for j in range(windows_of(one, *pair)[0], windows_of(one, *pair)[1] + 1)
        ):
            form, version = word.get(window, (None, None))
            if form != claim.plan_hash or version is None:
                word[window] = (claim.plan_hash, None)
    segments = covered(one, told)
    found = {j: (s.plan_hash, s.version) for s in segments for j in range(s.first, s.last + 1)}
    assert found == word
    assert all(a.last < b.first for a, b in pairwise(segments))
    assert {j for first, last in spans(segments) for j in range(first, last + 1)} == set(word)


@CI
@given(st.sampled_from(sorted(QUERIES)), windows())
def test_slices_name_their_windows(name: str, pair: tuple[int, int]) -> None:
    """Of every kind the slices of neighbours lie side by side, one slide apart."""
    one = plan(name)
    assert windows_of(one, *slice_of(one, *pair)) == pair
    low, high = slice_of(one, pair[0], pair[0])
    assert windows_of(one, low, low + 1) == windows_of(one, high - 1, high) == (pair[0], pair[0])


@CI
@given(st.lists(windows(), min_size=1, max_size=9), st.integers(1, 5))
def test_fewer_stretches_hold_all(pairs: list[tuple[int, int]], most: int) -> None:
    """At most so many, in order, and nothing is lost."""
    ranges = united([(first, last + 1) for first, last in pairs])
    held = fewer(ranges, most)
    assert len(held) <= most
    assert all(any(a <= start and end <= b for a, b in held) for start, end in ranges)
    assert all(a[1] < b[0] for a, b in pairwise(held))
    assert held == ranges or len(ranges) > most
