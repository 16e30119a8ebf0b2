"""Overlapping windows without conditions between events: one pass over all of them against each window by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.engines import differences, from_table
from trendlake.cep_core import evaluate

pytestmark = pytest.mark.random

RETURN = {"n": "COUNT(*)", "a": "COUNT(A)", "sum": "SUM(A.x)", "mean": "AVG(A.x)", "top": "MAX(A.x)", "low": "MIN(A.x)"}


def events(n: int, spread: int, negative: bool) -> pa.Table:
    """n events of A, B and C at `spread` seconds, two groups; x is NULL at times."""
    rng = np.random.default_rng(n + spread)
    times = np.sort(rng.integers(0, spread, n)) * 1_000_000
    x = [None if v == 0 else int(v) for v in rng.integers(-9 if negative else 0, 10, n)]
    kinds = rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2]).tolist()
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"event_time": stamps, "event_type": kinds, "x": x, "g": rng.integers(0, 2, n)})


@pytest.mark.parametrize("pattern", ["A+", "SEQ(A+, B)+", "SEQ(A, B?, C{1,2}) OR A{2,}", "SEQ(NOT C, A, NOT C, B, A*)"])
@pytest.mark.parametrize(
    ("n", "spread", "within", "slide"),
    [(60, 50, 20, 3), (400, 900, 240, 7), (900, 300, 100, 10), (1500, 4000, 2000, 90), (80, 4000, 60, 11)],
)
def test_each_window_by_itself(pattern: str, n: int, spread: int, within: int, slide: int) -> None:
    """Counts of few digits, of up to 38 and of hundreds; ties; gaps in time; sums of both signs, extremes, NULLs."""
    table = events(n, spread, negative=n % 200 == 0)
    query = {"pattern": pattern, "where": ["[g]"], "return": RETURN, "group_by": ["g"]}
    sliding = query | {"within": f"{within} seconds", "slide": f"{slide} seconds"}
    actual = from_table(evaluate(sliding, table))
    seconds = table["event_time"].cast(pa.int64()).to_numpy() // 1_000_000
    expected: list[dict[str, Any]] = []
    for start in range(-(within // slide) * slide, spread, slide):
        inside = table.filter(pa.array((seconds >= start) & (seconds < start + within)))
        alone = query | {"within": "3650 days", "origin": "1900-01-01"}
        for row in from_table(evaluate(alone, inside)) if inside.num_rows else []:
            expected.append(row | {"window_start": start * 1_000_000, "window_end": (start + within) * 1_000_000})
    assert len(expected) > 3
    assert differences(expected, actual, ["g"]) == []
