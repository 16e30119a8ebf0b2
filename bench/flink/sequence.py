"""Flink CEP on a sequence that kind algebra can say too: a cheap trade, and the very next trade of its symbol.

Both answers are compared. Both times are processor time, Flink's of all its threads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.flink.java import lines
from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan

EVENTS, SYMBOLS, CHEAP = 1_000_000, 1_000, 10
SECONDS = 300
WINDOW = 3_600
QUERY = {
    "kind": "algebra",
    "pattern": f"SELECT event_id_1 AS first, event_id AS next FROM FILTER{{price < {CHEAP}}}(Trade) NEXT Trade",
    "partition_by": ["symbol"],
    "within": f"{WINDOW} seconds",
}


def sequence(folder: Path) -> list[Measured]:
    """One line; none where Flink does not end in time. Raises SystemExit where the answers differ."""
    chance = np.random.default_rng(9)
    times = np.arange(EVENTS, dtype=np.int64) * 1_000
    symbol, price = chance.integers(0, SYMBOLS, EVENTS), chance.integers(0, 1_000, EVENTS)
    file = folder / "trades.csv"
    np.savetxt(file, np.stack([times, symbol, price], axis=1), fmt="%d", delimiter=",")
    events = pa.table(
        {
            "event_id": np.arange(EVENTS),
            "event_time": pa.array(times * 1_000).cast(pa.timestamp("us", "UTC")),
            "event_type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(EVENTS, np.int32)), pa.array(["Trade"])),
            "symbol": symbol,
            "price": price,
        }
    )
    plan = plan_of(QUERY, events)
    rows = []
    for matches, seconds in lines(folder, "Sequence", [str(file), str(CHEAP), str(WINDOW * 1_000)], SECONDS):
        ours, result = best(lambda: run_plan(plan, events))
        if result.num_rows != int(matches):
            raise SystemExit(f"Flink finds {matches} pairs, the engine {result.num_rows}")
        theirs = float(seconds)
        note = f"{EVENTS:,} events, {SYMBOLS:,} symbols: {theirs:.2f} s against {ours * 1000:.1f} ms; "
        note += f"both find {result.num_rows:,} pairs"
        rows.append(Measured("Flink CEP, a cheap trade and the next of its symbol", theirs / ours, "x", 100, note))
    return rows
