"""Many patterns over one table of events: T(P), the processor time of P patterns together, beside T(1)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bench.measured import Measured, best, plan_of, show
from bench.workloads import Law, stream, workload
from trendlake.cep_core import AnyPlan, run_plans


def together(plans: list[AnyPlan], events: pa.Table, rounds: int = 2) -> float:
    """Least processor seconds."""

    def work() -> list[Any]:
        return list(run_plans(plans, events))

    return best(work, rounds)[0]


def times(template: str, count: int, law: Law, events: pa.Table) -> tuple[float, float]:
    """T(count) and T(1), the mean of the first five patterns, each alone."""
    plans = [plan_of(query, events) for query in workload(template, count, law)]
    alone = [together([plan], events) for plan in plans[:5]]
    return together(plans, events), sum(alone) / len(alone)


def sharing() -> list[Measured]:
    """W1 and W3 to W6 over a million events."""
    events = stream()
    rows = []
    laws: tuple[Law, ...] = ("zipf", "uniform")
    for law in laws:
        many, one = times("W4", 1_000, law, events)
        note = f"{many:.2f} s together, {one * 1000:.1f} ms each alone"
        rows.append(Measured(f"W4, 1,000 patterns, {law}: alone against together", 1_000 * one / many, "x", 30, note))
    for template, count, bar, what in (
        ("W1", 1_000, 40, "a constant for each event"),
        ("W3", 10, 5, "thresholds of one variable"),
        ("W5", 100, 60, "thresholds, slices that hold one another"),
        ("W6", 100, 70, "all want all events"),
    ):
        many, one = times(template, count, "uniform", events)
        note = f"{what}: {many:.2f} s against {one * 1000:.1f} ms"
        rows.append(Measured(f"{template}: T({count:,}) / T(1)", many / one, "x", bar, note, at_most=True))
    return rows


if __name__ == "__main__":
    show(sharing(), "sharing")
