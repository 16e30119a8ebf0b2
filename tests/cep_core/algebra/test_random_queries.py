"""Random CEL over random events: the kernels give the sets by definition; and laws of the algebra."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.random.agreement import TALLIES
from tests.random.algebra import COLUMNS, AlgebraTally, Case, cases, compiled, disagreement, exact
from tests.random.profile import examples
from tests.support.intervals import plain, table_of
from trendlake.cep_core import run_plan
from trendlake.cep_core.errors import BadEventsError, PatternErrors

pytestmark = pytest.mark.random


@pytest.mark.more_in_chaos
@examples(200)
@given(cases())
def test_queries(case: Case) -> None:
    """The rows are the same set, whole and pane by pane, in any order of the events."""
    assert disagreement(case, TALLIES.setdefault("algebra", AlgebraTally())) == []


@examples(60)
@given(cases(6), st.data())
def test_a_change_touches_rows_from_its_time_to_the_reach(case: Case, data: st.DataObject) -> None:
    """An event of time t is deleted, or gets other values: only rows of its partition with end in [t, t + reach)
    differ."""
    assume(case.rows)
    at = data.draw(st.integers(0, len(case.rows) - 1))
    old = case.rows[at]
    names = case.query.get("partition_by", ())
    others = [*case.rows[:at], *case.rows[at + 1 :]]
    changed = [{**old, "x": 3, "y": 0.5, **{name: old[name] for name in names}}] if data.draw(st.booleans()) else []
    try:
        table, plan = compiled(case)
        before = plain(run_plan(plan, table))
        after = plain(run_plan(plan, table_of([*others, *changed], COLUMNS)))
    except (BadEventsError, PatternErrors):
        assume(False)
    low = old["time"] * 1_000_000
    outside = [[row for row in rows if not low <= row["end"] < low + plan.reach] for rows in (before, after)]
    assert exact(outside[0]) == exact(outside[1])


def _rows(case: Case, pattern: str) -> list[str]:
    table, plan = compiled(replace(case, query={**case.query, "pattern": pattern}))
    return exact(plain(run_plan(plan, table)))


STREAMS = ("(SELECT event_id, x, y FROM A)", "(SELECT event_id, x, y FROM B)", "(SELECT event_id, x, y FROM EVENTS)")
CONDITIONS = ("x > 1", "y < 1 OR x IS NULL", "NOT (x = 2)", "contains(event_id, '1')")
PAIRS = ("", "{$1.x = $2.x}", "{$2.y > $1.y}", "{$2.x >= $1.x AND DUR < 3 seconds}", "{$1.x + $2.x > 2}")


@examples(60)
@given(cases(8), *(st.sampled_from(one) for one in (STREAMS, STREAMS, STREAMS, CONDITIONS, PAIRS)))
def test_laws(case: Case, r: str, s: str, other: str, condition: str, pair: str) -> None:
    """FILTER moves into NEXT's left side, UNION distributes over it, and UNION is a set's."""
    moved = condition.replace("x", "x_1").replace("y ", "y_1 ").replace("event_id,", "event_id_1,")
    query = {key: value for key, value in case.query.items() if key != "partition_by"}
    case = replace(case, query=query)
    assume("event_id" not in condition)
    outside = _rows(case, f"FROM FILTER{{{moved}}}({r} NEXT{pair} {s})")
    assert outside == _rows(case, f"FROM FILTER{{{condition}}}({r}) NEXT{pair} {s}")
    united = _rows(case, f"FROM ({r} UNION {other}) NEXT{pair} {s}")
    assert united == _rows(case, f"FROM ({r} NEXT{pair} {s}) UNION ({other} NEXT{pair} {s})")
    assert _rows(case, f"FROM {r} UNION {other}") == _rows(case, f"FROM {other} UNION {r} UNION {other}")
