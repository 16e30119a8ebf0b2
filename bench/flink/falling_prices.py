"""Flink CEP on falling prices, GRETA's first query, for as many events as it ends with in a given time; ours beside it.

Flink builds every trend; their number doubles with each event. Both answers are compared: 2^n - 1 trends.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from bench.engine import FALLING
from bench.flink.java import lines
from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan

SIZES = (8, 10, 12, 14, 16, 18, 20)
SECONDS = 150


def falling_prices(folder: Path, seconds: float = SECONDS) -> list[Measured]:
    """A line for each number of events that Flink ends with before `seconds` have passed in all."""
    started = time.monotonic()
    rows = []
    lines_of_peer = lines(folder, "FallingPrices", ["1", *map(str, SIZES)], seconds)
    for n, trends, taken in ((int(line[0]), int(line[1]), float(line[2])) for line in lines_of_peer if len(line) == 3):
        if trends != 2**n - 1:
            raise SystemExit(f"Flink finds {trends} trends of {n} falling prices, not {2**n - 1}")
        if n > 1:  # the first only warms up
            rows.append(_beside(n, taken))
    if rows and len(rows) < len(SIZES):
        stopped = f"; {SIZES[len(rows)]} had not ended when stopped {time.monotonic() - started:.0f} s after the start"
        rows[-1] = replace(rows[-1], note=rows[-1].note + stopped)
    return rows


def _beside(n: int, theirs: float) -> Measured:
    stamp = pa.array([1000 * i for i in range(n)], pa.timestamp("us", "UTC"))
    events = pa.table({"event_time": stamp, "event_type": ["S"] * n, "price": [float(n - i) for i in range(n)]})
    plan = plan_of(FALLING, events)
    ours, result = best(lambda: run_plan(plan, events))
    if int(result["trends"][0].as_py()) != 2**n - 1:
        raise SystemExit(f"the engine counts {result['trends'][0]} trends of {n} falling prices")
    note = f"{theirs:.2f} s (its job's start included) against {ours * 1000:.2f} ms; both find {2**n - 1:,} trends"
    return Measured(f"Flink CEP, {n} falling prices", theirs / ours, "x", None, note)
