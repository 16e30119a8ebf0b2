"""Dynamic patterns: an arc that lives for a time only changes results at that time only, and the hashes say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.automata import Case, cases, compiled
from tests.random.profile import examples
from trendlake.cep_core import PatternErrors, compile_query, run_plan
from trendlake.cep_core.automaton.compile.plan import AutomatonPlan
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import EventSchema

pytestmark = pytest.mark.random

SECOND = 1_000_000
SCHEMA = EventSchema({"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "double"})


@pytest.mark.more_in_chaos
@examples(100)
@given(cases(), st.data())
def test_equal_hashes_have_equal_rows(case: Case, data: Any) -> None:
    """Another lifetime for one arc: in the windows whose hash is the same, the rows are the same."""
    try:
        table, plan = compiled(case)
    except PatternErrors:
        assume(False)
    assume(table.num_rows)
    time = table["event_time"].cast(pa.int64()).to_pylist()
    windows = plan.windows.ending_in(min(time), max(time) + 4 * plan.within)
    number = data.draw(st.integers(0, len(plan.arcs) - 1))
    moment = st.none() | st.integers(min(time) - SECOND, max(time) + SECOND)
    low, high = data.draw(moment), data.draw(moment)
    assume(low is None or high is None or low < high)  # a pattern whose arc lives for no time is refused
    arc = replace(plan.arcs[number], valid_from=low, valid_to=high)
    other = replace(plan, arcs=(*plan.arcs[:number], arc, *plan.arcs[number + 1 :]))
    before, after = by_window(plan, windows), by_window(other, windows)
    for j in windows:
        if before[j] == after[j]:
            assert rows(plan, table, j) == rows(other, table, j)


def by_window(plan: AutomatonPlan, windows: range) -> dict[int, str]:
    """The hash of each; the stretches lie side by side and make up the whole."""
    actual = plan.stretches(windows)
    assert [j for stretch, _ in actual for j in stretch] == list(windows)
    return {j: known for stretch, known in actual for j in stretch}


def rows(plan: AutomatonPlan, table: pa.Table, window: int) -> Any:
    try:
        return sorted(map(str, run_plan(plan, table, range(window, window + 1)).to_pylist()))
    except BadEventsError:
        return "overflows"


def automaton(*arcs: dict[str, Any]) -> Any:
    asked = {"kind": "automaton", "start": "a", "final": ["b", "c"], "arcs": list(arcs), "within": "1 hour"}
    return compile_query(asked, SCHEMA)


def test_a_new_arc_touches_the_windows_of_its_lifetime() -> None:
    """Also one to a state of its own; a pattern without lifetimes has one hash, which those it does not touch keep."""
    old = {"from": "a", "to": "b", "when": "e.x > 1"}
    new = {"from": "a", "to": "c", "when": "e.x < 0", "valid_from": "1970-01-01T05:30:00Z"}
    until = {"valid_to": "1970-01-01T08:00:00Z"}
    plain = automaton(old, {**new, "valid_from": "2100-01-01"})
    windows = range(20)
    first = plain.stretches(windows)
    assert [stretch for stretch, _ in first] == [windows]
    forever = automaton(old, new).stretches(windows)
    assert [stretch for stretch, _ in forever] == [range(4), range(4, 6), range(6, 20)]
    assert forever[0][1] == first[0][1]
    passing = automaton(old, {**new, **until}).stretches(windows)
    assert [stretch.stop for stretch, _ in passing] == [4, 6, 7, 8, 20]
    assert passing[0][1] == passing[-1][1] == first[0][1]
