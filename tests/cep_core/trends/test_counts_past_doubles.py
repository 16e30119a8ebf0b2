"""Windows in which a count on the way outgrows float64 while what ends there is little, nothing, or has extremes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pyarrow as pa
import pytest

from trendlake.cep_core import evaluate

pytestmark = pytest.mark.random

LONG = 1500
"""2^1500 chains of A are past float64."""

ASKED = {"n": "COUNT(*)", "a": "COUNT(A)", "top": "MAX(A.x)", "low": "MIN(A.x)", "mean": "AVG(A.x)"}


def ask(kinds: str, returned: dict[str, str], windows: dict[str, str], where: list[str]) -> list[dict[str, Any]]:
    """`SEQ(A+, B)`, x rising from 0 with each event, one window."""
    stamps = pa.array([i * 1_000_000 for i in range(len(kinds))], pa.timestamp("us", "UTC"))
    x = [float(i) for i in range(len(kinds))]
    events = pa.table({"event_time": stamps, "event_type": list(kinds), "x": x, "y": x})
    query = {"pattern": "SEQ(A+, B)", "where": where, "return": returned, "within": "3000 seconds"}
    rows: list[dict[str, Any]] = evaluate(query | windows, events).to_pylist()
    return [row for row in rows if row["window_start"].timestamp() == 0]


@pytest.mark.parametrize(
    ("returned", "windows"),
    list(itertools.product([{"n": "COUNT(*)"}, ASKED], [{}, {"slide": "1000 seconds"}])),
    ids=["count", "count, sliding", "all", "all, sliding"],
)
@pytest.mark.parametrize("more", [[], ["A.x > NEXT(A).x - 2000"], ["A.y <= NEXT(A).y"], ["A.x + NEXT(A).x >= 0"]])
def test_what_ends_is_what_is_told(returned: dict[str, str], windows: dict[str, str], more: list[str]) -> None:
    """No trend, no row; three trends are exactly three; 2^1500 - 1 have a logarithm, extremes and a mean. In the
    fast kernels; for a range of ranks, two inequalities, and pair by pair."""
    where = ["A.x <= NEXT(A).x", *more]
    assert ask("A" * LONG, returned, windows, where) == []

    (few,) = ask("AAB" + "A" * LONG, returned, windows, where)
    assert few["n"] == 3
    if "a" in returned:
        assert (few["a"], few["top"], few["low"], few["mean"]) == (4, 1.0, 0.0, 0.5)

    (many,) = ask("A" * LONG + "B", returned, windows, where)
    assert many["n"] is None
    assert math.isclose(many["n_log10"], LONG * math.log10(2), rel_tol=1e-9)
    if "a" in returned:
        assert math.isclose(many["a_log10"], math.log10(LONG) + (LONG - 1) * math.log10(2), rel_tol=1e-9)
        assert (many["top"], many["low"]) == (LONG - 1.0, 0.0)
        assert math.isclose(many["mean"], (LONG - 1) / 2, rel_tol=1e-9)
