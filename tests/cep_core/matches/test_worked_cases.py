"""The worked cases of kind matches, over every engine: where prose and a case disagree, the case wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.random.matches import engine
from tests.reference.matches import reference
from tests.support.cases import Case, load

ENGINES: Mapping[str, Callable[..., list[dict[str, Any]]]] = {
    "reference": reference,
    "automaton": lambda query, rows, sequence: engine(query, rows, {}, sequence),
}
CASES = [case for file in ("matches.yaml", "ties.yaml", "absence.yaml", "operators.yaml") for case in load(file)]


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(sorted(row.items())))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(name: str, case: Case) -> None:
    """Every match, with the events of each variable; from the rows in order and in reverse."""
    for rows in (case.events, case.events[::-1]):
        answer = ENGINES[name](case.query, rows, sequence=case.sequence)
        actual = [{key: row[key] for key in (case.expect or answer)[0]} for row in answer]
        assert _sorted(actual) == _sorted(case.expect)
