"""Random questions of events with intervals, against a loop over windows."""

from __future__ import annotations

import random
import warnings
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.agreement import TALLIES, Tally
from tests.random.intervals import disagreement, interval_questions
from tests.random.profile import examples, share
from tests.random.strategies import COLUMNS, Question
from tests.support.lasting_events import table_of
from trendlake.cep_core import PatternErrors, PatternWarning, compile_query, run_plan
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.trends.run import lasting_events

pytestmark = pytest.mark.random

TALLY = TALLIES.setdefault("intervals", Tally())


@examples(2000)
@given(interval_questions())
def test_agreement(question: Question) -> None:
    assert disagreement(question, TALLY) == []


def test_most_were_compared() -> None:
    """Else agreement says little. Skipped where the test above did not run."""
    if not TALLY.compared:
        pytest.skip("nothing was compared")
    assert TALLY.compared > share(2000) // 2
    assert TALLY.with_trends > TALLY.compared // 4


@examples(300)
@given(interval_questions(), st.integers(1, 12), st.randoms(use_true_random=False))
def test_same_bytes(question: Question, most: int, chance: random.Random) -> None:
    """In whatever order the events come, and however windows are cut; a pass has `most` rows, or one window."""
    query, rows = question
    table = table_of(rows, COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        try:
            plan = compile_query(query, schema_of(table))
        except PatternErrors:
            assume(False)
    expected = sorted_rows(run_plan(plan, table))
    shuffled = table.take(pa.array(chance.sample(range(table.num_rows), table.num_rows), pa.int64()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lasting_events, "MOST_ROWS", most)
        assert sorted_rows(run_plan(plan, shuffled)) == expected
    if not expected:
        return
    held = [plan.windows.at(row["window_start"]) for row in expected_starts(run_plan(plan, table))]
    low, high = min(held), max(held) + 1
    edges = [low, *sorted(chance.randrange(low, high + 1) for _ in range(2)), high]
    parts = [run_plan(plan, shuffled, range(a, b)) for a, b in pairwise(edges)]
    assert sorted_rows(pa.concat_tables(parts)) == expected


def expected_starts(table: pa.Table) -> list[dict[str, Any]]:
    return pa.table({"window_start": table["window_start"].cast(pa.int64())}).to_pylist()


def sorted_rows(table: pa.Table) -> list[str]:
    """With every digit of every number."""
    return sorted(map(repr, table.to_pylist()))
