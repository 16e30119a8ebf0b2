"""Plans that differ in conditions on single events and want many events share one pass: a lane each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.batches import shown
from tests.random.profile import examples, share
from trendlake.cep_core import compile_query, run_plan, run_plans
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.sharing import batches, interest, lanes
from trendlake.cep_core.sharing.index import index_of

SHAPES: tuple[dict[str, Any], ...] = (
    {"pattern": "S s+", "where": ["[k]", "s.x > NEXT(s).x"]},
    {"pattern": "SEQ(S s, T t+)", "where": ["[k]", "s.x < NEXT(t).x", "t.x < NEXT(t).x"]},
    {"pattern": "SEQ(S s+, T t)+", "where": ["s.x <= NEXT(t).x"], "group_by": ["k"]},
    {"pattern": "SEQ(S s+, T t+)", "where": ["s.k = NEXT(s).k"]},
    {"pattern": "SEQ(S s, T t)"},
)
BOUNDS = ("{v}.y > {c}", "{v}.y <= {c}", "{v}.y = {c}", "{v}.z < {c}.5", "{v}.g >= 'g{c}'", "{v}.y BETWEEN 1 AND {c}")
NUMBERS = st.none() | st.integers(0, 4)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All that can be a lane is one; the fixture counts those that were."""
    for name, value in {"FEW": 1, "FEW_SORTED": 1, "MOST": 9.0}.items():
        monkeypatch.setattr(interest, name, value)
    monkeypatch.setattr(batches, "FEW_ROWS", -1)
    monkeypatch.setattr(lanes, "LEAST", 2)
    answered: list[int] = []
    trends = KINDS["trends"]
    assert trends.members is not None
    assert trends.members.lanes is not None
    run = trends.members.lanes

    def counted(*arguments: Any) -> Any:
        tables = run(*arguments)
        answered.append(sum(table is not None for table in tables))
        return tables

    monkeypatch.setattr("trendlake.cep_core.sharing.run_plans.KINDS", {**KINDS, "trends": _with_lanes(trends, counted)})
    return answered


def _with_lanes(kind: Any, run: Any) -> Any:
    return replace(kind, members=replace(kind.members, lanes=run))


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    """Up to 40 events in three windows; NULLs, equal times and values."""
    n = draw(st.integers(0, 40))

    def column(values: st.SearchStrategy[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(values, min_size=n, max_size=n)), kind)

    return pa.table(
        {
            "event_id": [f"e{i}" for i in range(n)],
            "event_type": column(st.sampled_from("ST"), pa.string()),
            "event_time": column(st.integers(0, 29).map(lambda s: s * 1_000_000), pa.timestamp("us", "UTC")),
            "x": column(NUMBERS, pa.int64()),
            "y": column(NUMBERS, pa.int64()),
            "z": column(NUMBERS, pa.float64()),
            "g": column(st.sampled_from(("g0", "g1", "g2", None)), pa.string()),
            "k": column(st.sampled_from("ab"), pa.string()),
        }
    )


@st.composite
def variants(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Two to seventy queries of one shape."""
    shape = draw(st.sampled_from(SHAPES))
    variables = ("s", "t") if "T" in shape["pattern"] else ("s",)
    counts = {"n": "COUNT(*)", **({"of": "COUNT(s)"} if draw(st.booleans()) else {})}
    base = {**shape, "within": "10 seconds", "return": counts}
    queries = []
    for _ in range(draw(st.sampled_from((2, 3, 5, 70)))):
        where = [
            draw(st.sampled_from(BOUNDS)).format(v=draw(st.sampled_from(variables)), c=draw(st.integers(0, 4)))
            for _ in range(draw(st.integers(1, 2)))
        ]
        queries.append({**base, "where": [*where, *shape.get("where", ())]})
    return queries


@pytest.mark.random
@pytest.mark.more_in_chaos
def test_lanes_as_alone(eager: list[int]) -> None:
    @examples(60)
    @given(streams(), variants(), st.sampled_from((None, range(2))))
    def compare(events: pa.Table, queries: list[dict[str, Any]], windows: range | None) -> None:
        plans = [compile_query(query, schema_of(events)) for query in queries]
        answers = dict(run_plans(plans, events, [windows] * len(plans)))
        for number, plan in enumerate(plans):
            assert shown(answers[number]) == shown(run_plan(plan, events, windows))

    compare()
    assert sum(eager) > share(150)


def test_counts_past_2_53_are_run_alone(eager: list[int]) -> None:
    n = 70
    events = pa.table(
        {
            "event_id": [f"e{i}" for i in range(n)],
            "event_type": ["S"] * n,
            "event_time": pa.array([i * 1_000_000 for i in range(n)], pa.timestamp("us", "UTC")),
            "x": list(range(n)),
        }
    )
    plans = [
        compile_query(
            {"pattern": "S s+", "where": [f"s.x >= {c}"], "return": {"n": "COUNT(*)"}, "within": "1 day"},
            schema_of(events),
        )
        for c in (0, 10, 60)
    ]
    answers = dict(run_plans(plans, events))
    assert [answers[number]["n"].to_pylist() for number in range(3)] == [[2**70 - 1], [2**60 - 1], [2**10 - 1]]
    assert eager == [1]


def test_masks() -> None:
    """Bit l of an event where all comparisons of lane l are true. NULL satisfies none."""
    x, y = index_of(pa.array([3, None, 1, 2])), index_of(pa.array([1, 1, None, 2]))
    of = [
        lanes.Lane((((x, [(0, 2)]),),), ((),)),
        lanes.Lane((((x, [(1, 3)]), (x, [(0, 2)]), (y, [(0, 2)])),), ((),)),
        lanes.Lane((((y, [(0, 1)]),),), ((),)),
    ]
    assert lanes.masks_of(of, 4).tolist() == [[0b100, 0b100, 0b001, 0b011]]
    assert lanes.masks_of(of * 21 + of[:1], 4).dtype == np.uint64
