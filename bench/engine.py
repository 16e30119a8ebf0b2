"""The engine on one core: `make bench`. Ratios and rates of one run, best of a few, never a timed test."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.greta import falling_prices
from bench.measured import Measured, best, plan_of, show
from trendlake.cep_core import run_plan
from trendlake.cep_core.trends.kernels.scaled import RADIX

FALLING = {
    "pattern": "S+",
    "where": ["S.price > NEXT(S).price"],
    "return": {"trends": "COUNT(*)"},
    "within": "365 days",
}


def stock(n: int, price: Any) -> pa.Table:
    """n events of type S, a millisecond apart."""
    stamp = pa.array(np.arange(n, dtype=np.int64) * 1000, pa.timestamp("us", "UTC"))
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["S"]))
    return pa.table({"event_time": stamp, "event_type": kind, "price": price})


def rate(
    name: str, query: Mapping[str, Any], events: pa.Table, bar: float | None, goal: float | None = None
) -> Measured:
    """Events a second. `bar`: the floor; `goal`: what more there is to win, shown beside it."""
    plan = plan_of(query, events)
    seconds, result = best(lambda: run_plan(plan, events))
    shown = result.column("trends_log10").to_pylist()[:1]
    note = f"{events.num_rows:,} events in {seconds:.3f} s; a count near 10^{shown[0]:.0f}" if shown else ""
    if goal is not None:
        note = f"{note}; goal {goal:g}"
    return Measured(name, events.num_rows / seconds / 1e6, "million events/s", bar, note)


def against_greta(n: int, levels: int) -> Measured:
    rng = np.random.default_rng(1)
    level = rng.integers(0, levels, n)
    events = stock(n, level.astype(np.float64))
    plan = plan_of(FALLING, events)
    ours, result = best(lambda: run_plan(plan, events), 50)
    falling_prices(level[:100], levels)
    start = time.process_time()
    m, e = falling_prices(level, levels)
    theirs = time.process_time() - start
    expected = math.log10(m) + e * RADIX * math.log10(2.0)
    ours_log10 = result["trends_log10"][0].as_py()
    if not math.isclose(expected, ours_log10, rel_tol=1e-9):
        raise SystemExit(f"the peer counts 10^{expected}, ours 10^{ours_log10}")
    times = f"{theirs:.2f} s against {ours * 1000:.1f} ms"
    note = f"{n:,} events, {levels:,} prices: {times}; both count 10^{expected:.3f}; goal 2,000"
    return Measured("falling prices, against GRETA's O(n^2)", theirs / ours, "x", 1800, note)


def against_partitions(windows: Mapping[str, Any], partitions: Mapping[str, Any], events: pa.Table) -> Measured:
    """Tumbling windows, of the time that the same events take as partitions of one window."""
    plans = [plan_of(query, events) for query in (windows, partitions)]
    first, second = (best(lambda plan=plan: run_plan(plan, events))[0] for plan in plans)  # type: ignore[misc]
    note = f"{events.num_rows:,} events: {first:.3f} s against {second:.3f} s by an equivalence; goal 1.1"
    name = "falling prices, 1,000 tumbling windows of 1,000 events, of as many partitions"
    return Measured(name, first / second, "x", 1.5, note, at_most=True)


def large_counts(windows: int) -> Measured:
    """Windows whose counts float64 does not hold: all of a run, by window."""
    size = 67  # 2^67 - 1 trends each
    events = stock(windows * size, np.arange(windows * size) * 1.0)
    plan = plan_of(FALLING | {"where": [], "within": f"{size} milliseconds"}, events)
    seconds, result = best(lambda: run_plan(plan, events))
    if result["trends"].to_pylist() != [2**size - 1] * windows:
        raise SystemExit("a window has a wrong count")
    note = f"{events.num_rows:,} events in {seconds:.3f} s, a count near 10^20; goal 2"
    return Measured(f"counts past 2^53, {windows:,} windows", seconds / windows * 1e6, "us a window", 10, note, True)


def growth(largest: int) -> list[Measured]:
    rows = []
    rng = np.random.default_rng(3)
    n = largest // 16
    while n <= largest:
        events = stock(n, rng.random(n))
        plan = plan_of(FALLING, events)
        seconds, _ = best(lambda plan=plan, events=events: run_plan(plan, events))  # type: ignore[misc]
        unit = seconds / (n * math.log2(n)) * 1e9
        rows.append(Measured(f"growth, n = {n:,}", unit, "ns / (n log2 n)", None, f"{seconds:.3f} s"))
        n *= 2
    ratio = rows[-1].value / rows[0].value
    name = f"growth, n = {largest:,}, of n = {largest // 16:,}"
    rows.append(Measured(name, ratio, "x", 1.1, "of ns / (n log2 n); goal 1", at_most=True))
    return rows


def engine() -> list[Measured]:
    """All measures of the engine."""
    rng = np.random.default_rng(2)
    rows = [against_greta(100_000, 1000)]
    n = 1_000_000
    rows.append(rate("falling prices, all distinct", FALLING, stock(n, rng.random(n)), 5, 6.5))
    n = 4_000_000
    events = stock(n, rng.random(n))
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 2, n).astype(np.int32)), pa.array(["A", "B"]))
    events = events.set_column(1, "event_type", kinds)
    query = {"pattern": "SEQ(A+, B)+", "return": {"trends": "COUNT(*)"}, "within": "365 days"}
    rows.append(rate("no adjacent predicate, SEQ(A+, B)+", query, events, 30, 35))
    n = 200_000
    sliding = FALLING | {"within": "6 seconds", "slide": "100 milliseconds"}
    rows.append(rate("falling prices, 60 windows an event", sliding, stock(n, rng.integers(0, 1000, n) * 1.0), 2.5, 3))
    rows.append(large_counts(10_000))
    n = 1_000_000
    for overlap in (6, 60, 600):
        windows = {"pattern": "S+", "where": [], "within": f"{overlap} seconds", "slide": "1 second"}
        name = f"no adjacent predicate, {overlap} windows an event"
        rows.append(rate(name, FALLING | windows, stock(n, rng.random(n)), None))
    events = stock(n, rng.random(n))
    tumbling = FALLING | {"within": "1 second"}
    by_window = FALLING | {"where": ["[window]", *FALLING["where"]]}
    rows.append(against_partitions(tumbling, by_window, events.append_column("window", pa.array(np.arange(n) // 1000))))
    short = FALLING | {"within": "100 milliseconds"}
    rows.append(rate("falling prices, 10,000 tumbling windows of 100 events", short, events, 3, goal=5))
    grouped = FALLING | {"where": ["[group]", *FALLING["where"]], "group_by": ["group"]}
    groups = events.append_column("group", pa.array(rng.permutation(np.arange(n) % 100_000)))
    rows.append(rate("falling prices, 100,000 groups of 10 events", grouped, groups, 3, goal=6))
    n = 200_000
    both = FALLING | {"where": ["S.price > NEXT(S).price", "S.price <= NEXT(S).price + 0.5"]}
    rows.append(rate("a range on one attribute", both, stock(n, rng.random(n)), 0.5, goal=1))
    two = FALLING | {"where": ["S.price > NEXT(S).price", "S.volume <= NEXT(S).volume"]}
    events = stock(n, rng.random(n)).append_column("volume", pa.array(rng.random(n)))
    rows.append(rate("two inequalities on two attributes", two, events, 0.15, goal=0.5))
    return rows + growth(4_000_000)


if __name__ == "__main__":
    show(engine(), "engine")
