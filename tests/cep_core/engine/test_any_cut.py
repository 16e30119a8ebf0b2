"""Order does not matter, nor how the events are cut by time: shards of any number of windows, each given its own events
in any order, have the rows of the whole, each once. What Spark does with shards is no more than this."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.automata import Case, cases, compiled
from tests.random.matches import COLUMNS, matches_questions, plan_of
from tests.random.profile import examples
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, run_plan
from trendlake.cep_core.errors import BadEventsError

pytestmark = pytest.mark.random


def by_shards(plan: Any, table: pa.Table, size: int, order: Any, watermark: int | None) -> list[str]:
    """The rows of shards of `size` windows, as text, sorted."""
    time = table["event_time"].cast(pa.int64()).to_pylist()
    windows = plan.windows.ending_in(min(time), max(time) + 2 * (plan.within + plan.windows.slide))
    collected: list[str] = []
    for at in range(0, len(windows), size):
        shard = windows[at : at + size]
        start, end = plan.windows.span(shard)
        mine = [i for i in range(table.num_rows) if start <= time[i] < end]
        order.shuffle(mine)
        part = run_plan(plan, table.take(pa.array(mine, pa.int64())), shard, watermark)
        column, low, high = plan.owned(shard)
        assert all(low <= cell < high for cell in part[column].cast(pa.int64()).to_pylist())
        collected += map(str, part.to_pylist())
    return sorted(collected)


@pytest.mark.more_in_chaos
@examples(150)
@given(cases(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_automata(case: Case, size: int, order: Any) -> None:
    """A part of the events does not say how far time has come: the watermark does, the newest event of all."""
    try:
        table, plan = compiled(case)
    except PatternErrors:
        assume(False)
    assume(table.num_rows)
    newest = max(table["event_time"].cast(pa.int64()).to_pylist())
    try:
        whole = sorted(map(str, run_plan(plan, table).to_pylist()))
    except BadEventsError:
        assume(False)
    assert by_shards(plan, table, size, order, newest) == whole


@pytest.mark.more_in_chaos
@examples(150)
@given(matches_questions(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_matches(question: Any, size: int, order: Any) -> None:
    """All outputs; with non_overlap every shard is given all that came before."""
    query, rows = question
    table = to_table(rows, COLUMNS)
    plan = plan_of(query, table)
    assume(table.num_rows)
    # nothing is held back, as of windows
    whole = sorted(map(str, run_plan(plan, table, watermark=2**62).to_pylist()))
    assert by_shards(plan, table, size, order, None) == whole
