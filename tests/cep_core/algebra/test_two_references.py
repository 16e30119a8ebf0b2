"""The two slow evaluations of kind algebra agree: streams as whole sets, and moment by moment.

They were written apart, from the page alone, and share no parser of CEL and no resolution of names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given

from tests.random.algebra import KINDS, Case, cases
from tests.random.profile import examples
from tests.reference.algebra import OverflowedError, TooManyEventsError, reference
from tests.reference.algebra.moments import by_moments
from tests.support.intervals import Case as WorkedCase
from tests.support.intervals import load

pytestmark = pytest.mark.random


def comparable(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as sorted texts; a whole number and the double of the same value are one."""
    return sorted(str(sorted((name, _text(cell)) for name, cell in row.items())) for row in rows)


def _text(cell: Any) -> str:
    number = isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)
    return repr(float(cell)) if number and float(cell) == cell else repr(cell)


@pytest.mark.parametrize("case", load(), ids=lambda case: case.name)
def test_worked_cases_moment_by_moment(case: WorkedCase) -> None:
    """The expected rows of each worked case, that of other patterns' results included."""
    rows: Sequence[Mapping[str, Any]] = case.rows
    for query in case.upstream:
        results = by_moments(query, rows)
        rows = [
            {"id": f"{number}", "type": query["name"], "time": row["end"] / 1e6, **row, "start": row["start"] / 1e6}
            for number, row in enumerate(results)
        ]
        rows = [{name: cell for name, cell in row.items() if name != "end"} for row in rows]
    query = {"interval_start": "start", **case.query} if case.upstream else case.query
    assert comparable(by_moments(query, rows)) == comparable(case.expect)


@pytest.mark.more_in_chaos
@examples(150)
@given(cases())
def test_random_queries(case: Case) -> None:
    """The same set of rows, where no integer leaves 64 bits."""
    try:
        expected = reference(case.query, case.rows, KINDS)
        actual = by_moments(case.query, case.rows, KINDS)
    except (OverflowedError, TooManyEventsError):
        assume(False)
    assert comparable(actual) == comparable(expected)
