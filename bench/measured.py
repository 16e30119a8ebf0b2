"""What a benchmark saw, how it is timed, and how it is shown."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from trendlake.cep_core import AnyPlan, compile_plan, load_pattern
from trendlake.cep_core.events.schema import schema_of


@dataclass(frozen=True)
class Measured:
    """One line of the table. `bar` is the issue's bound, a floor unless `at_most`; `value` what was seen, in `unit`."""

    measure: str
    value: float
    unit: str
    bar: float | None
    note: str
    at_most: bool = False

    @property
    def judged(self) -> str:
        """The bar, and whether it is met."""
        if self.bar is None:
            return ""
        met = self.value <= self.bar if self.at_most else self.value >= self.bar
        return f"{'<=' if self.at_most else '>='} {self.bar:,.5g} {'met' if met else 'MISSED'}"


def plan_of(query: Mapping[str, Any], events: pa.Table) -> AnyPlan:
    """The query's plan over the events' columns."""
    return compile_plan(load_pattern(query), schema_of(events))


def best(work: Callable[[], Any], rounds: int = 3) -> tuple[float, Any]:
    """Least processor seconds over `rounds`, after one to warm up; and the result."""
    result = work()
    least = math.inf
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return least, result


def alternating(first: Callable[[], Any], second: Callable[[], Any], rounds: int = 3) -> tuple[float, float]:
    """Least processor seconds of each over `rounds`, after one to warm up. One follows the other, so that what else
    goes on in the machine meets both."""
    least = [math.inf, math.inf]
    for number in range(rounds + 1):
        for at, work in enumerate((first, second)):
            start = time.process_time()
            work()
            least[at] = least[at] if number == 0 else min(least[at], time.process_time() - start)
    return least[0], least[1]


def processor(work: Callable[[], Any]) -> float:
    """Processor seconds of `work`, in this process and all that it has started: Java, workers."""
    start = _tree_seconds()
    work()
    return _tree_seconds() - start


def _tree_seconds() -> float:
    """Processor seconds of this process, its children and theirs, those that have ended among them."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))  # utime, stime, and both of ended children
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    waiting, total = [os.getpid()], 0
    while waiting:
        process = waiting.pop()
        total += ticks.get(process, 0)
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def show(rows: list[Measured], name: str = "bench") -> None:
    """A table on the screen and JSON beside it, in the state folder."""
    table = Table("measure", "seen", "unit", "bar", "note", title=f"One core of {os.cpu_count()}, processor time")
    for row in rows:
        table.add_row(row.measure, f"{row.value:,.2f}", row.unit, row.judged, row.note)
    Console(width=160).print(table)
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")) / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    Console().print(f"JSON: {file}")
