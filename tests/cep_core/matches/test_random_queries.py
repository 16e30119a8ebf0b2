"""Kind matches: the engine agrees with the reference on 1,000 random queries and streams, the same ones every time;
`make fuzz KIND=matches` searches on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.agreement import TALLIES, Tally
from tests.random.matches import (
    SEQUENCES,
    any_questions,
    cut_rows,
    disagreement,
    interpreted,
    matches_questions,
    unfolded,
    unmerged,
)
from tests.random.profile import examples

pytestmark = [pytest.mark.random, pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")]

THEMES: dict[str, tuple[int, dict[str, Any]]] = {
    "matches": (300, {}),
    "matches without NOT": (200, {"negation": False}),
    "matches with ties": (300, {"ties": True}),
    "matches of any operator": (200, {"any_operator": True}),
    "matches of any operator with ties": (100, {"any_operator": True, "ties": True}),
}


@pytest.mark.more_in_chaos
@pytest.mark.parametrize("theme", THEMES)
def test_the_engine_agrees(theme: str) -> None:
    """The same events under the same variables, and the same measures."""
    count, flags = THEMES[theme]
    tally = TALLIES.setdefault(theme, Tally())

    @examples(count)
    @given(matches_questions(**flags), SEQUENCES)
    def agree(question: Any, sequence: str | None) -> None:
        assert disagreement(question, tally, sequence) == []

    agree()


@examples(150)
@given(any_questions(output=False), st.booleans())
def test_any_way_of_cutting_gives_the_same_rows(question: Any, compressed: bool) -> None:
    """Window by window, in two ranges, each from the events its windows need only: the rows of the whole."""
    query, rows = question
    whole, parts = cut_rows(query | ({"output": "compressed", "return": {}} if compressed else {}), rows)
    assert parts == whole


@pytest.mark.more_in_chaos
@examples(125)
@given(any_questions(output=False, most=9))
def test_a_compressed_row_unfolds_to_its_matches(question: Any) -> None:
    """Each match once, the count and the earliest start right."""
    query, rows = question
    assert unfolded({**query, "return": {}}, rows) == []


BIG = st.sampled_from((0, 1, -1, 3, 2**31, 2**32 - 1, 2**61, 2**62, -(2**62), 2**63 - 1, -(2**63), None))
BIG_CONDITIONS = (
    "a[i].x > sum(a[..i-1].x)",
    "a[i].x > avg(a[..i-1].x)",
    "a[i].n < 0 OR a[i].x * a[i-1].x > 0",
    "-a[i-1].x <= a[i].x",
    "a[i].x - a[1].x != a[i].n",
    "b.x + a[a.LEN].x > 0",
    "b.n > 0 AND b.x + a[1].x > 0",
    "abs(a[i-1].x) > a[i].n",
)


@examples(300)
@given(
    st.lists(st.tuples(BIG, st.integers(-1, 2)), max_size=9),
    st.lists(st.sampled_from(BIG_CONDITIONS), min_size=1, max_size=2),
    st.sampled_from(("skip_till_any_match", "skip_till_next_match", "partition_contiguous")),
    st.sampled_from(("all", "non_overlap")),
)
def test_numbers_that_do_not_fit_are_left_to_python(cells: Any, where: list[str], select: str, output: str) -> None:
    """The same matches, or the same error, as when no number is computed in 64 bits; also where the overflow comes
    after matches have been told."""
    rows = [
        {"id": f"e{n}", "type": "B" if n % 3 == 2 else "A", "time": n, "x": x, "n": k, "y": 0.0, "g": "u", "h": n // 5}
        for n, (x, k) in enumerate(cells)
    ]
    query = {"kind": "matches", "pattern": "SEQ(A a+, B b)", "where": ["[h]", *where], "within": "1 hour"}
    assert interpreted(query | {"select": select, "output": output}, rows) == []


@examples(100)
@given(any_questions(negation=False))
def test_merging_changes_no_match(question: Any) -> None:
    """The slow twin keeps every run apart."""
    assert unmerged(*question) == []
