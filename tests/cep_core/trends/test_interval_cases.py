"""The worked cases of events with intervals: where prose and a case disagree, the case wins."""

from __future__ import annotations

import pytest

from tests.support.cases import Case, load
from tests.support.engines import from_table
from tests.support.lasting_events import as_expected, table_of
from trendlake.cep_core import compile_query, evaluate, run_plan
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import schema_of

CASES = [case for case in load("intervals.yaml") if case.error is None]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    rows = from_table(evaluate(case.query, table_of(case.events)))
    assert as_expected(case, rows) == sorted(map(str, case.expect))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_window_by_window(case: Case) -> None:
    """Each window by itself: together they are all rows."""
    table = table_of(case.events)
    plan = compile_query(case.query, schema_of(table))
    starts = evaluate(case.query, table)["window_start"]
    windows = [plan.windows.at(int(moment.timestamp() * 1_000_000)) for moment in starts.to_pylist()]
    near = range(min(windows, default=0) - 2, max(windows, default=0) + 3)
    rows = [row for j in near for row in as_expected(case, from_table(run_plan(plan, table, range(j, j + 1))))]
    assert sorted(rows) == sorted(map(str, case.expect))


@pytest.mark.parametrize("case", [case for case in load("intervals.yaml") if case.error], ids=lambda case: case.name)
def test_error(case: Case) -> None:
    with pytest.raises(BadEventsError) as caught:
        evaluate(case.query, table_of(case.events))
    assert caught.value.message == case.error
