"""The kernels agree with the reference on 2,000 random queries and streams, the same ones every time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.random.agreement import TALLIES, Tally, disagreement
from tests.random.profile import examples
from tests.random.strategies import long_questions, pairs_of_patterns, questions, repeated_questions
from tests.reference.trends.measures import counted
from tests.support.engines import kernels

pytestmark = pytest.mark.random

THEMES: dict[str, tuple[int, dict[str, Any]]] = {
    "the whole language": (500, {}),
    "patterns alone": (400, {"where": False, "equivalence": False, "windows": False, "select": False}),
    "where": (500, {"negation": False, "windows": False, "select": False, "conjunction": False, "depth": 2}),
    "windows and groups": (200, {"where": False, "negation": False, "depth": 1}),
}


@pytest.mark.more_in_chaos
@pytest.mark.parametrize("theme", THEMES)
def test_kernels_agree(theme: str) -> None:
    """Counts exactly, doubles and logarithms to 1e-9, the same rows."""
    count, flags = THEMES[theme]
    tally = TALLIES.setdefault(theme, Tally())

    @examples(count)
    @given(questions(**flags))
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


def test_kernels_agree_on_longer_streams() -> None:
    """Streams long enough that ranks, hashes and halves have something to do."""
    tally = TALLIES.setdefault("longer streams", Tally())

    @examples(80)
    @given(long_questions())
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


def test_kernels_agree_on_trends_of_two_patterns() -> None:
    """Which event is the next that may follow is a matter of each pattern; a trend of both is what both select."""
    tally = TALLIES.setdefault("two patterns", Tally())

    @examples(300)
    @given(pairs_of_patterns())
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


def test_kernels_agree_on_variables_at_several_positions() -> None:
    """Which event may follow is a matter of the position, and a trend counts if one of its derivations is allowed."""
    tally = TALLIES.setdefault("several positions", Tally())

    @examples(300)
    @given(repeated_questions())
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


@pytest.mark.more_in_chaos
def test_kernels_agree_on_lengths() -> None:
    """LENGTH, DURATION, LONGEST, FILTER, FIRST and the others, `output: maximal`; any pattern, selection and window."""
    tally = TALLIES.setdefault("lengths", Tally())

    @examples(600)
    @given(questions(lengths=True, conjunction=False))
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


@pytest.mark.more_in_chaos
def test_kernels_agree_on_lengths_with_several_states_of_a_variable() -> None:
    """Which of several longest trends is shown shows further back than at the event where they part."""
    tally = TALLIES.setdefault("lengths, several states", Tally())

    @examples(400)
    @given(repeated_questions(lengths=True))
    def agree(question: Any) -> None:
        assert disagreement(question, tally) == []

    agree()


@pytest.mark.parametrize("events", [1, 2, 63, 64, 65, 126, 127, 128, 1000, 100_000])
def test_closed_form(events: int) -> None:
    """S+ over n events has 2^n - 1 trends: exact up to 38 digits, then NULL with its logarithm."""
    rows = [{"id": f"e{n:06}", "type": "S", "time": n} for n in range(events)]
    query = {"kind": "trends", "pattern": "S+", "return": {"trends": "COUNT(*)"}, "within": "2 days"}
    actual = kernels(query, rows)
    expected = counted("trends", 2**events - 1)
    assert [row["trends"] for row in actual] == [expected["trends"]]
    assert actual[0]["trends_log10"] == pytest.approx(expected["trends_log10"], rel=1e-9, abs=0)
