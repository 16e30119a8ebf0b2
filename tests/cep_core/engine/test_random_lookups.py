"""Random reference tables, and random patterns that look their columns up: what loops over rows give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from tests.random.lookups import Question, disagreement, pattern_disagreement, patterns, questions
from tests.random.profile import examples
from trendlake.cep_core.events import lookup

pytestmark = pytest.mark.random


@pytest.mark.more_in_chaos
@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
def test_tables(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns and counts, with compiled code and without."""
    monkeypatch.setattr(lookup, "FEW", 10_000 if few else -1)
    tally: Counter[str] = Counter()

    @examples(600)
    @given(questions())
    def agree(question: Question) -> None:
        assert disagreement(question, tally) == []

    agree()
    assert tally["looked up"] > tally["refused"] > 0
    assert tally["fewer rows"] > 0


@pytest.mark.more_in_chaos
@examples(600)
@given(patterns())
def test_patterns(question: Any) -> None:
    """Rows of a pattern with a lookup are those of the pattern without it over events that have the columns."""
    assert pattern_disagreement(question, Counter()) == []
