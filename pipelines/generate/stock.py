"""The stock stream, in the shape of GRETA's "stock real data set" (section 10.1).

The paper's data are 225k real transactions of 10 companies, ten times over; each has volume, price, time in seconds,
type (sell or buy), company, sector and transaction. It names no rate: ten times 225k over the 6.5 hours of a trading
day are some 100 a second. The real data are not ours to hand on, so prices are a random walk.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.columns import arrivals, event_ids, event_times, named, run_starts

COMPANIES = 10
SECTORS = ("energy", "finance", "health", "retail", "technology")
"""Two companies each; the paper does not say how many sectors there are."""
STEP = 0.0005
"""Standard deviation of a price's relative change from one transaction of a company to its next."""

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("company", pa.string()),
        ("sector", pa.string()),
        ("side", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int32()),
        ("transaction", pa.int64()),
    ]
)


def stock(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` transactions as rows of `SCHEMA`, in the order of time.

    Each is of a company drawn evenly. A company's price starts between 20 and 200 and goes by independent normal steps
    of its logarithm, in whole cents; volumes are round lots, geometric with a mean of 500. The number of a transaction
    orders those of one second.
    """
    chance = np.random.default_rng(seed)
    company = chance.integers(0, COMPANIES, events)
    order = np.argsort(company, kind="stable")
    first = run_starts(company[order])
    steps = chance.normal(0.0, STEP, events)
    steps[first] = np.log(chance.uniform(20.0, 200.0, int(first.sum())))
    walked = np.cumsum(steps)
    before = np.where(first, walked - steps, 0.0)[first]  # where the walks of the companies before have ended
    logs = np.empty(events)
    logs[order] = walked - before[np.cumsum(first) - 1]
    return pa.table(
        [
            event_ids("stock-", events),
            event_times(arrivals(chance, events, rate), start_us),
            named(("Stock",), np.zeros(events, np.int8)),
            named([f"C{number}" for number in range(COMPANIES)], company),
            named(SECTORS, company // 2),
            named(("buy", "sell"), chance.integers(0, 2, events)),
            pa.array(np.maximum(np.round(np.exp(logs), 2), 0.01)),
            pa.array((100 * chance.geometric(0.2, events)).astype(np.int32)),
            pa.array(np.arange(events)),
        ],
        schema=SCHEMA,
    )
