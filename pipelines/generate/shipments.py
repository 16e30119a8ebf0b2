"""Shipments between sites and alerts of what was found there, for query 2 of SASE+ (Agrawal et al. 2008): what a
contaminated site has sent, and what was sent on from there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.pipelines.generate.columns import arrivals, event_ids, event_times, named

LEVELS = ("farm", "plant", "depot", "shop")
"""Goods go from one level to the next."""
SITES = 100
"""Of each level."""
ALERTS = 0.05
"""Share of events that are alerts, half of them of a contamination."""

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("kind", pa.string()),
        ("site", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
    ]
)


def shipments(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` events as rows of `SCHEMA`, in the order of time; of an alert `kind` and `site` are given, of a shipment
    `src` and `dst`."""
    chance = np.random.default_rng(seed)
    alert = chance.random(events) < ALERTS
    contaminated = chance.random(events) < 0.5
    level = chance.integers(0, len(LEVELS) - 1, events)
    origin, target = (chance.integers(0, SITES, events) for _ in range(2))
    sites = [f"{name}-{number:02d}" for name in LEVELS for number in range(SITES)]
    src = named(sites, level * SITES + origin)
    dst = named(sites, (level + 1) * SITES + target)
    none = pa.scalar(None, pa.string())
    alerts, shipments = pa.array(alert), pa.array(~alert)
    return pa.table(
        [
            event_ids("event-", events),
            event_times(arrivals(chance, events, rate), start_us),
            named(("Shipment", "Alert"), alert.astype(np.int8)),
            pc.if_else(alerts, named(("ok", "contaminated"), contaminated.astype(np.int8)), none),
            pc.if_else(alerts, src, none),
            pc.if_else(shipments, src, none),
            pc.if_else(shipments, dst, none),
        ],
        schema=SCHEMA,
    )
