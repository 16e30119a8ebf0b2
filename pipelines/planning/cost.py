"""About how much work windows are: events and bytes by the statistics of files, seconds by the runs of before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from trendlake.cep_core.plan import times_read
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.results.windows import Stretch, united
from trendlake.pipelines.runs.record import pattern_records
from trendlake.pipelines.runs.run import Run

RUNS = 20
"""The newest runs by which seconds are estimated."""
STEPS = ("check_source", "compute", "check_results", "publish")


@dataclass(frozen=True)
class Cost:
    """At most so many `events` and `bytes` are read: those of the files that may hold events of the windows. `seconds`:
    about as many, from `runs` runs; None where the pattern has not run yet."""

    events: int
    bytes: int
    seconds: float | None
    runs: int


class Rates:
    """Seconds that an event took in the newest runs of a pattern."""

    def __init__(self, lake: Lake) -> None:
        self.of = cache(lambda name: _rate(lake, name))


def cost_of(run: Run, windows: Sequence[Stretch], rates: Rates) -> Cost | None:
    """None where a table is not on this machine's disk."""
    spans = [times_read(run.plan, range(first, last + 1)) for first, last in windows]
    slices = united(spans)
    events = size = 0
    for part in run.parts:
        path = part.warehouse.source(part.contract.name)

        def near(path: str = path, time: str = part.contract.event_time) -> tuple[int, int]:
            table = table_here(run.lake, path).near_time(time, slices)
            return table.counted, sum(table.sizes.values())

        counted = tried(near)
        if isinstance(counted, NotHere):
            return None
        events, size = events + counted[0], size + counted[1]
    rate, runs = rates.of(run.name)
    return Cost(events, size, None if rate is None else rate * events, runs)


def _rate(lake: Lake, pattern: str) -> tuple[float | None, int]:
    """The median, and the number of runs that it is of."""
    names = ("run_id", "stage", "status", "rows_in", "seconds", "finished_at")
    by_run: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pattern_records(lake, [pattern], names):
        if row["status"] == "succeeded" and row["stage"] in STEPS and row["seconds"] is not None:
            by_run.setdefault(row["run_id"], {})[row["stage"]] = row
    whole = [steps for steps in by_run.values() if len(steps) == len(STEPS) and steps["compute"]["rows_in"]]
    newest = sorted(whole, key=lambda steps: steps["publish"]["finished_at"] or 0)[-RUNS:]
    rates = [sum(row["seconds"] for row in steps.values()) / steps["compute"]["rows_in"] for steps in newest]
    return (median(rates), len(rates)) if rates else (None, 0)
