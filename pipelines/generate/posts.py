"""Posts of websites, each with a link of its own; some start a rumor, some refer to a post before them (Hong 2009,
example 7: how a rumor spreads)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.columns import TIME, arrivals, event_ids, event_times, named

SITES = 20
RUMORS = 0.05
"""Share of posts that start a rumor."""
REFERENCES = 0.5
"""Share of posts that refer to one of the `RECENT` posts before them."""
RECENT = 12

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", TIME),
        ("event_type", pa.string()),
        ("website", pa.string()),
        ("link", pa.string()),
        ("description", pa.string()),
    ]
)


def posts(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` rows of `SCHEMA` in the order of time; a reference is the link of another post in the description."""
    chance = np.random.default_rng(seed)
    draw = chance.random(events)
    back = chance.integers(1, RECENT + 1, events)
    links = [f"https://example.org/{number:09d}" for number in range(events)]
    words = []
    for number in range(events):
        refers = RUMORS <= draw[number] < RUMORS + REFERENCES and back[number] <= number
        if draw[number] < RUMORS:
            words.append("Apple rumor: a new device")
        else:
            words.append(f"see {links[number - back[number]]}" if refers else "nothing new")
    return pa.table(
        [
            event_ids("post-", events),
            event_times(arrivals(chance, events, rate), start_us),
            named(("Post",), np.zeros(events, np.int8)),
            named([f"site{number:02d}" for number in range(SITES)], chance.integers(0, SITES, events)),
            pa.array(links, pa.string()),
            pa.array(words, pa.string()),
        ],
        schema=SCHEMA,
    )
