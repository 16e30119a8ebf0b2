"""Random row patterns over random partitions: the engine gives the rows of the definition; and laws of the language."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.random.agreement import TALLIES
from tests.random.profile import examples
from tests.random.row_patterns import Case, RowPatternTally, cases, cut_by_time, disagreement

pytestmark = pytest.mark.random


@pytest.mark.more_in_chaos
@examples(6_000)
@given(cases())
def test_patterns(case: Case) -> None:
    """The rows are the same, in any order of the events."""
    assert disagreement(case, TALLIES.setdefault("match_recognize", RowPatternTally())) == []


@pytest.mark.more_in_chaos
@examples(2_000)
@given(cases())
def test_panes(case: Case) -> None:
    """A window holds all events that its rows depend on."""
    whole, parts = cut_by_time(case, TALLIES.setdefault("panes of match_recognize", RowPatternTally()))
    assert parts == whole
