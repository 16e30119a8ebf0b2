"""Same events, same bytes: no bit of a result shows the order of the rows, which windows are computed together, or
which partitions are beside a group's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trendlake.cep_core import run_plan
from trendlake.cep_core.engine import compile_query
from trendlake.cep_core.events.schema import schema_of

pytestmark = pytest.mark.random

TIME = pa.timestamp("us", tz="UTC")


def events(n: int, partitions: int, seed: int, gap: int = 1_000_000) -> pa.Table:
    """Events of A, B and S, some at one time; `x` of many sizes and both signs, `price` as prices are."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.integers(0, 3, n)) * gap // 2
    x = rng.normal(0, 1, n) * 10.0 ** rng.integers(-6, 7, n)
    part = rng.integers(0, partitions, n)
    return pa.table(
        {
            "event_id": [f"e{i:07}" for i in range(n)],
            "event_time": pa.array(time, TIME),
            "event_type": pa.array(rng.choice(["A", "B", "S", "S"], n)),
            "p": pa.array(part),
            "g": pa.array([f"g{value % 2}" for value in part]),
            "x": pa.array([None if i % 11 == 0 else float(value) for i, value in enumerate(x)], pa.float64()),
            "price": pa.array(np.round(rng.uniform(1, 200, n), 2)),
        }
    )


MEASURES = {
    "n": "COUNT(*)",
    "k": "COUNT(S)",
    "total": "SUM(S.x)",
    "mean": "AVG(S.x)",
    "paid": "SUM(S.price)",
    "usual": "AVG(S.price)",
    "low": "MIN(S.x)",
}
SUMS = {name: text for name, text in MEASURES.items() if name != "low"}

QUERIES: Mapping[str, Mapping[str, Any]] = {
    "partitions of one group": {
        "pattern": "SEQ(A a, S+, B b)",
        "where": ["[p]", "S.price > NEXT(S).price"],
        "group_by": ["g"],
        "within": "40 minutes",
    },
    "windows that overlap, ordered": {
        "pattern": "S+",
        "where": ["S.price > NEXT(S).price"],
        "within": "40 seconds",
        "slide": "7 seconds",
    },
    "windows that overlap, no condition": {"pattern": "SEQ(A a, S+)", "within": "30 seconds", "slide": "10 seconds"},
    "counts beyond 128 bits": {"pattern": "S+", "where": [], "within": "5 minutes", "slide": "2 minutes"},
    "counts beyond float64": {"pattern": "S+", "where": ["S.x != NEXT(S).x"], "within": "50 minutes"},
    "two inequalities": {
        "pattern": "S+",
        "where": ["S.price > NEXT(S).price", "S.x <= NEXT(S).x + 50"],
        "within": "5 minutes",
        "slide": "100 seconds",
    },
    "pairs tried": {"pattern": "S+", "where": ["S.price + NEXT(S).x > 3"], "within": "2 minutes", "slide": "1 minute"},
    "next match": {
        "pattern": "SEQ(A a, S+)",
        "where": ["S.price > NEXT(S).price"],
        "within": "3 minutes",
        "slide": "1 minute",
        "select": "skip_till_next_match",
    },
    "contiguous": {"pattern": "S+", "within": "3 minutes", "slide": "1 minute", "select": "contiguous"},
    "scopes": {"pattern": "SEQ(A a, S+)", "where": ["[S.g]"], "within": "2 minutes", "slide": "50 seconds"},
    "a NOT": {"pattern": "SEQ(A a, NOT B, S+)", "within": "2 minutes", "slide": "1 minute"},
    "empty windows": {"pattern": "SEQ(B b, S+)", "within": "1 minute", "empty_windows": True},
}


def answers(table: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Rows by (group, window), doubles as their bytes."""
    keys = [name for name in ("g", "window_start") if name in table.column_names]
    rest = [name for name in table.column_names if name not in keys]
    collected = {}
    for row in table.to_pylist():
        cells = (row[name].hex() if isinstance(row[name], float) else row[name] for name in rest)
        collected[tuple(row[name] for name in keys)] = tuple(cells)
    assert len(collected) == table.num_rows
    return collected


def otherwise(plan: Any, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The same events, asked in other ways."""
    rng = np.random.default_rng(5)
    for turn in range(3):
        yield f"permutation {turn}", run_plan(plan, table.take(pa.array(rng.permutation(table.num_rows))))
    time = table["event_time"].cast(pa.int64()).to_pylist()
    windows = sorted({j for moment in time for j in plan.windows.holding(moment)})
    for size in (1, 3):
        parts = [
            run_plan(plan, table, range(windows[i], windows[min(i + size, len(windows)) - 1] + 1))
            for i in range(0, len(windows), size)
        ]
        yield f"{size} windows at a time", pa.concat_tables(parts)


SOME = ("windows that overlap, ordered", "windows that overlap, no condition", "counts beyond float64")
CASES = [
    *(pytest.param(name, SUMS, id=f"sums, {name}") for name in QUERIES),
    *(pytest.param(name, MEASURES, id=f"extremes, {name}") for name in SOME),
    *(pytest.param(name, {"n": "COUNT(*)"}, id=f"counts, {name}") for name in SOME),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "measures"), CASES)
def test_no_bit_shows_how_it_was_computed(name: str, measures: Mapping[str, str]) -> None:
    """Row orders; windows together and alone."""
    query = {"kind": "trends", **QUERIES[name], "return": measures}
    table = events(700, 19, 3)
    plan = compile_query(query, schema_of(table))
    expected = answers(run_plan(plan, table))
    assert len(expected) > 3 or "slide" not in query
    for how, actual in otherwise(plan, table):
        other = answers(actual)
        wrong = [key for key in expected.keys() | other.keys() if expected.get(key) != other.get(key)]
        assert not wrong, (how, len(wrong), wrong[0], expected.get(wrong[0]), other.get(wrong[0]))


def test_partitions_of_a_group() -> None:
    """97 partitions in a group, as seen: six orders of 5,000 rows gave four sums."""
    table = events(5_000, 97, 1)
    query = {
        "pattern": "S+",
        "where": ["[p]", "S.price > NEXT(S).price"],
        "within": "2 days",
        "return": {"total": "SUM(S.x)", "mean": "AVG(S.x)"},
    }
    plan = compile_query(query, schema_of(table))
    rng = np.random.default_rng(2)
    actual = {str(answers(run_plan(plan, table.take(pa.array(rng.permutation(5_000)))))) for _ in range(6)}
    assert len(actual) == 1


@pytest.mark.parametrize("select", ["contiguous", "partition_contiguous"])
def test_sequences_that_repeat(select: str) -> None:
    """Which of two events with one time and sequence comes first does not depend on which row does."""
    table = events(400, 2, 8)
    table = table.append_column("turn", pa.array([i % 2 for i in range(400)]))
    query = {"kind": "trends", "pattern": "SEQ(A a, S+)", "within": "1 minute", "select": select, "return": SUMS}
    schema = schema_of(table, sequence="turn")
    plan = compile_query(query, schema)
    rng = np.random.default_rng(4)
    actual = {str(answers(run_plan(plan, table.take(pa.array(rng.permutation(400)))))) for _ in range(5)}
    assert len(actual) == 1
