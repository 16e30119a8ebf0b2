"""Items of RSS feeds as XML documents, as in MMQJP's evaluation (Hong 2009, 6.6.3): 418 channels, most items of a few;
one in fifty posts an earlier item again, in any channel. So the answers of "posted again" are known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trendlake.pipelines.generate.columns import arrivals, event_ids, event_times

CHANNELS = 418
TITLES = 100_000
AGAIN = 0.02
"""The share of items that were posted before."""
WORDS = ("market", "river", "engine", "garden", "letter", "window", "signal", "bridge", "harvest", "shadow")
SCHEMA = pa.schema([("event_id", pa.string()), ("event_time", pa.timestamp("us", tz="UTC")), ("document", pa.string())])


def feeds(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` items as rows of `SCHEMA`, in the order of time: item_url, channel_url, title, timestamp and a
    description of some 600 characters."""
    chance = np.random.default_rng(seed)
    times = event_times(arrivals(chance, events, rate), start_us)
    seconds = times.cast(pa.int64()).to_numpy() // 1_000_000
    channel = _zipf(chance, CHANNELS, events)
    title = _zipf(chance, TITLES, events)
    item = np.arange(events)
    for at in np.flatnonzero(chance.random(events) < AGAIN):
        if at:
            before = chance.integers(0, at)
            item[at], title[at] = item[before], title[before]
    texts = [
        f"<item><item_url>http://items.example/{item[at]}</item_url>"
        f"<channel_url>http://channel-{channel[at]}.example/rss</channel_url><title>Title {title[at]}</title>"
        f"<timestamp>{seconds[at]}</timestamp><description>{_description(int(item[at]))}</description></item>"
        for at in range(events)
    ]
    return pa.table([event_ids("item-", events), times, pa.array(texts, pa.string())], schema=SCHEMA)


def _zipf(chance: np.random.Generator, count: int, size: int) -> NDArray[np.int64]:
    """Numbers from 0, number k with a chance of 1 / (k + 1)."""
    total = np.cumsum(1.0 / np.arange(1, count + 1))
    numbers: NDArray[np.int64] = np.searchsorted(total, chance.random(size) * total[-1])
    return numbers


def _description(item: int) -> str:
    """The same for an item that is posted again."""
    return " ".join(WORDS[(item * 7 + step * (item % 9 + 1)) % len(WORDS)] for step in range(90))
