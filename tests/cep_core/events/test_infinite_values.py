"""Infinite values: compared like any number, refused in sums by name. (A kernel that weighed one never came back.)"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from trendlake.cep_core import evaluate
from trendlake.cep_core.errors import BadEventsError

PRICES = [1.0, 2.0, float("inf"), 3.0]


def events(prices: list[float]) -> pa.Table:
    return pa.table(
        {
            "event_id": [f"e{n}" for n in range(len(prices))],
            "event_time": [datetime(2026, 1, 1, 0, n, tzinfo=UTC) for n in range(len(prices))],
            "event_type": ["A"] * len(prices),
            "price": prices,
        }
    )


def query(measure: str, *where: str) -> dict[str, Any]:
    return {"pattern": "A a+", "where": list(where), "return": {"found": measure}, "within": "1 day"}


@pytest.mark.parametrize("measure", ["SUM(a.price)", "AVG(a.price)"])
@pytest.mark.parametrize("infinite", [float("inf"), float("-inf")])
def test_no_sum_of_infinite_values(measure: str, infinite: float) -> None:
    with pytest.raises(BadEventsError, match="'price' has an infinite value"):
        evaluate(query(measure), events([1.0, infinite, 2.0]))


def test_an_event_that_a_condition_leaves_out_is_no_part_of_the_sum() -> None:
    """1 + 2 + 3 and their sub-sequences: each value is in four of seven."""
    (row,) = evaluate(query("SUM(a.price)", "a.price < 100"), events(PRICES)).to_pylist()
    assert row["found"] == 24.0


def test_infinite_values_are_compared_and_counted() -> None:
    """Rising: of 1, 2, infinite, 3 there are 1, 2, inf, 3, 12, 1inf, 13, 2inf, 23, 12inf, 123."""
    (row,) = evaluate(query("COUNT(*)", "a.price < NEXT(a).price"), events(PRICES)).to_pylist()
    assert row["found"] == 11
    (row,) = evaluate(query("MAX(a.price)"), events(PRICES)).to_pylist()
    assert row["found"] == float("inf")
