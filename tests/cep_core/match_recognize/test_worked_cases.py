"""The worked cases of kind match_recognize: where prose and a case disagree, the case is right."""

from __future__ import annotations

import random

import pytest

from tests.support.row_patterns import Case, load, only, rows_of, table_of
from trendlake.cep_core import PatternErrors, TrendlakeError, evaluate

pytestmark = pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
"""A variable that nothing names; a skip that always fails."""


def shown(error: TrendlakeError) -> str:
    return error.message if error.hint is None else f"{error.message}; {error.hint}"


@pytest.mark.parametrize("case", [case for case in load() if case.expect is not None], ids=lambda case: case.name)
def test_rows(case: Case) -> None:
    """The rows are the expected ones, in the columns that the case is about, whatever the order of events."""
    events = random.Random(1).sample(list(case.events), len(case.events))
    rows = rows_of(evaluate(case.query, table_of(events)))
    wanted = case.expect or []
    assert len(rows) == len(wanted)
    if wanted:
        assert only(rows, list(wanted[0])) == only(wanted, list(wanted[0]))


@pytest.mark.parametrize("case", [case for case in load() if case.error is not None], ids=lambda case: case.name)
def test_error(case: Case) -> None:
    """The one mistake is told in the words of the case, with a place in the text."""
    with pytest.raises(TrendlakeError) as raised:
        evaluate(case.query, table_of(case.events))
    if case.code is not None:
        assert raised.value.code == case.code
        assert case.error in shown(raised.value)
        return
    assert isinstance(raised.value, PatternErrors)
    (error,) = raised.value.errors
    assert case.error in shown(error)
    assert error.place is not None
    assert error.place.text
