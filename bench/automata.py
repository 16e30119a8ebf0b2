"""Kind automaton on one core, by the measures of AFA (section 6, appendix D) and one of Trino's; a part of `make
bench`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan
from trendlake.cep_core.automaton.run.trace import stored

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICKS = 100_000
DOWN, UP = "e.change < 0", "e.change > 0"


def ticks(n: int, seed: int, ignorable: float = 0.0) -> pa.Table:
    """The paper's workload: a tick a millisecond, up or down with equal chance, by N(0.70, 0.30) dollars, truncated at
    a cent; a share of them ignorable (no change)."""
    rng = np.random.default_rng(seed)
    size = rng.normal(0.7, 0.3, n)
    while (short := size < 0.01).any():
        size[short] = rng.normal(0.7, 0.3, int(short.sum()))
    change = np.where(rng.random(n) < 0.5, size, -size)
    change[rng.random(n) < ignorable] = 0.0
    return table(change)


def table(change: Any) -> pa.Table:
    n = len(change)
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["Tick"]))
    stamp = pa.array(np.arange(n, dtype=np.int64) * 1000, pa.timestamp("us", "UTC"))
    ids = pa.array(np.arange(n, dtype=np.int64))
    return pa.table({"event_id": ids, "event_time": stamp, "event_type": kind, "change": change})


def vees(k: int, drop: float, window: int, ignorable: str | None = None) -> dict[str, Any]:
    """Q1: a drop, then k V shapes with as many upticks as downticks. `ignorable`: what `a` V shape passes over."""
    count = {"balance": "balance + 1"}, {"balance": "balance - 1"}, {"balance": "balance - 1", "vees": "vees + 1"}
    arcs: list[dict[str, Any]] = [
        {"from": "q0", "to": "q1", "when": f"e.change < {-drop}"},
        {"from": "q1", "to": "q1", "when": DOWN, "set": count[0]},
        {"from": "q1", "to": "q2", "when": DOWN, "set": count[0]},
        {"from": "q2", "to": "q2", "when": UP, "set": count[1]},
        {"from": "q2", "to": "q1", "when": f"{UP} AND vees < {k - 1}", "set": count[2]},
        {"from": "q2", "to": "q3", "when": f"{UP} AND vees = {k - 1} AND balance = 1", "set": count[2]},
    ]
    if ignorable:
        arcs += [{"from": q, "to": q, "when": ignorable, "ignore": True} for q in ("q1", "q2")]
    field = {"type": "int", "init": 0}
    return _automaton(arcs, "q3", window) | {"register": {"balance": field, "vees": field}}


def _automaton(arcs: list[dict[str, Any]], final: str, window: int) -> dict[str, Any]:
    within = f"{window} milliseconds"
    return {"kind": "automaton", "start": "q0", "final": [final], "arcs": arcs, "within": within}


def line(every: int | None) -> dict[str, Any]:
    """Q3: eight ticks in a row, each up or down by chance; `every` so many events one of them is turned round."""
    rng = np.random.default_rng(8)
    signs = [bool(sign) for sign in rng.integers(0, 2, 8)]
    since = [0] * 8
    arcs = []

    def arc(i: int, low: int, high: int | None) -> dict[str, Any]:
        step: dict[str, Any] = {"from": f"q{i}", "to": f"q{i + 1}", "when": UP if signs[i] else DOWN}
        lives = {"valid_from": low or None, "valid_to": high}
        return step | {name: (EPOCH + timedelta(milliseconds=t)).isoformat() for name, t in lives.items() if t}

    for t in range(every, TICKS, every) if every else ():
        i = int(rng.integers(0, 8))
        arcs.append(arc(i, since[i], t))
        signs[i], since[i] = not signs[i], t
    return _automaton(arcs + [arc(i, since[i], None) for i in range(8)], "q8", 500)


def speed() -> Measured:
    events = ticks(TICKS, 1)
    plan = plan_of(vees(2, 0.25, 2000), events)
    seconds, result = best(lambda: run_plan(plan, events), 7)
    note = f"{TICKS:,} ticks in {seconds * 1000:.1f} ms, {result.num_rows:,} rows; the paper: 0.2 on its machine"
    return Measured("AFA Q1, k = 2, window of 2,000", TICKS / seconds / 1e6, "million events/s", 2, note)


def dynamic() -> Measured:
    """Turn about, so that what else the machine does falls on both alike."""
    events = ticks(TICKS, 2)
    start = time.process_time()
    changing = plan_of(line(10), events)
    compiled = time.process_time() - start
    still = plan_of(line(None), events)
    times: dict[str, list[float]] = {"still": [], "changing": []}
    for _ in range(60):
        for name, plan in (("still", still), ("changing", changing)):
            times[name].append(best(lambda plan=plan: run_plan(plan, events), 1)[0])  # type: ignore[misc]
    slower = min(times["changing"]) / min(times["still"]) - 1
    note = (
        f"{min(times['still']) * 1000:.1f} and {min(times['changing']) * 1000:.1f} ms; "
        f"the {len(changing.arcs):,} arcs compile in {compiled:.2f} s, once, not counted"
    )
    return Measured("AFA Q3, an arc replaced every 10 events", 100 * slower, "% slower", 10, note, at_most=True)


def ignoring() -> list[Measured]:
    events = ticks(TICKS, 3, 0.9)
    plan = plan_of(vees(1, 0.0, 500, "e.change = 0"), events)
    with_intervals, copies = (stored(plan, events, intervals=so) for so in (True, False))
    note = f"partial runs kept as intervals {with_intervals / 1e6:.2f} MB, as copies {copies / 1e6:.2f} MB"
    share = Measured("90 % ignorable, memory of runs", with_intervals / copies, "of copies", 0.2, note, at_most=True)
    seconds, _ = best(lambda: run_plan(plan, events), 5)
    note = f"{TICKS:,} ticks in {seconds * 1000:.1f} ms"
    return [share, Measured("90 % ignorable, Q1, k = 1", TICKS / seconds / 1e6, "million events/s", None, note)]


def ambiguous() -> list[Measured]:
    """`A+ B+ C+ E` where every row may be A, B and C, and no row is E: a backtracking matcher tries O(n^3) ways from
    each row. Rows of one state are one group whose first events are shared data: O(1) a row."""
    always = "e.change > -1"
    steps = [("q0", "a"), ("a", "a"), ("a", "b"), ("b", "b"), ("b", "c"), ("c", "c")]
    arcs: list[dict[str, Any]] = [{"from": p, "to": q, "when": always} for p, q in steps]
    arcs.append({"from": "c", "to": "e", "when": "e.change < -1"})
    query = _automaton(arcs, "e", 10**9)
    rows = []
    for n in (20_000, 40_000, 80_000):
        events = table(np.zeros(n))
        plan = plan_of(query, events)
        seconds, _ = best(lambda plan=plan, events=events: run_plan(plan, events), 3)  # type: ignore[misc]
        bar = 5.0 if n == 80_000 else None
        note = f"{seconds / n * 1e9:.0f} ns a row"
        rows.append(Measured(f"A+ B+ C+ E, no E, {n:,} rows", seconds, "s", bar, note, at_most=True))
    return rows


def automata() -> list[Measured]:
    """All measures of kind automaton."""
    parts: tuple[Callable[[], Measured], ...] = (speed, dynamic)
    return [*(part() for part in parts), *ignoring(), *ambiguous()]


Query = Mapping[str, Any]

if __name__ == "__main__":
    from bench.measured import show

    show(automata(), "automata")
