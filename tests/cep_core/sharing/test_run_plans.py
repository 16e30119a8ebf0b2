"""Plans run together give what each gives alone, whoever else is there and in whatever order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.batches import Batch, alone, batches, shown, together
from tests.random.profile import examples
from trendlake.cep_core import compile_query, run_plan, run_plans
from trendlake.cep_core.errors import BadEventsError, EngineFailureError, TooManyMatchesError
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.sharing import batches as batches_of_forms
from trendlake.cep_core.sharing import interest, lanes

BATCHES = 10
"""Of the plans of an example: some of them, in some order."""


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be shared is, however little it saves."""
    for name, value in {"FEW": 1, "FEW_SORTED": 1, "MOST": 9.0}.items():
        monkeypatch.setattr(interest, name, value)
    for name, value in {"FULL": 40, "FEW_ROWS": 20_000}.items():
        monkeypatch.setattr(batches_of_forms, name, value)
    monkeypatch.setattr(lanes, "LEAST", 2)


@pytest.mark.random
@pytest.mark.usefixtures("eager")
@pytest.mark.more_in_chaos
@examples(60)
@given(batches(), st.randoms(use_true_random=False))
def test_together_as_alone(batch: Batch, order: Any) -> None:
    """1,000 batches."""
    expected = [alone(batch, number) for number in range(len(batch.plans))]
    for _ in range(BATCHES):
        numbers = order.choices(range(len(batch.plans)), k=order.randint(1, 8)) if batch.plans else []
        batches_of_forms.FEW_ROWS = order.choice((2, 20_000))  # plans of one form as lanes, or as members
        assert together(batch, numbers) == [expected[number] for number in numbers]


def table(**columns: Any) -> pa.Table:
    n = len(next(iter(columns.values())))
    time = pa.array([i * 1_000_000 for i in range(n)], pa.timestamp("us", tz="UTC"))
    return pa.table({"event_id": [f"e{i}" for i in range(n)], "event_type": ["A"] * n, "event_time": time, **columns})


def plan(events: pa.Table, **query: Any) -> Any:
    pattern = {"pattern": "A+", "within": "1 minute", **query}
    if pattern.get("kind", "trends") == "trends":
        pattern["return"] = {"n": "COUNT(*)"}
    return compile_query(pattern, schema_of(events))


def test_an_error_of_one_does_not_stop_the_others() -> None:
    events = table(x=[1, 2, 2**63 - 1])
    overflows = plan(events, where=["A.x + 1 > 2"])
    limited = plan(events, kind="matches", limit_per_partition=3)
    good = plan(events)
    answers = dict(run_plans([overflows, good, limited, good], events))
    assert isinstance(answers[0], BadEventsError)
    assert isinstance(answers[2], TooManyMatchesError)
    assert answers[1]["n"].to_pylist() == answers[3]["n"].to_pylist() == [7]
    with pytest.raises(BadEventsError, match="overflow"):
        run_plan(overflows, events)


def test_a_failure_of_the_engine_is_the_plan_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the kind matches only: an exception that no user can mend is reported with its plan, and kept as the cause."""
    events = table(x=[1, 2, 3])
    failing, good = plan(events, kind="matches"), plan(events)
    kinds = dict(KINDS)
    monkeypatch.setattr("trendlake.cep_core.sharing.run_plans.KINDS", kinds)

    def no_memory(*arguments: Any) -> pa.Table:
        raise MemoryError("no room")

    from dataclasses import replace

    kinds["matches"] = replace(KINDS["matches"], run=no_memory)
    answers = dict(run_plans([failing, good], events))
    assert isinstance(answers[0], EngineFailureError)
    assert "MemoryError: no room" in str(answers[0])
    assert answers[1]["n"].to_pylist() == [7]
    with pytest.raises(MemoryError):
        run_plan(failing, events)


def test_equal_plans_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    events = table(x=[1, 2, 3])
    plans = [plan(events), plan(events, where=["A.x > 1"]), plan(events)]
    answers = dict(run_plans(plans, events))
    assert answers[0] is answers[2]
    assert shown(answers[1]) == shown(run_plan(plans[1], events))
    asked = dict(run_plans(plans, events, [None, None, range(5, 6)]))
    assert asked[0].num_rows == 1
    assert asked[2].num_rows == 0


def test_as_many_windows_as_plans() -> None:
    events = table(x=[1])
    with pytest.raises(ValueError, match="1 plans, and windows of 2"):
        list(run_plans([plan(events)], events, [None, None]))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("pattern", ["SEQ(A a, A b, A c)", "SEQ(A a, NOT(C k), A b, A c)", "SEQ(A a, A b?, A c)"])
@pytest.mark.parametrize("windows", [None, range(1, 4)])
def test_members_repeat_events(pattern: str, windows: range | None) -> None:
    """Matches of one form: an event is there once for each member, in no order of the table's rows."""
    count = 14
    seconds = pa.array([k % 8 * 1_000_000 for k in range(count)], pa.timestamp("us", tz="UTC"))
    ids = [f"e{k}" for k in range(count)]
    groups = ["uv"[k % 2] for k in range(count)]
    events = pa.table({"event_id": ids, "event_type": ["A"] * count, "event_time": seconds, "g": groups})
    query = {"kind": "matches", "pattern": pattern, "within": "4 seconds", "select": "skip_till_next_match"}
    plans = [compile_query({**query, "where": [f"a.g = '{value}'"]}, schema_of(events)) for value in "uvu"]
    answers = dict(run_plans(plans, events, [windows] * 3))
    expected = [sorted(run_plan(one, events, windows).to_pylist(), key=str) for one in plans]
    assert min(map(len, expected)) > 0
    assert [sorted(answers[k].to_pylist(), key=str) for k in range(3)] == expected


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("condition", ["b[1].x < 2", "b[i].x > b[1].x", "b[i].x < 3"])
def test_members_tell_the_first_event_of_a_part(condition: str) -> None:
    """A condition on the first event of a Kleene part alone asks nothing of later ones, also of plans run as one."""
    events = table(x=[0, 1, 3, 2, 5, 1, 4, 0])
    query = {"kind": "matches", "pattern": "SEQ(A a, A b+)", "within": "1 minute", "select": "skip_till_any_match"}
    plans = [
        compile_query({**query, "where": [f"a.x = {value}", condition]}, schema_of(events)) for value in (0, 1, 3, 0)
    ]
    answers = dict(run_plans(plans, events))
    expected = [sorted(run_plan(one, events).to_pylist(), key=str) for one in plans]
    assert max(map(len, expected)) > 5
    assert [sorted(answers[k].to_pylist(), key=str) for k in range(4)] == expected
