"""The worked cases of kind automaton, over the enumeration and the kernels: where prose and a case disagree, the case
wins."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.reference.automaton import reference
from tests.support.cases import Case, load
from tests.support.engines import to_table
from trendlake.cep_core import evaluate

Rows = Sequence[Mapping[str, Any]]


def kernels(query: Mapping[str, Any], rows: Rows) -> list[dict[str, Any]]:
    """`cep_core.trends.run.run`, over the rows in another order."""
    shuffled = random.Random(1).sample(list(rows), len(rows))
    return list(evaluate(query, to_table(shuffled)).to_pylist())


ENGINES: dict[str, Callable[[Mapping[str, Any], Rows], list[dict[str, Any]]]] = {
    "reference": reference,
    "kernels": kernels,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", load("automaton.yaml"), ids=lambda case: case.name)
def test_case(engine: str, case: Case) -> None:
    """The set of rows is the expected one, exactly."""
    actual = ENGINES[engine](case.query, case.events)
    columns = list(case.expect[0])
    assert {tuple(row[c] for c in columns) for row in actual} == {tuple(row[c] for c in columns) for row in case.expect}
    assert len(actual) == len(case.expect)
