"""COUNT(V), SUM, AVG, MIN and MAX where numbers are large, cancel, or have no exact double.

In S+ over n events each event occurs in 2^(n-1) trends, so every measure has a closed form.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.reference.trends.measures import counted, double, log10
from tests.support.engines import differences, kernels

pytestmark = pytest.mark.random

RETURN = {
    "n": "COUNT(*)",
    "k": "COUNT(S)",
    "total": "SUM(S.v)",
    "mean": "AVG(S.v)",
    "low": "MIN(S.v)",
    "high": "MAX(S.v)",
}
WITHIN = 7 * 86_400


def ask(values: list[int] | list[float]) -> dict[str, Any]:
    """The kernels' one row for S+ over one event a second."""
    rows = [{"id": f"e{n:06}", "type": "S", "time": n, "v": value} for n, value in enumerate(values)]
    query = {"kind": "trends", "pattern": "S+", "return": RETURN, "within": "7 days"}
    (row,) = kernels(query, rows)
    return row


def closed_form(values: list[int] | list[float]) -> dict[str, Any]:
    """The same row in exact arithmetic."""
    occurrences = 2 ** (len(values) - 1)
    total = sum(map(Fraction, values)) * occurrences
    return {
        "window_start": 0,
        "window_end": WITHIN * 1_000_000,
        **counted("n", 2 * occurrences - 1),
        **counted("k", occurrences * len(values)),
        "total": double(total),
        "total_log10": log10(total),
        "mean": float(total / (occurrences * len(values))),
        "low": min(values),
        "high": max(values),
    }


@pytest.mark.parametrize("events", [1, 2, 60, 127, 1000, 1100, 3000])
@pytest.mark.parametrize(
    "cycle",
    [
        pytest.param([3, 1, 4, 1, 5], id="integers"),
        pytest.param([7, -7, 1, -1], id="integers that cancel"),
        pytest.param([0.5, -0.25, -0.25, 0.0], id="doubles that cancel"),
        pytest.param([0.1, 0.2, 0.3], id="doubles that are not decimal"),
        pytest.param([-1e300, -1e300], id="huge"),
        pytest.param([1e-300, 5e-324], id="tiny"),
    ],
)
def test_closed_form(events: int, cycle: list[int] | list[float]) -> None:
    """SUM is NULL where no double holds it, its logarithm is right; AVG stays finite."""
    values: Any = (cycle * events)[:events]
    assert differences([closed_form(values)], [ask(values)]) == []


@pytest.mark.parametrize("events", [1, 2, 60, 80, 127, 1000, 1100, 3000])
def test_large_values_that_nearly_cancel(events: int) -> None:
    """Exact while an event is in fewer than 2^94 / n trends; beyond, to 17 digits of the magnitudes that were added."""
    values = ([2**52 + 1, 1 - 2**52, -1] * events)[:events]
    expected, actual = closed_form(values), ask(values)
    if events < 90:
        assert differences([expected], [actual]) == []
        return
    mean = Fraction(sum(map(abs, values)), events)
    assert abs(Fraction(actual["mean"]) - Fraction(sum(values), events)) <= mean / 10**16
    if expected["total"] is not None:
        assert abs(Fraction(actual["total"]) - sum(values) * 2 ** (events - 1)) <= mean * events * 2**events / 10**16


@examples(150)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=40))
def test_any_doubles(values: list[float]) -> None:
    """Whatever the doubles, SUM and AVG are as close as the magnitudes summed allow."""
    expected, actual = closed_form(values), ask(values)
    rest = ("total", "total_log10", "mean")
    assert differences(*([{k: v for k, v in row.items() if k not in rest}] for row in (expected, actual))) == []
    magnitude = sum(abs(Fraction(value)) for value in values)
    assert math.isfinite(actual["mean"])
    assert abs(Fraction(actual["mean"]) - sum(map(Fraction, values)) / len(values)) <= (
        magnitude / len(values) / 10**9 + Fraction(5e-324)
    )
    if actual["total"] is None:
        assert magnitude * 2 ** (len(values) - 1) * (1 + Fraction(1, 10**9)) > Fraction(1.7976931348623157e308)
    else:
        off = Fraction(actual["total"]) - sum(map(Fraction, values)) * 2 ** (len(values) - 1)
        assert abs(off) <= magnitude * 2 ** (len(values) - 1) / 10**9 + Fraction(5e-324)
