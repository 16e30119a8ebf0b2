"""The order by counting is that of a stable argsort."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.cep_core.events import order as module
from trendlake.cep_core.events.kernels.order import FEW, sort_rows
from trendlake.cep_core.events.order import order_of

pytestmark = pytest.mark.random

EDGES = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1]
WHOLE = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5))
REAL = st.one_of(
    st.sampled_from([-np.inf, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2.0**-52, 1e308, np.inf]),
    st.floats(allow_nan=False),
    st.integers(-4, 4).map(lambda steps: 1.0 + steps * 2.0**-52),
)


@examples(300)
@given(st.one_of(st.lists(WHOLE, min_size=1).map(np.array), st.lists(REAL, min_size=1).map(np.array)))
def test_any_numbers(values: Any) -> None:
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    with patch.object(module, "SMALL", 0):
        assert order_of(values).tolist() == np.argsort(values, kind="stable").tolist()


def drawn(kind: str, n: int) -> Any:
    rng = np.random.default_rng(n)
    if kind == "few":
        return rng.integers(-3, 3, n)
    if kind == "codes":
        return rng.integers(0, n, n).astype(np.int32)
    if kind == "wide":
        return rng.integers(-(2**63), 2**63 - 1, n)
    if kind == "skew":  # all but one differ in their last bits only
        return np.append(1.0 + rng.integers(0, 2**12, n - 1) * 2.0**-52, 1e300)
    if kind == "pairs":  # too close for the bits that there is room for, two by two
        values = np.repeat(rng.random(n // 2) * 1e9, 2)
        values[::2] = np.nextafter(values[::2], np.inf)
        return values
    return rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n)


@pytest.mark.parametrize("n", [2_000, 70_001])
@pytest.mark.parametrize("kind", ["few", "codes", "wide", "skew", "pairs", "normal"])
def test_many_numbers(kind: str, n: int) -> None:
    values = drawn(kind, n)
    assert np.array_equal(order_of(values), np.argsort(values, kind="stable"))


def test_numbers_that_are_too_close_are_left_to_comparison() -> None:
    """One digit of room would be enough for each of them, but not beside one so far away."""
    close = 1.0 + np.arange(FEW + 8)[::-1] * 2.0**-52
    values = np.concatenate([close, np.full(4_000, -1e300), np.full(4_000, 1e300)])
    rows, spare = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    assert sort_rows(values.view(np.int64), True, rows, spare) == -1
    assert np.array_equal(order_of(values), np.argsort(values, kind="stable"))
