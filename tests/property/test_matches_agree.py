"""Kind matches: the engine agrees with the reference on 2,000 random queries and streams, the same ones every time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.property.agreement import TALLIES, Tally
from tests.property.matches import cut_rows, disagreement, matches_questions, unfolded, unmerged
from tests.property.profile import CI

THEMES: dict[str, tuple[int, dict[str, Any]]] = {
    "matches": (1200, {}),
    "matches without NOT": (800, {"negation": False}),
}


@pytest.mark.parametrize("theme", THEMES)
def test_the_engine_agrees(theme: str) -> None:
    """The same events under the same variables, and the same measures."""
    examples, flags = THEMES[theme]
    tally = TALLIES.setdefault(theme, Tally())

    @settings(CI, max_examples=examples)
    @given(matches_questions(**flags))
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


@settings(CI, max_examples=150)
@given(matches_questions(output=False))
def test_any_way_of_cutting_gives_the_same_rows(question: Any) -> None:
    """Window by window, in two ranges, each from the events its windows need only: the rows of the whole."""
    query, rows = question
    whole, parts = cut_rows(query, rows)
    assert parts == whole


@settings(CI, max_examples=150)
@given(matches_questions(negation=False, output=False, most=9))
def test_a_compressed_row_unfolds_to_its_matches(question: Any) -> None:
    """Each match once, the count and the earliest start right."""
    query, rows = question
    assert unfolded({**query, "return": {}}, rows) == []


@settings(CI, max_examples=100)
@given(matches_questions(negation=False))
def test_merging_changes_no_match(question: Any) -> None:
    """The slow twin keeps every run apart."""
    assert unmerged(*question) == []
