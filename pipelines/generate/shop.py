"""A shop: orders, their payments, and the segments of its customers, which change. For `lookup` and `sources`.

Payment n is of an order that is known when it is drawn, and so is the segment of a customer at each moment: what a
pattern is to find out of the three tables follows without it (`short_payments`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trendlake.pipelines.generate.columns import TIME, arrivals, event_ids, event_times, named

CUSTOMERS = 200
SEGMENTS = ("business", "private", "public")
HOUR = 3_600.0
LATE, SHORT = 0.1, 0.1
"""Shares of payments that come hours after the order, and that are less than it."""
LATEST = 3 * HOUR
"""Seconds from an order to its payment, at most."""

_EVENT = {"event_id": pa.string(), "event_time": TIME, "event_type": pa.string()}
ORDERS = pa.schema(_EVENT | {"customer_id": pa.string(), "amount": pa.int32()})
PAYMENTS = pa.schema(_EVENT | {"order_id": pa.string(), "payer": pa.string(), "paid": pa.int32()})
CHANGES = pa.schema({"customer_id": pa.string(), "since": TIME, "segment": pa.string()})


def shop_orders(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` orders as rows of `ORDERS`, in the order of time."""
    drawn = _drawn(events, rate, seed)
    columns = [
        event_ids("order-", events),
        event_times(drawn.seconds, start_us),
        named(("Order",), np.zeros(events, np.int64)),
        _customers(drawn.customer),
        pa.array(drawn.amount),
    ]
    return pa.table(columns, schema=ORDERS)


def shop_payments(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """The payments of `events` orders, one of each, as rows of `PAYMENTS`, in the order of time."""
    drawn = _drawn(events, rate, seed)
    moments = np.floor(drawn.seconds) + drawn.delay
    order = np.argsort(moments, kind="stable")
    columns = [
        event_ids("payment-", events),
        event_times(moments[order], start_us),
        named(("Payment",), np.zeros(events, np.int64)),
        event_ids("order-", events).take(pa.array(order)),
        _customers(drawn.customer[order]),
        pa.array(drawn.paid[order]),
    ]
    return pa.table(columns, schema=PAYMENTS)


def shop_customers(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` rows of `CHANGES`: the first segment of each customer, which has no beginning, then changes, `rate` a
    second."""
    chance = np.random.default_rng([seed, 1])
    first = chance.integers(0, len(SEGMENTS), CUSTOMERS)
    steps = chance.integers(1, len(SEGMENTS), events)
    row = np.arange(events)
    customer = np.where(row < CUSTOMERS, row, chance.permutation(CUSTOMERS)[row % CUSTOMERS])
    segment, current = np.zeros(events, np.int64), first.copy()
    for at, who in enumerate(customer.tolist()):
        if at >= CUSTOMERS:  # to another one
            current[who] = (current[who] + steps[at]) % len(SEGMENTS)
        segment[at] = current[who]
    since = start_us + np.round((row - CUSTOMERS + 1) * (1e6 / rate)).astype(np.int64)
    times = pa.array(since, mask=row < CUSTOMERS).cast(pa.timestamp("us")).cast(TIME)
    return pa.table([_customers(customer), times, named(SEGMENTS, segment)], schema=CHANGES)


class ShortPayment(NamedTuple):
    """An order that was paid within the hour, and too little. `segment`: of the customer when the order came; None
    where no row says it. `missing`: how much."""

    order: str
    segment: str | None
    missing: int


def short_payments(events: int, rate: float, seed: int, start_us: int, customers: pa.Table) -> list[ShortPayment]:
    """Those of the first `events` orders and their payments, by the order's id: `customers` is walked through with the
    orders, and no table is searched."""
    drawn = _drawn(events, rate, seed)
    changes: list[dict[str, Any]] = customers.set_column(1, "since", customers["since"].cast(pa.int64())).to_pylist()
    changes.sort(key=lambda row: -(2**63) if row["since"] is None else row["since"])
    segments: dict[str, str] = {}
    rows, at = [], 0
    names, ids = _customers(drawn.customer).to_pylist(), event_ids("order-", events).to_pylist()
    for number, second in enumerate(np.floor(drawn.seconds).astype(np.int64).tolist()):
        while at < len(changes) and (changes[at]["since"] or 0) <= start_us + second * 1_000_000:
            segments[changes[at]["customer_id"]] = changes[at]["segment"]
            at += 1
        missing = int(drawn.amount[number]) - int(drawn.paid[number])
        if missing and drawn.delay[number] < HOUR:
            rows.append(ShortPayment(ids[number], segments.get(names[number]), missing))
    return rows


class _Drawn(NamedTuple):
    """Of each order: when it comes, seconds; who orders; how much; how long it takes to pay, whole seconds; and how
    much is paid."""

    seconds: NDArray[np.float64]
    customer: NDArray[np.int64]
    amount: NDArray[np.int32]
    delay: NDArray[np.float64]
    paid: NDArray[np.int32]


def _drawn(events: int, rate: float, seed: int) -> _Drawn:
    chance = np.random.default_rng([seed, 0])
    seconds = arrivals(chance, events, rate)
    amount = chance.integers(2, 500, events).astype(np.int32)
    soon, later = 60 + (HOUR - 120) * chance.random(events), 2 * HOUR + (LATEST - 2 * HOUR) * chance.random(events)
    delay = np.floor(np.where(chance.random(events) < LATE, later, soon))
    short = chance.integers(1, amount)
    paid = np.where(chance.random(events) < SHORT, short, amount).astype(np.int32)
    return _Drawn(seconds, chance.integers(0, CUSTOMERS, events), amount, delay, paid)


def _customers(numbers: NDArray[np.int64]) -> pa.Array:
    return pa.array([f"customer-{number:03d}" for number in numbers.tolist()], pa.string())
