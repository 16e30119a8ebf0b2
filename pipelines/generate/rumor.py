"""The stream of RUMOR's experiments (Hong 2009, section 5.5): events of ten attributes, of two types in turn.

Attributes are drawn evenly from 0 to 999. The thesis numbers events by time stamps that go up by one: here that is one
second.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.columns import TIME, event_ids, named

ATTRIBUTES = 10
VALUES = 1_000

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", TIME),
        ("event_type", pa.string()),
        *((f"a{number}", pa.int32()) for number in range(ATTRIBUTES)),
    ]
)


def rumor(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` rows of `SCHEMA`, 1 / `rate` seconds apart: S, T, S, T ..."""
    chance = np.random.default_rng(seed)
    number = np.arange(events)
    time = np.round(number * (1e6 / rate)).astype(np.int64) + start_us
    return pa.table(
        [
            event_ids("rumor-", events),
            pa.array(time).cast(pa.timestamp("us")).cast(TIME),
            named(("S", "T"), number % 2),
            *(pa.array(chance.integers(0, VALUES, events).astype(np.int32)) for _ in range(ATTRIBUTES)),
        ],
        schema=SCHEMA,
    )
