"""The worked cases as batches: the events of many cases are one table, those of each at times of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import lcm
from typing import Any

import pyarrow as pa

from tests.support.cases import Case, load, unexpected
from tests.support.engines import from_table, to_table
from trendlake.cep_core import AnyPlan, compile_plan, load_pattern
from trendlake.cep_core.events.schema import schema_of

SECOND = 1_000_000
GAP = 400 * 86_400
"""Seconds between the events of one case and of the next, at least."""
CASES = {kind: load(f"{kind}.yaml") for kind in ("trends", "matches", "automaton")}


@dataclass
class Batch:
    """Cases whose columns of one name are of one type; the events of each are `shifts` seconds later."""

    types: dict[str, pa.DataType] = field(default_factory=dict)
    cases: list[tuple[str, Case]] = field(default_factory=list)
    shifts: list[int] = field(default_factory=list)


def of_any_time(case: Case) -> bool:
    """Whether the query speaks of no point in time: its answer is then the same at other times."""
    return "valid_" not in str(case.query)


def case_batches() -> list[Batch]:
    every: list[Batch] = []
    for kind, cases in CASES.items():
        for case in cases:
            if not of_any_time(case):
                continue
            types = {f.name: f.type for f in to_table(case.events).schema}
            fitting = (one for one in every if all(one.types.get(name, t) == t for name, t in types.items()))
            batch = next(fitting, None)
            if batch is None:
                every.append(batch := Batch())
            batch.types |= types
            batch.cases.append((kind, case))
    for batch in every:
        end = 0
        for _, case in batch.cases:
            slide = slide_of(case)
            shift = -(-(end + GAP) // slide) * slide
            batch.shifts.append(shift)
            end = shift + max((int(Fraction(row["time"])) for row in case.events), default=0)
    return every


def slide_of(case: Case) -> int:
    """A multiple of the slide of its windows in whole seconds."""
    plan = compile_plan(load_pattern(case.query), schema_of(to_table(case.events)))
    return lcm(plan.windows.slide, SECOND) // SECOND


def events_of(batch: Batch) -> Iterator[dict[str, Any]]:
    for number, ((_, case), shift) in enumerate(zip(batch.cases, batch.shifts, strict=True)):
        for row in case.events:
            yield {**row, "id": f"{number}~{row['id']}", "time": Fraction(row["time"]) + shift}


def asked(plan: AnyPlan, case: Case, shift: int) -> range:
    """All windows that hold an event of the case."""
    held = [plan.windows.holding(int((Fraction(row["time"]) + shift) * SECOND)) for row in case.events]
    return range(min(windows[0] for windows in held), max(windows[-1] for windows in held) + 1) if held else range(0)


def table_of(batch: Batch) -> pa.Table:
    """The events of all cases."""
    return to_table(list(events_of(batch)), {n: t for n, t in batch.types.items() if not n.startswith("event_")})


def plans_of(batch: Batch, table: pa.Table) -> list[AnyPlan]:
    return [compile_plan(load_pattern(case.query), schema_of(table)) for _, case in batch.cases]


def windows_of(batch: Batch, plans: Sequence[AnyPlan]) -> list[range]:
    """The windows of each plan that hold an event of its case."""
    return [asked(plan, case, shift) for plan, (_, case), shift in zip(plans, batch.cases, batch.shifts, strict=True)]


def faults(kind: str, case: Case, answer: pa.Table, number: int, shift: int) -> list[str]:
    rows = [{name: moved(name, value, number, shift) for name, value in row.items()} for row in from_table(answer)]
    if kind == "trends":
        return unexpected(case, rows)
    if not case.expect:
        return [str(row) for row in rows]
    columns = list(case.expect[0])
    had, wanted = (sorted(str([row[name] for name in columns]) for row in some) for some in (rows, case.expect))
    return [] if had == wanted else [f"{wanted} expected, {had} are there"]


def moved(name: str, value: Any, number: int, shift: int) -> Any:
    """A value as it is where the case is alone."""
    if isinstance(value, list):
        return [moved(name, one, number, shift) for one in value]
    if isinstance(value, str):
        return value.removeprefix(f"{number}~")
    if isinstance(value, datetime):
        return value - timedelta(seconds=shift)
    return value - shift * SECOND if name in ("window_start", "window_end") else value
