"""A condition between events works on attributes of every type that it is allowed on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cep_core import evaluate

VALUES: dict[str, pa.Array] = {
    "boolean": pa.array([True, False, True, None, False, True]),
    "string": pa.array(["x", "y", "x", None, "y", "x"]),
    "date": pa.array([date(2020, 1, 2), date(2020, 1, 1), date(2020, 1, 2), None, date(2020, 1, 1), date(2020, 1, 2)]),
    "time": pa.array(
        [None if day is None else datetime(2020, 1, day, tzinfo=UTC) for day in (2, 1, 2, None, 1, 2)],
        pa.timestamp("us", "UTC"),
    ),
    "small": pa.array([2, 1, 2, None, 1, 2], pa.int8()),
    "past 2^53": pa.array([2**62 + 1, 2**62, 2**62 + 1, None, 2**62, 2**62 + 1]),
    "single": pa.array([1.5, 0.1, 1.5, float("nan"), 0.1, 1.5], pa.float32()),
    "decimal": pa.array([Decimal("2.5"), Decimal("1.5"), Decimal("2.5"), None, Decimal("1.5"), Decimal("2.5")]),
}


def trends(values: pa.Array, condition: str) -> Any:
    """`S+` over six events a second apart."""
    stamps = pa.array([i * 1_000_000 for i in range(6)], pa.timestamp("us", "UTC"))
    events = pa.table({"event_time": stamps, "event_type": ["S"] * 6, "x": values})
    query = {"pattern": "S+", "where": [condition], "return": {"n": "COUNT(*)"}, "within": "1 day"}
    (row,) = evaluate(query, events).to_pylist()
    return row["n"]


@pytest.mark.parametrize("kind", VALUES)
def test_equal_neighbours(kind: str) -> None:
    """2^3 - 1 of one value, 2^2 - 1 of the other, and the event that has none by itself."""
    assert trends(VALUES[kind], "S.x = NEXT(S).x") == 7 + 3 + 1


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind not in ("boolean", "string")])
def test_rising_neighbours(kind: str) -> None:
    """Six events alone, and each low one before each later high one."""
    assert trends(VALUES[kind], "S.x < NEXT(S).x") == 6 + 2 + 1
