"""Calendar windows beside windows of as many hours of UTC, over the same events: `python -m bench.calendar`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.engine import FALLING
from bench.measured import Measured, best, plan_of, show
from trendlake.cep_core import run_plan

SECONDS = 6
"""Between two events: 10 million last some two years, with four changes of clocks."""
ZONE = {"time_zone": "America/New_York"}
START = 1_356_998_400_000_000
"""2013-01-01."""
COUNT = {"pattern": "S+", "return": {"trends": "COUNT(*)"}}


def events_of(n: int) -> pa.Table:
    """n events of type S at even distances, of random prices."""
    stamp = pa.array(START + np.arange(n, dtype=np.int64) * SECONDS * 1_000_000, pa.timestamp("us", "UTC"))
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["S"]))
    return pa.table({"event_time": stamp, "event_type": kind, "price": np.random.default_rng(3).random(n)})


def against_utc(name: str, query: Mapping[str, Any], events: pa.Table, goal: float, rounds: int = 5) -> Measured:
    """The time in the calendar of the zone, of that in UTC; turn by turn."""
    plans = [plan_of({**query, **zone}, events) for zone in (ZONE, {})]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for which, plan in enumerate(plans):
            times[which].append(best(lambda plan=plan: run_plan(plan, events), 1)[0])  # type: ignore[misc]
    ours, theirs = map(min, times)
    note = f"{events.num_rows:,} events: {ours:.3f} s against {theirs:.3f} s; goal {goal:g}"
    return Measured(f"calendar days, of UTC days: {name}", ours / theirs, "x", 1.1, note, at_most=True)


def calendar(n: int = 10_000_000) -> list[Measured]:
    """All measures of calendar windows in this process."""
    events = events_of(n)
    falling = {key: value for key, value in FALLING.items() if key != "within"}
    return [
        against_utc("COUNT(*)", COUNT | {"within": "1 day"}, events, 1.02),
        against_utc("one inequality", falling | {"within": "1 day"}, events, 1.02),
        against_utc("7 days by 1 day", COUNT | {"within": "7 days", "slide": "1 day"}, events, 1.03),
    ]


if __name__ == "__main__":
    show(calendar(), "calendar")
