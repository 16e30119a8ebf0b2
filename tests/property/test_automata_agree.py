"""Random automata over random streams: the kernels give what the enumeration of runs gives, and hold what it holds."""

from __future__ import annotations

from hypothesis import given, settings

from tests.property.agreement import TALLIES
from tests.property.automata import AfaTally, Case, cases, disagreement
from tests.property.profile import CI


@settings(CI, max_examples=2000)
@given(cases())
def test_automata(case: Case) -> None:
    """The rows are the same set, and so are the partial runs, kept as intervals or event by event."""
    assert disagreement(case, TALLIES.setdefault("automata", AfaTally())) == []
