"""A condition between events works on attributes of every type that it is allowed on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from trendlake.cep_core import evaluate
from trendlake.cep_core.errors import BadEventsError

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


CENTS = [110, 220, -330, 435, 1999, 10010, 115]
PRICES = pa.array([Decimal(cents).scaleb(-2) for cents in CENTS], pa.decimal128(10, 2))


def of_prices(**query: Any) -> list[dict[str, Any]]:
    stamps = pa.array([i * 1_000_000 for i in range(len(CENTS))], pa.timestamp("us", "UTC"))
    ids = [f"e{number}" for number in range(len(CENTS))]
    events = pa.table({"event_id": ids, "event_time": stamps, "event_type": ["S"] * len(CENTS), "price": PRICES})
    return evaluate({"within": "1 day", **query}, events).to_pylist()


@pytest.mark.parametrize("cents", CENTS)
def test_a_decimal_is_the_number_it_is_written_as(cents: int) -> None:
    """In a condition, as a measure, as a group and in what a match or an automaton shows of it."""
    price = cents / 100
    same = f"S.price = {price!r} AND S.price IN ({price!r}, 1e9) AND S.price BETWEEN {price!r} AND {price!r}"
    measures = {"n": "COUNT(*)", "least": "MIN(S.price)", "total": "SUM(S.price)"}
    (row,) = of_prices(pattern="S", where=[same], **{"return": measures})
    assert (row["n"], row["least"], row["total"]) == (1, price, price)
    groups = of_prices(pattern="S", group_by=["price"], **{"return": {"n": "COUNT(*)"}})
    assert price in [row["price"] for row in groups]
    (match,) = of_prices(
        kind="matches", pattern="SEQ(S a)", where=[f"a.price = {price!r}"], **{"return": {"p": "a.price"}}
    )
    assert match["p"] == price
    arcs = [{"from": "p", "to": "q", "when": f"e.price = {price!r}", "set": {"p": "e.price"}}]
    register = {"p": {"type": "double", "init": 0}}
    (actual,) = of_prices(
        kind="automaton", register=register, start="p", final=["q"], arcs=arcs, partition_by=["price"]
    )
    assert (actual["p"], actual["price"]) == (price, price)


def test_events_between_the_windows_only() -> None:
    """Where a NOT ends with a NOT, windows are gone through one by one: here there is none."""
    stamps = pa.array([3_000_000], pa.timestamp("us", "UTC"))
    events = pa.table({"event_id": ["a"], "event_time": stamps, "event_type": ["A"]})
    pattern = "SEQ(A, NOT SEQ(B b1, NOT D, B b3?), C)"
    query = {"pattern": pattern, "return": {"n": "COUNT(*)"}, "within": "2 seconds", "slide": "7 seconds"}
    assert evaluate(query, events).num_rows == 0


@pytest.mark.parametrize("condition", ["a.x > 0.5", "a.x * 16 > 0"])
@pytest.mark.parametrize("kind", ["trends", "matches"])
def test_a_condition_is_asked_of_events_that_can_be_bound(kind: str, condition: str) -> None:
    """The number of an event of another type need not fit in it; that of an event of its own type must."""
    stamps = pa.array([0, 1_000_000], pa.timestamp("us", "UTC"))
    events = pa.table({"event_id": ["a", "b"], "event_time": stamps, "event_type": ["A", "B"], "x": [2, 2**60]})
    asked: dict[str, Any] = {"where": [condition], "within": "1 minute", "kind": kind}
    asked |= {"pattern": "A a", "return": {"n": "COUNT(*)"}} if kind == "trends" else {"pattern": "SEQ(A a)"}
    assert evaluate(asked, events).num_rows == 1
    with pytest.raises(BadEventsError):
        evaluate(asked, events.set_column(2, "event_type", pa.array(["A", "A"])))
