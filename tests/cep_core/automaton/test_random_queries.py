"""Random automata over random streams: the kernels give what the enumeration of runs gives, and hold what it holds."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given

from tests.random.agreement import TALLIES
from tests.random.automata import AfaTally, Case, cases, disagreement
from tests.random.profile import examples
from trendlake.cep_core.automaton.run import memory

pytestmark = pytest.mark.random


@pytest.mark.more_in_chaos
@examples(350)
@given(cases())
def test_automata(case: Case) -> None:
    """The rows are the same set, and so are the partial runs, kept as intervals or event by event."""
    assert disagreement(case, TALLIES.setdefault("automata", AfaTally())) == []


@pytest.mark.more_in_chaos
@examples(50)
@given(cases())
def test_automata_judged_event_by_event(case: Case) -> None:
    """As where conditions are too many for a row for each combination of them."""
    with patch.object(memory, "MOST_VERDICTS", 0):
        assert disagreement(case, TALLIES.setdefault("automata, judged event by event", AfaTally())) == []
