"""Windows without overlap: trees and totals for each of them give what trees over all of them give, and what each
window gives by itself."""

from __future__ import annotations

import datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.agreement import Tally, disagreement
from tests.random.profile import examples
from tests.random.strategies import questions
from tests.support.engines import differences, from_table
from trendlake.cep_core import evaluate
from trendlake.cep_core.trends.run import exact_sums

pytestmark = pytest.mark.random

TUMBLING = st.sampled_from([(1, 1), (3, 3), (4, 6), (8, 8), (5, 17), (20, 20)])
"""(within, slide) in seconds: of one event, of several, and with time between them."""


@examples(300)
@given(questions(windows=False), TUMBLING)
def test_any_query(question: Any, window: tuple[int, int]) -> None:
    """The whole language: as the reference, and as with one tree for all windows."""
    query, rows = question
    query = query | {"within": f"{window[0]} seconds", "slide": f"{window[1]} seconds"}
    query.pop("origin", None)
    assert disagreement((query, rows), Tally()) == []
    with patch.object(exact_sums, "by_window", lambda slice_, tasks: slice_):
        assert disagreement((query, rows), Tally()) == []


WHERE = (
    ["S.x > NEXT(S).x"],
    ["[g]", "S.x <= NEXT(S).x"],
    ["S.g = NEXT(S).g", "S.x > NEXT(S).y"],
    ["S.g = NEXT(S).g"],
    ["S.x > NEXT(S).x", "S.x <= NEXT(S).x + 9"],
    [],
)
RETURN = {"n": "COUNT(*)", "s": "COUNT(S)", "sum": "SUM(S.x)", "low": "MIN(S.y)"}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("within", "slide"), [(100, 100), (900, 900), (60, 240)])
@pytest.mark.parametrize("returned", [{"n": "COUNT(*)"}, RETURN])
def test_each_window_by_itself(where: list[str], within: int, slide: int, returned: dict[str, str]) -> None:
    """Counts of few digits, of 38 and of hundreds; two groups, NULLs; ties where sums are asked for."""
    rng = np.random.default_rng(within)
    n = 4000
    times = np.sort(rng.integers(0, n, n)) if len(returned) > 1 else np.arange(n)
    x, y = ([None if v == 0 else int(v) for v in rng.integers(0, 40, n)] for _ in range(2))
    table = pa.table(
        {
            "event_time": pa.array(times * 1_000_000, pa.timestamp("us", "UTC")),
            "event_type": ["S"] * n,
            "x": x,
            "y": y,
            "g": rng.integers(0, 2, n),
        }
    )
    query = {"pattern": "S+", "where": where, "return": returned}
    windows = {"within": f"{within} seconds", "slide": f"{slide} seconds"}
    ours = from_table(evaluate(query | windows, table))
    expected: list[dict[str, Any]] = []
    for start in range(0, n, slide):
        inside = table.filter(pa.array((times >= start) & (times < start + within)))
        first = datetime.datetime.fromtimestamp(start, datetime.UTC).isoformat()
        alone = query | {"within": f"{within} seconds", "slide": "3650 days", "origin": first}
        expected += from_table(evaluate(alone, inside))
    assert len(expected) == -(-n // slide)
    assert differences(expected, ours) == []
