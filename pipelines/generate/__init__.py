"""Generates example streams: those of GRETA's and RUMOR's evaluations and those of the examples of other kinds; and a
reference table, whose rows are changes.

Each stream is a pure function of its number of events, rate, seed and start. It returns an Arrow table in the shape of
its contract in `data_contracts/`: the same table for the same arguments, on any machine. A table is made in memory,
some 100 bytes an event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from trendlake.pipelines.generate.closes import closes
from trendlake.pipelines.generate.cluster import cluster
from trendlake.pipelines.generate.feeds import feeds
from trendlake.pipelines.generate.linear_road import linear_road
from trendlake.pipelines.generate.posts import posts
from trendlake.pipelines.generate.quotes import quotes
from trendlake.pipelines.generate.retail import retail
from trendlake.pipelines.generate.rumor import rumor
from trendlake.pipelines.generate.shipments import shipments
from trendlake.pipelines.generate.shop import LATEST, shop_customers, shop_orders, shop_payments
from trendlake.pipelines.generate.stock import stock

__all__ = [
    "START_US",
    "STREAMS",
    "Stream",
    "closes",
    "cluster",
    "feeds",
    "linear_road",
    "posts",
    "quotes",
    "retail",
    "rumor",
    "shipments",
    "shop_customers",
    "shop_orders",
    "shop_payments",
    "stock",
]

START_US = 1_767_603_600_000_000
"""2026-01-05T09:00:00Z, a Monday morning, in microseconds since the epoch: the default start of a stream."""


@dataclass(frozen=True)
class Stream:
    """`build(events, rate, seed, start_us)`; `rate`: events a second as in the paper, at the end of a stream that
    `ramps` up from nothing, all the time elsewhere. `tail`: how many seconds later than the others the last events may
    be, at most."""

    name: str
    build: Callable[[int, float, int, int], pa.Table]
    rate: float
    ramps: bool = False
    tail: float = 0.0

    def events(self, seconds: float, rate: float) -> int:
        """How many events `seconds` of the stream have."""
        return max(1, round(seconds * rate / (2 if self.ramps else 1)))


STREAMS: Mapping[str, Stream] = {
    stream.name: stream
    for stream in (
        Stream("stock", stock, 100.0),
        Stream("closes", closes, 24 / 86_400),
        Stream("cluster", cluster, 3_000.0),
        Stream("linear_road", linear_road, 4_000.0, ramps=True),
        Stream("feeds", feeds, 1.0),
        Stream("posts", posts, 0.1),
        Stream("quotes", quotes, 10.0),
        Stream("retail", retail, 10.0),
        Stream("rumor", rumor, 1.0),
        Stream("shipments", shipments, 0.1),
        Stream("shop_orders", shop_orders, 0.1),
        Stream("shop_payments", shop_payments, 0.1, tail=LATEST),
        Stream("shop_customers", shop_customers, 0.01),
    )
}
