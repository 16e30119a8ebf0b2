"""The parts of a small revision (`pipelines.revision.here`) beside the slow and obvious way to say the same."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import CI
from trendlake.cep_core.events.windows import Windows
from trendlake.pipelines.lake.here.read import CHANGE
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.results.publication import DELETE, INSERT, OPERATION, UPDATE
from trendlake.pipelines.revision.changed_rows import NET, net_changes
from trendlake.pipelines.revision.difference import WAS
from trendlake.pipelines.revision.here import touched
from trendlake.pipelines.revision.row_diff import differing

pytestmark = pytest.mark.random

REALS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), None])
TEXTS = st.sampled_from(["", "a", "b", None])
LARGE = st.sampled_from([Decimal(10**37), Decimal(10**37 + 1), None])
"""One double, two numbers."""
LISTS = st.sampled_from([[], ["a"], ["a", None], ["b", "a"], None])
SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "real": pa.float64(),
        "large": pa.decimal128(38, 0),
        "value": pa.float64(),
        "events": pa.list_(pa.string()),
        "computed_at": pa.int64(),
    }
)
KEY = ("text", "real", "large")
ROWS = st.lists(
    st.tuples(TEXTS, REALS, LARGE, REALS, LISTS, st.integers(0, 3)),
    max_size=12,
    unique_by=lambda row: tuple(plain(value) for value in row[:3]),
)


def plain(value: Any) -> Any:
    """One form for all that are the same value."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return tuple(value) if isinstance(value, list) else value


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@given(old=ROWS, new=ROWS)
@CI
def test_what_differs(old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    """By key, whatever its values; who computed a row and when is no difference."""
    then = {tuple(map(plain, row[:3])): row for row in old}
    now = {tuple(map(plain, row[:3])): row for row in new}
    expected = {key: (INSERT, row) for key, row in now.items() if key not in then}
    expected |= {key: (DELETE, row) for key, row in then.items() if key not in now}
    for key, row in now.items():
        if key in then and list(map(plain, then[key][:5])) != list(map(plain, row[:5])):
            expected[key] = (UPDATE, row)
    difference = differing(table(old), table(new), KEY)
    rows, counts = difference.operations("value"), difference.counts
    operations = {}
    for row in rows.to_pylist():
        values = tuple(row[name] for name in SCHEMA.names)
        key = tuple(map(plain, values[:3]))
        operations[key] = (row[OPERATION], values)
        assert plain(row[WAS]) == (plain(then[key][3]) if key in then else None)
    assert len(operations) == rows.num_rows
    assert {key: (word, [*map(plain, row)]) for key, (word, row) in operations.items()} == {
        key: (word, [*map(plain, row)]) for key, (word, row) in expected.items()
    }
    words = Counter(word for word, _ in expected.values())
    assert counts == {word: words[word] for word in (INSERT, UPDATE, DELETE)}


def test_rows_that_share_a_key() -> None:
    """All of them go and the new one comes, though it is equal to one; MERGE is given the key once, to delete."""
    first, second = ("a", 1.0, 1), ("b", 2.0, 2)
    old = [(*first, 5, None, 1), (*first, 5, None, 2), (*second, 5, None, 1)]
    difference = differing(table(old), table([(*first, 5, None, 3), (*second, 5, None, 3)]), KEY)
    assert difference.counts == {INSERT: 1, UPDATE: 0, DELETE: 2}
    assert difference.deleted.tolist() == [0, 1]
    assert difference.changes().gone.num_rows == 2
    assert sorted(difference.operations("value")[OPERATION].to_pylist()) == [DELETE, INSERT]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
        st.sampled_from(["insert", "delete", "update"]),
        st.integers(0, 2),
    ),
    max_size=20,
)


@given(steps=STEPS)
@CI
def test_what_is_left_of_the_feed(steps: list[tuple[str, int, str, int]]) -> None:
    """A row that came as often as it went has not changed."""
    feed: list[tuple[str, int, str]] = []
    for name, value, word, then in steps:
        if word == "update":
            feed += [(name, then, "update_preimage"), (name, value, "update_postimage")]
        else:
            feed.append((name, value, word))
    expected: Counter[tuple[str, int]] = Counter()
    for name, value, word in feed:
        expected[name, value] += 1 if word in ("insert", "update_postimage") else -1
    schema = pa.schema({"name": pa.string(), "value": pa.int64(), CHANGE: pa.string()})
    feed_table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in feed], schema)
    net = net_changes(feed_table, ["name", "value"]).to_pylist()
    assert {(row["name"], row["value"]): row[NET] for row in net} == {k: n for k, n in expected.items() if n}


def test_rows_without_an_order_are_left_to_spark() -> None:
    feed_table = pa.table({"items": pa.array([["a"]]), CHANGE: ["insert"]})
    assert isinstance(tried(lambda: net_changes(feed_table, ["items"])), NotHere)


@given(
    within=st.integers(1, 40),
    slide=st.integers(1, 20),
    origin=st.integers(-10, 10),
    events=st.lists(
        st.tuples(st.integers(-60, 60), st.sampled_from("ABC"), st.sampled_from([None, 0, 1, 5, 30])), max_size=6
    ),
    spans=st.lists(st.integers(-20, 20), max_size=4, unique=True),
    every=st.booleans(),
    lasting=st.booleans(),
)
@CI
def test_which_windows_an_event_touches(
    within: int,
    slide: int,
    origin: int,
    events: list[tuple[int, str, int | None]],
    spans: list[int],
    every: bool,
    lasting: bool,
) -> None:
    """Those that hold it, or one of its moments if it lasts, and are published."""
    windows, kinds = Windows(within, slide, origin), None if every else ("A", "B")
    plan: Any = SimpleNamespace(
        windows=windows,
        event_types=kinds,
        schema=SimpleNamespace(event_time="at", event_type="type"),
        interval_start="start" if lasting else None,
    )
    edges = sorted(spans)
    published = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    inside = {j for a, b in published for j in range(a, b + 1)}
    expected = {
        j
        for time, kind, length in events
        if kinds is None or kind in kinds
        for moment in (range(time - length, time) if lasting and length else [time])
        for j in windows.holding(moment)
        if j in inside
    }
    times = pa.array([time for time, _, _ in events], pa.timestamp("us", "UTC"))
    starts = [None if length is None else time - length for time, _, length in events]
    columns = {"type": pa.array([kind for _, kind, _ in events], pa.string()), "start": pa.array(starts, times.type)}
    changed = pa.table({"at": times, **columns})
    stretches = touched(plan, changed, published)
    assert [j for a, b in stretches for j in range(a, b + 1)] == sorted(expected)
