"""Readings of tags in a shop, for query 1 of SASE+ (Agrawal et al. 2008): from the shelf over the register to the exit,
and now and then past the register."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.columns import arrivals, event_ids, event_times, named

PLACES = ("Shelf", "Register", "Exit")
STOLEN = 0.02
"""Share of items that are not paid for."""
SHOPPING = 30.0
"""Items taken from their shelves, at most, while one goes to the register; a third as many until it goes out."""

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("tag_id", pa.string()),
        ("reader", pa.int32()),
    ]
)


def retail(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` readings as rows of `SCHEMA`, in the order of time. The last items may still be in the shop."""
    chance = np.random.default_rng(seed)
    items = events // 2 + 1  # two readings each, at least
    shelf = np.arange(items) + chance.random(items)
    register = shelf + SHOPPING * chance.random(items)
    leave = register + SHOPPING / 3 * chance.random(items)
    paid = chance.random(items) >= STOLEN
    place = np.repeat(np.arange(3), items)
    item = np.tile(np.arange(items), 3)
    there = (place != 1) | paid[item]
    order = np.argsort(np.concatenate([shelf, register, leave])[there], kind="stable")[:events]
    place, item = place[there][order], item[there][order]
    return pa.table(
        [
            event_ids("reading-", events),
            event_times(arrivals(chance, events, rate), start_us),
            named(PLACES, place),
            pa.array([f"T{number:09d}" for number in item.tolist()], pa.string()),
            pa.array((10 * place + chance.integers(1, 10, events)).astype(np.int32)),
        ],
        schema=SCHEMA,
    )
