"""The worked cases of time zones and calendar windows: where prose and a case disagree, the case wins."""

from __future__ import annotations

import re
import warnings

import pytest

from tests.random.calendars import expected
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES
from trendlake.cep_core import PatternWarning

LENGTHS = re.compile(r"LENGTH|DURATION|LONGEST|FILTER|'output'")
"""What a query asks for that is of the part on lengths."""


def cases() -> list[Case]:
    """Those of calendars."""
    return [case for case in load("calendar_and_length.yaml") if not LENGTHS.search(str(dict(case.query)))]


CONTRADICTED = "apia-empty-windows"
"""Its query asks for the trends S+ of two events of a day and expects 2; there are 3, as `apia-skipped-day` says of the
same day. With the condition S.x < NEXT(S).x there would be 2."""


@pytest.mark.parametrize("case", [case for case in cases() if case.name != CONTRADICTED], ids=lambda case: case.name)
def test_calendar_case(case: Case) -> None:
    """The kernels' rows are the expected ones, `window_end` and `window_date` too."""
    with warnings.catch_warnings():
        if case.name == "week-without-zone":
            warnings.simplefilter("ignore", PatternWarning)
        rows = ENGINES["kernels"](case.query, case.events)
    assert unexpected(case, rows) == []


def test_the_case_that_contradicts_others() -> None:
    """All that it says holds but one count, and that holds of the condition which it seems to have lost."""
    (case,) = [case for case in cases() if case.name == CONTRADICTED]
    assert unexpected(case, ENGINES["kernels"](case.query, case.events)) == ["trends: 2 expected, found 3"]
    assert [row["trends"] for row in expected(case.query, case.events)] == [1, 3]
    conditioned = {**case.query, "where": ["S.x < NEXT(S).x"]}
    assert unexpected(case, ENGINES["kernels"](conditioned, case.events)) == []


def test_there_are_cases() -> None:
    """Of both sorts of windows, and of the functions that read clocks."""
    assert len(cases()) > 50
