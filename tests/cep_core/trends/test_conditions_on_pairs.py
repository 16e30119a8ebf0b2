"""Conditions that mix both events of a pair in one side of a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines import to_table
from trendlake.cep_core import evaluate
from trendlake.cep_core.errors import BadEventsError

LARGE = 2**62


def trends(where: str, *numbers: Any, **more: Any) -> int:
    """How many trends the events have, one a second, with these values of `n`; `more`: other attributes of all."""
    query = {"pattern": "A+", "where": [where], "return": {"trends": "COUNT(*)"}, "within": "1 hour"}
    rows = [{"id": f"e{k}", "type": "A", "time": k, "n": n, **more} for k, n in enumerate(numbers)]
    return int(evaluate(query, to_table(rows))["trends"][0].as_py())


def test_whole_numbers_are_exact_to_64_bits() -> None:
    """A double holds neither of the two."""
    assert trends("A.n - NEXT(A).n = 1", LARGE + 1, LARGE) == 3
    assert trends("A.n - NEXT(A).n = 1", LARGE, LARGE) == 2


def test_what_leaves_64_bits_is_refused() -> None:
    with pytest.raises(BadEventsError, match="a whole number leaves 64 bits"):
        trends("A.n + NEXT(A).n > 0", LARGE, LARGE)


@pytest.mark.parametrize(
    ("first", "refused"), [(2**53 - 1, False), (2**53, True), (-(2**53), False), (-(2**53) - 1, True)]
)
def test_beside_a_double_2_to_the_53_is_the_end(first: int, refused: bool) -> None:
    """What is past it has no double of its own."""
    if refused:
        with pytest.raises(BadEventsError, match="past 2\\^53 beside a double"):
            trends("A.n - NEXT(A).n != A.x", first, 0, x=0.5)
    else:
        assert trends("A.n - NEXT(A).n != A.x", first, 0, x=0.5) == 3


def test_what_is_null_is_not_true() -> None:
    assert trends("A.n - NEXT(A).n > 0", 3, None, 1) == 4
    assert trends("A.n / (NEXT(A).n - NEXT(A).n) > 0 OR A.n > NEXT(A).n", 3, 1) == 3


def test_texts_of_both_events() -> None:
    assert trends("LOWER(COALESCE(A.t, NEXT(A).t)) = 'yes'", 1, 2, t="YES") == 3
    assert trends("LOWER(COALESCE(A.t, NEXT(A).t)) = 'no'", 1, 2, t="YES") == 2
