"""Daily closes of companies, as those that Cayuga was measured with (Hong 2009, section 4.6.3: 24 companies over 20
years). The real data are not ours to hand on, so prices are random walks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.columns import TIME, event_ids, named

COMPANIES = 24
STEP = 0.02
"""Standard deviation of a price's relative change from one close to the next."""

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", TIME),
        ("event_type", pa.string()),
        ("company", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
    ]
)


def closes(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` rows of `SCHEMA`: the closes of all companies at one time, a day's after another's, `COMPANIES` / `rate`
    seconds apart (at the default rate a day).

    A price starts between 20 and 200 and goes by independent normal steps of its logarithm, in whole cents.
    """
    chance = np.random.default_rng(seed)
    number = np.arange(events)
    company, day = number % COMPANIES, number // COMPANIES
    days = -(-events // COMPANIES)
    logs = np.log(chance.uniform(20.0, 200.0, COMPANIES)) + np.cumsum(chance.normal(0.0, STEP, (days, COMPANIES)), 0)
    price = np.maximum(np.round(np.exp(logs), 2), 0.01).reshape(-1)[:events]
    time = np.floor(day * (COMPANIES / rate) + 1e-6).astype(np.int64) * 1_000_000 + start_us
    return pa.table(
        [
            event_ids("close-", events),
            pa.array(time).cast(pa.timestamp("us")).cast(TIME),
            named(("Close",), np.zeros(events, np.int8)),
            named([f"C{number:02d}" for number in range(COMPANIES)], company),
            pa.array(price),
            pa.array((100 * chance.geometric(0.01, events)).astype(np.int64)),
        ],
        schema=SCHEMA,
    )
