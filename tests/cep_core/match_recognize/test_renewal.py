"""A chain of matches that is taken up before a change, and left where it meets the old one, has the rows of a chain
from the first row."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.random.agreement import TALLIES
from tests.random.profile import examples
from tests.random.renewals import Change, changes, revised
from tests.random.row_patterns import RowPatternTally

pytestmark = pytest.mark.random


@pytest.mark.long
@pytest.mark.more_in_chaos
@examples(2_000)
@given(changes())
def test_changes(change: Change) -> None:
    rows, wanted = revised(change, TALLIES.setdefault("changes of match_recognize", RowPatternTally()))
    assert rows == wanted
