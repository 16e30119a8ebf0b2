"""Flink CEP on the template queries of SASE+, ours beside it.

Both answers are compared. Flink's next match is not NFA^b's: after an event that it skips, a run of Flink's cannot go
on to b until it has taken another event for a. So its matches are those of ours whose b is the very next event of the
symbol, which is checked; ours finds the others too, in the time that is shown. Both times are processor time, Flink's
of all its threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.flink.java import lines
from bench.matches import CONDITIONS, EVENTS, template, ticks
from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan

WINDOW = 500
SECONDS = 600
SELECTIONS = {"partition_contiguous": "consecutive", "skip_till_next_match": "skip"}


def templates(folder: Path) -> list[Measured]:
    """A line for each query that Flink ends in time."""
    events = ticks(EVENTS)
    times = events["event_time"].cast(pa.int64()).to_numpy() // 1000
    cells = np.stack([times, *(events[name].to_numpy() for name in ("symbol", "price", "volume"))], axis=1)
    file = folder / "ticks.csv"
    np.savetxt(file, cells, fmt="%d", delimiter=",")
    queries = {f"{name}:{SELECTIONS[select]}": (name, select) for select in SELECTIONS for name in CONDITIONS}
    asked = [str(file), str(2 * WINDOW * 1000), *queries]
    rows = []
    for line in lines(folder, "TemplateQueries", asked, SECONDS):
        if len(line) == 4:
            rows.append(_beside(events, *queries[line[0]], int(line[1]), int(line[2]), float(line[3])))
    return rows


def _beside(events: pa.Table, name: str, select: str, matches: int, written: int, theirs: float) -> Measured:
    plan = plan_of(template(CONDITIONS[name], select, WINDOW), events)
    ours, result = best(lambda: run_plan(plan, events))
    adjacent = _adjacent(events, result)
    if adjacent != (matches, written):
        raise SystemExit(f"{name}, {select}: Flink finds {matches} matches of {written} events, the engine {adjacent}")
    note = f"{theirs:.2f} s against {ours * 1000:.1f} ms; Flink finds {matches:,} matches, ours {result.num_rows:,}"
    return Measured(f"Flink CEP, SASE+ {name}, {select}, W {WINDOW:,}", theirs / ours, "x", 20, note)


def _adjacent(events: pa.Table, result: pa.Table) -> tuple[int, int]:
    """Of the matches whose b is the next event of its symbol after the last a: how many, and of how many events."""
    symbol: Any = events["symbol"].to_numpy()
    before = np.full(len(symbol), -1)
    for one in np.unique(symbol):
        mine = np.flatnonzero(symbol == one)
        before[mine[1:]] = mine[:-1]
    pairs = zip(result["a"].to_pylist(), result["b"].to_pylist(), strict=True)
    sizes = [len(a) + 1 for a, (b,) in pairs if before[b] == a[-1]]
    return len(sizes), sum(sizes)
