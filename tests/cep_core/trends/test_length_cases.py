"""The worked cases of length, duration, longest and maximal trends, over both engines, and of what is refused."""

from __future__ import annotations

import pytest

from tests.golden.corpus import OF_LENGTH
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES, Engine

CASES = [case for case in load("calendar_and_length.yaml") if OF_LENGTH.search(str(case.query))]
"""Those about the length of trends."""


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_worked_case(engine: Engine, case: Case) -> None:
    if "time_zone" in case.query and engine is ENGINES["reference"]:
        pytest.skip("windows of a local calendar")
    assert unexpected(case, engine(case.query, case.events)) == []
