"""Columns of a reference table for many events, on one core: `python -m bench.lookups`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.measured import Measured, best, show
from trendlake.cep_core.events.lookup import look_up
from trendlake.cep_core.events.schema import Lookup

START = 1_577_836_800_000_000
"""2020-01-01."""
SPAN = 10_000_000_000_000
"""Microseconds of the events."""
TIME = pa.timestamp("us", "UTC")
COLUMNS = (("rate", "rate", "double"), ("segment", "segment", "string"))


def tables(events: int, rows: int, versions: int) -> tuple[pa.Table, pa.Table]:
    """Events in order of time, a hundredth of them without a row; and rows of `versions` a key, in no order."""
    random = np.random.default_rng(5)
    keys = rows // versions
    times = START + np.arange(events, dtype=np.int64) * (SPAN // events)
    of_events = random.integers(0, keys + keys // 100, events)
    of_rows = random.permutation(np.repeat(np.arange(keys), versions))
    since = START + random.integers(-SPAN, SPAN, len(of_rows))
    segments = pa.array([f"segment {n}" for n in range(20)]).take(pa.array(random.integers(0, 20, len(of_rows))))
    reference = {"key": of_rows * 1_000_003, "segment": segments, "rate": random.random(len(of_rows))}
    return (
        pa.table({"event_time": pa.array(times, TIME), "key": of_events * 1_000_003}),
        pa.table(reference | {"since": pa.array(since, TIME)}),
    )


def looked_up(measure: str, versions: int, floor: float, goal: float, events: int, rows: int) -> Measured:
    """Processor seconds for two columns, a text and a double: sorting the table is part of it."""
    stream, reference = tables(events, rows, versions)
    valid = {"valid_from": "since", "as_of": "event_time"} if versions > 1 else {}
    lookup = Lookup("reference", (("key", "key"),), COLUMNS, **valid)
    taken, _ = best(lambda: look_up(stream, lookup, {"reference": reference}))
    note = f"{events:,} events, {rows:,} rows, two columns; goal {goal:g}"
    return Measured(measure, taken, "s", floor, note, at_most=True)


def lookups(events: int = 10_000_000, rows: int = 1_000_000) -> list[Measured]:
    """All measures of lookups in this process."""
    return [
        looked_up("a current table", 1, 2.0, 0.8, events, rows),
        looked_up("3 versions a key, until the next since", 3, 4.0, 1.5, events, rows),
    ]


if __name__ == "__main__":
    show(lookups(), "lookups")
