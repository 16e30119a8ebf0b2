"""SUM and AVG are the exact sum, rounded once: in measures, in conditions, and of doubles too far apart for words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core import evaluate

pytestmark = pytest.mark.random

NEAR = st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(-60, -20))
"""Doubles whose sums fit two words."""
ANY = st.floats(allow_nan=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
HALVES = st.sampled_from([2.0**53, 1.0, 2.0**-1, 2.0**-53, -1.0, 2.0**53 + 2, 0.1, -(2.0**-53)])
"""Sums between two doubles."""


def rounded(values: Sequence[float], mean: bool) -> float | None:
    if not values:
        return None
    if any(map(math.isinf, values)):
        whole = sum(value for value in values if math.isinf(value))
        return None if math.isnan(whole) else whole
    exact = sum(map(Fraction, values), Fraction(0)) / (len(values) if mean else 1)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def table_of(columns: dict[str, Any], types: dict[str, pa.DataType]) -> pa.Table:
    count = len(next(iter(columns.values())))
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at) for at in range(count)]
    given = {"event_id": pa.array(range(count)), "event_time": pa.array(times, pa.timestamp("us", "UTC"))}
    given |= {"event_type": pa.array(["T"] * count)}
    return pa.table(given | {name: pa.array(values, types[name]) for name, values in columns.items()})


def asked(events: pa.Table, measures: str, clause: str) -> list[dict[str, Any]]:
    text = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY event_time MEASURES {measures} {clause})"
    return evaluate({"kind": "match_recognize", "pattern": text}, events).to_pylist()


@examples(300)
@given(
    st.lists(st.none() | st.one_of(NEAR, HALVES) | ANY, min_size=1, max_size=9) | st.lists(NEAR | HALVES, min_size=1)
)
def test_measures_of_doubles(values: list[float | None]) -> None:
    events = table_of({"y": values}, {"y": pa.float64()})
    rows = asked(
        events,
        "SUM(y) AS total, AVG(y) AS mean, FINAL SUM(y) AS whole, MIN(y) AS least, MAX(y) AS most",
        "ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS event_type = 'T'",
    )
    assert len(rows) == len(values)
    known = [value for value in values if value is not None]
    for at, row in enumerate(rows, 1):
        seen = [value for value in values[:at] if value is not None]
        assert row["total"] == rounded(seen, mean=False)
        assert row["mean"] == rounded(seen, mean=True)
        assert row["whole"] == rounded(known, mean=False)
        assert (row["least"], row["most"]) == ((min(seen), max(seen)) if seen else (None, None))


@examples(200)
@given(st.lists(st.none() | WHOLE | st.integers(-9, 9), min_size=1, max_size=9))
def test_measures_of_whole_numbers(values: list[int | None]) -> None:
    events = table_of({"x": values}, {"x": pa.int64()})
    clause = "ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS event_type = 'T'"
    rows = asked(events, "AVG(x) AS mean, MIN(x) AS least, MAX(x) AS most", clause)
    assert len(rows) == len(values)
    for at, row in enumerate(rows, 1):
        seen = [value for value in values[:at] if value is not None]
        assert row["mean"] == (float(Fraction(sum(seen), len(seen))) if seen else None)
        assert (row["least"], row["most"]) == ((min(seen), max(seen)) if seen else (None, None))


@examples(300)
@given(st.lists(NEAR | HALVES, min_size=1, max_size=9) | st.lists(ANY, min_size=1, max_size=4))
def test_conditions_on_doubles(values: list[float]) -> None:
    """Each row holds the sum and the mean that its condition asks for, so that one match has all rows."""
    sums, means = ([rounded(values[: at + 1], mean) for at in range(len(values))] for mean in (False, True))
    columns = {"y": values, "total": sums, "mean": means}
    events = table_of(columns, dict.fromkeys(columns, pa.float64()))
    condition = "(SUM(y) = total OR SUM(y) IS NULL AND total IS NULL) AND (AVG(A.y) = mean OR AVG(y) IS NULL)"
    (row,) = asked(events, "COUNT(*) AS n", f"PATTERN (A+ $) DEFINE A AS {condition}")
    assert row["n"] == len(values)


@examples(200)
@given(st.lists(WHOLE, min_size=1, max_size=6) | st.lists(st.integers(-(2**55), 2**55), min_size=1, max_size=9))
def test_conditions_on_whole_numbers(values: list[int]) -> None:
    means = [float(Fraction(sum(values[: at + 1]), at + 1)) for at in range(len(values))]
    events = table_of({"x": values, "mean": means}, {"x": pa.int64(), "mean": pa.float64()})
    (row,) = asked(events, "COUNT(*) AS n", "PATTERN (A+ $) DEFINE A AS AVG(x) = mean")
    assert row["n"] == len(values)
