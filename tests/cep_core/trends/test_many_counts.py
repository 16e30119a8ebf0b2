"""Counts past 2^53 of many cells at once: as one by one in Python's whole numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core import evaluate
from trendlake.cep_core.trends.kernels.rounding import show_counts
from trendlake.cep_core.trends.kernels.scaled import RADIX
from trendlake.cep_core.trends.run.exact_arithmetic import LARGEST_COUNT, Number, count_log10
from trendlake.cep_core.trends.run.exact_sums import Cells

pytestmark = pytest.mark.random

EDGES = [0, 1, 2**53 - 1, 2**53 + 1, 2**64 - 1, 2**64, 2**117 + 2**64, LARGEST_COUNT, LARGEST_COUNT + 1, 2**128 - 1]
HALVES = st.builds(
    lambda bits, shift, more: (((bits | 2**53) * 2 + 1) << shift) + more,
    st.integers(0, 2**53 - 1),
    st.integers(0, 73),
    st.integers(-1, 1),
)
"""Halfway between two float64s, and next to that."""
EXACT = st.one_of(
    st.sampled_from(EDGES), st.integers(0, 2**128 - 1), HALVES, st.integers(0, 128).map(lambda b: 2**b - 1)
)
SCALED = st.tuples(
    st.floats(2.0**-300, 2.0**300, exclude_max=True), st.integers(1, 10**6), st.sampled_from([2.0**-50, 2.0**-30, 1e-9])
)


def shown(words: Any, exact: Any, leading: Any, error: Any) -> tuple[list[float], list[bool], list[bool]]:
    n = len(exact)
    results = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    show_counts(words, exact, leading, RADIX, error, *results)
    return tuple(result.tolist() for result in results)  # type: ignore[return-value]


@examples(1000)
@given(st.lists(EXACT, min_size=1, max_size=20))
def test_exact_counts(counts: list[int]) -> None:
    n = len(counts)
    words = np.array([(count & (2**64 - 1), count >> 64) for count in counts], np.uint64)
    logarithms, fits, sure = shown(words, np.ones(n, np.bool_), np.zeros((n, 2)), np.zeros(n))
    for count, logarithm, holds, certain in zip(counts, logarithms, fits, sure, strict=True):
        assert holds == (count <= LARGEST_COUNT)
        assert certain or not holds
        if certain and count:
            assert logarithm == count_log10(Number(count))
        assert count or logarithm == 0.0


@examples(1000)
@given(SCALED)
def test_counts_within_an_error(number: tuple[float, int, float]) -> None:
    top, e, error = number
    (logarithm,), (holds,), (certain,) = shown(
        np.zeros((1, 2), np.uint64), np.zeros(1, np.bool_), np.array([(top, float(e))]), np.array([error])
    )
    expected = count_log10(Number.of(top, 0.0, float(e), error))
    assert not holds
    assert (logarithm if certain else None) == expected


@pytest.mark.parametrize("pattern", ["S+", "SEQ(S+, T?)"])
@pytest.mark.parametrize("where", [[], ["S.x >= NEXT(S).x"]])
@pytest.mark.parametrize(
    "windows", [{"within": "3 minutes"}, {"within": "8 minutes"}, {"within": "9 minutes", "slide": "2 minutes"}]
)
def test_tables(pattern: str, where: list[str], windows: dict[str, str]) -> None:
    """From counts of few digits to those past float64, some zero beside others: equal to the last bit."""
    rng = np.random.default_rng(3)
    n = 3000
    kinds = ["T" if i % 700 == 699 else "S" for i in range(n)]
    x = [int(v) for v in np.sort(rng.integers(0, 9, n))[::-1]]
    events = pa.table(
        {
            "event_time": pa.array(np.arange(n) * 1_000_000, pa.timestamp("us", "UTC")),
            "event_type": kinds,
            "x": x,
            "g": rng.choice([0, 0, 0, 1, 2], n),
        }
    )
    query = {
        "pattern": pattern,
        "where": ["[g]", *where],
        "group_by": ["g"],
        "return": {"n": "COUNT(*)", "s": "COUNT(S)", "t": "COUNT(T)", "low": "MIN(S.x)"}
        if "T" in pattern
        else {"n": "COUNT(*)"},
    } | windows
    order = [("g", "ascending"), ("window_start", "ascending")]
    ours = evaluate(query, events).sort_by(order)
    with patch.object(Cells, "counted", property(lambda cells: np.zeros(len(cells.keys), np.bool_))):
        theirs = evaluate(query, events).sort_by(order)
    assert ours.equals(theirs)
    assert ours.num_rows > 10
    counts = ours["n"].to_pylist()
    assert any(count is not None and count > 2**53 for count in counts) or None in counts
    for count, logarithm in zip(counts, ours["n_log10"].to_pylist(), strict=True):
        if count:
            assert math.isclose(logarithm, float(Decimal(count).log10()), rel_tol=1e-12, abs_tol=1e-15)
