"""The worked cases of kind trends, over every engine: where prose and a case disagree, the case wins."""

from __future__ import annotations

import pytest

from tests.reference.trends.measures import counted
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES, Engine


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


@pytest.mark.parametrize("case", [case for case in load() if not case.generated], ids=lambda case: case.name)
def test_enumerable_case(engine: Engine, case: Case) -> None:
    """The engine's rows are the expected ones."""
    assert unexpected(case, engine(case.query, case.events)) == []


@pytest.mark.parametrize("case", [case for case in load() if case.generated], ids=lambda case: case.name)
def test_generated_case(case: Case) -> None:
    """Too many trends to build: the kernels' rows are the expected ones, and so is the closed form."""
    assert unexpected(case, ENGINES["kernels"](case.query, case.events)) == []
    assert (case.query["pattern"], case.query["return"]) == ("S+", {"trends": "COUNT(*)"})
    assert unexpected(case, [counted("trends", 2 ** len(case.events) - 1)]) == []
