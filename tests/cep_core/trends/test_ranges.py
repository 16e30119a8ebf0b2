"""Several inequalities of one expression, a range of ranks, against a plain O(n^2) recurrence in Python's whole numbers
and against the methods that do not see the range (divide and conquer, pair by pair)."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cep_core.trends.test_divide_and_conquer import OPS, stream, table
from tests.cep_core.trends.test_long_windows import agree, chains
from tests.random.profile import examples
from tests.support.engines import differences, from_table
from trendlake.cep_core import compile_query, evaluate, explain
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.trends.compile.predecessors import PairPredicate

pytestmark = pytest.mark.random


@pytest.mark.parametrize(("first", "second"), list(itertools.product(OPS, OPS)))
@pytest.mark.parametrize("shared", ["earlier", "later"])
def test_a_range(first: str, second: str, shared: str) -> None:
    """One rank and one range an event; few and many values, ties in time, NULLs, counts beyond float64."""
    for n, values, spread in ((64, 9, 190), (323, 40, 64), (900, 300, 5000)):
        times, columns = stream(n, n + len(first), values, spread)
        x, y = columns["x"], columns["y"]

        def follows(v: int, w: int, x: list[int | None] = x, y: list[int | None] = y) -> bool:
            mine, bound = (x[v], w) if shared == "earlier" else (x[w], v)
            if mine is None or x[bound] is None or y[bound] is None:
                return False
            bounds = (x[bound], y[bound])
            if shared == "earlier":
                return OPS[first](mine, bounds[0]) and OPS[second](mine, bounds[1])
            return OPS[first](bounds[0], mine) and OPS[second](bounds[1], mine)

        if shared == "earlier":
            where = [f"S.x {first} NEXT(S).x", f"S.x {second} NEXT(S).y"]
        else:
            where = [f"S.x {first} NEXT(S).x", f"S.y {second} NEXT(S).x"]
        query = {"pattern": "S+", "where": where}
        events = table(times, "S" * n, columns)
        plan = compile_query(query | {"return": {"n": "COUNT(*)"}, "within": "1 day"}, schema_of(events))
        assert f"range of ranks (segment tree), because inequalities of one value of the {shared} event" in explain(
            plan
        )
        agree(chains(times, follows), query, events)


DOUBLES = (-math.inf, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 2.0**-52, 2.0, 1e300, math.inf, math.nan, None)
CELLS = {
    "x": st.sampled_from((-3, -1, 0, 1, 1, 2, 3, 2**53 - 1, None)),
    "y": st.sampled_from(DOUBLES),
    "z": st.sampled_from((-2.0, -0.0, 0.0, 1.0, 1.5, math.nan, None)),
    "d": st.sampled_from([None, *map(Decimal, ("-1.50", "0.00", "0.01", "1.00", "2.00"))]),
    "t": st.sampled_from(("", "a", "b", "ba", None)),
    "g": st.sampled_from(("u", "v")),
}
TYPES = {
    "x": pa.int64(),
    "y": pa.float64(),
    "z": pa.float64(),
    "d": pa.decimal128(9, 2),
    "t": pa.string(),
    "g": pa.string(),
}
CONDITIONS = (
    ("{v}.x > NEXT({w}).x", "{v}.x <= NEXT({w}).x + 2"),
    ("{v}.x >= NEXT({w}).y", "{v}.x < NEXT({w}).z"),
    ("{v}.y < NEXT({w}).y", "{v}.y >= NEXT({w}).z", "{v}.y <= NEXT({w}).x"),
    ("{v}.y <= NEXT({w}).x", "{v}.z > NEXT({w}).x"),
    ("NEXT({w}).z BETWEEN {v}.z - 1 AND {v}.z + 1",),
    ("{v}.d < NEXT({w}).d", "{v}.d > NEXT({w}).z"),
    ("{v}.t <= NEXT({w}).t", "'a' <= {v}.t", "{v}.t > NEXT({w}).g"),
    ("{v}.g = NEXT({w}).g", "{v}.z < NEXT({w}).z + 1", "{v}.z > NEXT({w}).z - 1"),
)
PATTERNS = (
    ("S+", "SS"),
    ("SEQ(S+, T)", "SS"),
    ("SEQ(S+, T)", "ST"),
    ("SEQ(S, NOT C, T)+", "ST"),
    ("SEQ(S, NOT C, T)+", "TS"),
    ("SEQ(S, NOT SEQ(C, S), T)+", "ST"),
    ("SEQ(NOT C, S+, NOT T)", "SS"),
    ("S+ AND SEQ(S, T?)", "SS"),
)
"""Each with the variables of the conditions. NOTs of one event, of several, and at the ends."""
WINDOWS = ({"within": "40 seconds"}, {"within": "7 seconds"}, {"within": "9 seconds", "slide": "4 seconds"})


@st.composite
def questions(draw: st.DrawFn) -> tuple[dict[str, Any], pa.Table]:
    size = draw(st.integers(0, 30))
    rows = draw(st.lists(st.tuples(st.integers(0, 25), st.sampled_from("SSSTTC"), *CELLS.values()), max_size=size))
    names = ("time", "kind", *CELLS)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    events = pa.table(
        {
            "event_time": pa.array([t * 1_000_000 for t in columns["time"]], pa.timestamp("us", "UTC")),
            "event_type": pa.array(columns["kind"], pa.string()),
            **{name: pa.array(columns[name], kind) for name, kind in TYPES.items()},
        }
    )
    pattern, (earlier, later) = draw(st.sampled_from(PATTERNS))
    where = [condition.format(v=earlier, w=later) for condition in draw(st.sampled_from(CONDITIONS))]
    measures = {"n": "COUNT(*)"}
    if "AND" not in pattern:
        measures |= {"s": "COUNT(S)", "sum": "SUM(S.x)", "low": "MIN(S.z)", "high": "MAX(S.d)"}
    query = {
        "pattern": pattern,
        "where": [*(["[g]"] if draw(st.booleans()) else []), *where],
        "return": measures,
        **draw(st.sampled_from(WINDOWS)),
    }
    return query, events


@examples(300)
@given(questions())
def test_a_range_is_what_other_methods_find(question: tuple[dict[str, Any], pa.Table]) -> None:
    """NULL, NaN, infinities, zeros with a sign, decimals, texts, mixed types; equalities, NOTs, windows, partitions."""
    query, events = question
    ours = from_table(evaluate(query, events))
    with patch.object(PairPredicate, "common", None):
        theirs = from_table(evaluate(query, events))
    assert differences(theirs, ours) == []


def test_a_range_is_what_divide_and_conquer_finds_in_every_tier() -> None:
    """Tiers F, U and D: counts below 2^53, of 38 digits and of hundreds, with sums and extremes, by window."""
    rng = np.random.default_rng(8)
    n = 3000
    events = table(range(n), "S" * n, {"x": [int(v) for v in rng.integers(0, 500, n)]})
    query = {
        "pattern": "S+",
        "where": ["S.x > NEXT(S).x", "S.x <= NEXT(S).x + 200"],
        "return": {"n": "COUNT(*)", "s": "COUNT(S)", "sum": "SUM(S.x)", "low": "MIN(S.x)", "high": "MAX(S.x)"},
    }
    for within in ("60 seconds", "500 seconds", "1 day"):
        ours = from_table(evaluate(query | {"within": within}, events))
        with patch.object(PairPredicate, "common", None):
            theirs = from_table(evaluate(query | {"within": within}, events))
        assert differences(theirs, ours) == []
