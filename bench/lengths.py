"""What measures of whole trends cost, as ratios to a measure of their events: `python -m bench "Length of trends"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.engine import FALLING, stock
from bench.measured import Measured, best, plan_of, show
from trendlake.cep_core import run_plan

N = 1_000_000
RISING = {
    "pattern": "S+",
    "where": ["S.price < NEXT(S).price"],
    "select": "partition_contiguous",
    "return": {"trends": "COUNT(*)"},
    "within": "365 days",
}


def ratio(
    name: str, query: Mapping[str, Any], other: Mapping[str, Any], events: pa.Table, bar: float, goal: float
) -> Measured:
    """The processor seconds of a query, of those of the other one."""
    plans = [plan_of(one, events) for one in (query, other)]
    first, second = (best(lambda plan=plan: run_plan(plan, events))[0] for plan in plans)  # type: ignore[misc]
    note = f"{events.num_rows:,} events: {first:.3f} s against {second:.3f} s; goal {goal:g}"
    return Measured(name, first / second, "x", bar, note, at_most=True)


def returning(measure: str, query: Mapping[str, Any] = FALLING) -> dict[str, Any]:
    """The query with one measure."""
    return {**query, "return": {"m": measure}}


def lengths() -> list[Measured]:
    """All ratios: falling prices (one inequality), and unbroken runs."""
    rng = np.random.default_rng(5)
    events = stock(N, rng.random(N)).append_column("event_id", pa.array(np.arange(N)))
    highest, count = returning("MAX(S.price)"), returning("COUNT(*)")
    of_events = returning("COUNT(S)")
    rows = [
        ratio("MAX(LENGTH(*)), of MAX(S.x)", returning("MAX(LENGTH(*))"), highest, events, 1.2, 1.05),
        ratio("MAX(DURATION(*)), of MAX(S.x)", returning("MAX(DURATION(*))"), highest, events, 1.2, 1.05),
        ratio("SUM(LENGTH(*)), of COUNT(S)", returning("SUM(LENGTH(*))"), of_events, events, 1.02, 1),
        ratio("AVG(LENGTH(*)), of COUNT(S)", returning("AVG(LENGTH(*))"), of_events, events, 1.02, 1),
        ratio("LONGEST(*), of MAX(S.x)", returning("LONGEST(*)"), highest, events, 2.5, 1.6),
    ]
    eight = returning("COUNT(*) FILTER (WHERE LENGTH(*) >= 8)")
    rows.append(ratio("LENGTH(*) >= 8, of COUNT(*)", eight, count, events, 9, 4))
    rows.append(
        ratio("MAX_BY(S.x, S.y), of MAX(S.x)", returning("MAX_BY(S.price, S.price)"), highest, events, 1.5, 1.2)
    )
    every, maximal = RISING, RISING | {"output": "maximal"}
    rows.append(ratio("`output: maximal`, of `all`, partition_contiguous", maximal, every, events, 3, 1.5))
    return rows


if __name__ == "__main__":
    show(lengths(), "length of trends")
