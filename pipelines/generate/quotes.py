"""Ticks of stocks for chart patterns: prices that swing, up and down with equal chance, as in AFA's evaluation
(section 6.1), but by steps large enough for tops and shoulders to come within a few ticks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.columns import arrivals, event_ids, event_times, named, run_starts

SYMBOLS = 10
LOW, HIGH = 4_000, 16_000
"""Cents between which a price swings: at a bound it turns."""
STEP = 700
"""Standard deviation of a tick, cents."""

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("change", pa.float64()),
    ]
)


def quotes(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` ticks as rows of `SCHEMA`, in the order of time, each of a symbol drawn evenly.

    A price goes by independent steps of an odd number of cents and is mirrored at the bounds, which are even: it is odd
    and even by turns, so no change is zero.
    """
    chance = np.random.default_rng(seed)
    symbol = chance.integers(0, SYMBOLS, events)
    order = np.argsort(symbol, kind="stable")
    first = run_starts(symbol[order])
    steps = 2 * np.round(chance.normal(0.0, STEP / 2, events)).astype(np.int64) + 1
    walked = np.cumsum(steps)
    before = np.where(first, walked - steps, 0)[first]  # where the walks of the symbols before have ended
    walked = walked - before[np.cumsum(first) - 1] + (HIGH - LOW) // 2
    price = LOW + (HIGH - LOW) - np.abs((HIGH - LOW) - walked % (2 * (HIGH - LOW)))
    change = np.diff(price, prepend=0)
    change[first] = price[first] - (HIGH + LOW) // 2
    prices, changes = np.empty(events), np.empty(events)
    prices[order], changes[order] = price / 100, change / 100
    return pa.table(
        [
            event_ids("quote-", events),
            event_times(arrivals(chance, events, rate), start_us),
            named(("Tick",), np.zeros(events, np.int8)),
            named([f"S{number}" for number in range(SYMBOLS)], symbol),
            pa.array(prices),
            pa.array(changes),
        ],
        schema=SCHEMA,
    )
