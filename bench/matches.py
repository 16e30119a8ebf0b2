"""Kind matches on one core: the template queries of SASE+ (Agrawal et al. 2008, section 6), and an exploding pattern.

The stream is the paper's: two symbols, prices that rise by 1 with probability 0.7 (else stay or fall), volumes from 1
to 1000. `SEQ(Stock a+, Stock b)`, `a[1].price % 500 = 0`, `b.volume < 150`, within W events of a partition; p1 takes
any a[i], p2 rising prices, p3 those above the least so far. Every match is written with all its events.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.matcher import Automaton
from trendlake.cep_core.matches.run.results import result_table
from trendlake.cep_core.matches.run.run import Matches

EVENTS = 40_000
WRITING = ("p1", 2_000)
"""Here nearly all time is spent on writing the ids of each match."""
CONDITIONS = {"p1": [], "p2": ["a[i].price > a[i-1].price"], "p3": ["a[i].price > min(a[..i-1].price)"]}


def events_of(kinds: Any, **columns: Any) -> pa.Table:
    """Events a second apart."""
    numbers = np.arange(len(kinds), dtype=np.int64)
    times = pa.array(numbers * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"event_id": numbers, "event_time": times, "event_type": pa.array(kinds), **columns})


def ticks(count: int, rise: float = 0.7) -> pa.Table:
    """The paper's stream; prices run round in 1..1000."""
    random = np.random.default_rng(7)
    symbol = random.integers(1, 3, count)
    price = np.zeros(count, np.int64)
    for one in (1, 2):
        mine = symbol == one
        steps = random.choice([1, -1, 0], mine.sum(), p=[rise, (1 - rise) / 2, (1 - rise) / 2])
        price[mine] = (500 + np.cumsum(steps)) % 1000 + 1
    return events_of(np.full(count, "Stock"), symbol=symbol, price=price, volume=random.integers(1, 1001, count))


def template(condition: list[str], select: str, window: int) -> dict[str, Any]:
    """W events of one of two partitions are about 2 W seconds."""
    where = ["[symbol]", "a[1].price % 500 = 0", "b.volume < 150", *condition]
    pattern = "SEQ(Stock a+, Stock b)"
    return {"kind": "matches", "pattern": pattern, "where": where, "select": select, "within": f"{2 * window} seconds"}


def speed(name: str, select: str, window: int) -> Measured:
    """One template: events a second, every match written; beside it, every run on its own, and runs stepped only."""
    events = ticks(EVENTS)
    plan: Any = plan_of(template(CONDITIONS[name], select, window), events)
    merged, result = best(lambda: run_plan(plan, events))
    written = sum(len(result[v].combine_chunks().flatten()) for v in "ab")
    apart = best(lambda: unmerged(plan, events), 1)[0]
    steps, steps_apart = (best(lambda on=on: stepped(plan, events, on))[0] for on in (True, False))  # type: ignore[misc]
    whole, only = f"not merged {_rate(apart)}", f"runs stepped only: {_rate(steps)}, not merged {_rate(steps_apart)}"
    note = f"{result.num_rows:,} matches of {written:,} events; {whole}; {only}"
    measure = f"SASE+ {name}, {select}, W {window:,}"
    if name == WRITING[0] and window == WRITING[1]:
        note = f"{float(_rate(merged))} million events/s; {note}; goal 400"
        return Measured(f"{measure}, ids written", written / merged / 1e6, "million ids/s", 150, note)
    return Measured(measure, float(_rate(merged)), "million events/s", 0.5, note)


def _rate(seconds: float) -> str:
    return f"{EVENTS / seconds / 1e6:.2f}"


def unmerged(plan: Any, events: pa.Table) -> pa.Table:
    """The result with every run on its own."""
    stream = Stream(plan, events)
    return result_table(plan, stream, Matches(plan, stream, None, merging=False).chunks())


def stepped(plan: Any, events: pa.Table, merging: bool) -> int:
    """How many ends the automaton tells, no match read (as the paper measures merging: experiment 6)."""
    return sum(len(ends) for ends, _, _ in Automaton(plan, Stream(plan, events), merging=merging).blocks())


def exploding(select: str) -> Measured:
    """80,000 rows of A, B and C, and no E: Trino needs hours."""
    query = {"kind": "matches", "pattern": "SEQ(A a+, B b+, C c+, E e)", "select": select, "within": "30 days"}
    taken = []
    for count in (20_000, 80_000):
        events = events_of(np.random.default_rng(1).choice(list("ABC"), count))
        plan = plan_of(query, events)
        taken.append(best(lambda plan=plan, events=events: run_plan(plan, events))[0])  # type: ignore[misc]
    note = f"80,000 rows; {taken[1] / taken[0]:.1f} times that of 20,000"
    return Measured(f"A+ B+ C+ E with no E, {select}", taken[1], "s", 5.0, note, at_most=True)


OPERATORS = "SEQ(A a?, B b{2,5}, (C c OR D d))"


def as_automaton(contiguous: bool) -> dict[str, Any]:
    """`OPERATORS` as a pattern of kind automaton: a state for each position, and a loop where events may be ignored."""

    def arc(source: str, target: str, kinds: str, **more: bool) -> dict[str, Any]:
        return {"from": source, "to": target, "when": f"e.event_type IN ({kinds})", **more}

    ends = {"c": "'C'", "d": "'D'"}
    arcs = [arc("q0", "a", "'A'"), arc("q0", "b1", "'B'"), arc("a", "b1", "'B'")]
    arcs += [arc(f"b{k}", f"b{k + 1}", "'B'") for k in range(1, 5)]
    arcs += [arc(f"b{k}", end, kinds) for k in range(2, 6) for end, kinds in ends.items()]
    if not contiguous:
        arcs += [arc(state, state, "'A', 'C', 'D'", ignore=True) for state in ("a", "b1", "b2", "b3", "b4")]
        arcs.append(arc("b5", "b5", "'A', 'B'", ignore=True))
    return {"kind": "automaton", "start": "q0", "final": [*ends], "arcs": arcs, "partition_by": ["k"]}


def operators(select: str) -> Measured:
    """A pattern of operators, against the same as an automaton, whose rows have no lists of events."""
    random = np.random.default_rng(1)
    count = 1_000_000
    events = events_of(random.choice(list("ABCD"), count, p=[0.2, 0.5, 0.15, 0.15]), k=random.integers(0, 1000, count))
    automaton = as_automaton(contiguous=select != "skip_till_next_match")
    query = {"kind": "matches", "pattern": OPERATORS, "where": ["[k]"], "select": select}
    plans = [plan_of({**one, "within": "1 hour"}, events) for one in (query, automaton)]
    (mine, rows), (other, others) = (best(lambda plan=plan: run_plan(plan, events)) for plan in plans)  # type: ignore[misc]
    note = (
        f"{rows.num_rows:,} matches in {mine:.2f} s; kind automaton {others.num_rows:,} rows in {other:.2f} s; goal 1"
    )
    return Measured(f"{OPERATORS}, {select}, of kind automaton", mine / other, "x", 2.0, note, at_most=True)


def matches() -> list[Measured]:
    """All measures of kind matches."""
    selections = ("partition_contiguous", "skip_till_next_match")
    speeds = [speed(name, select, window) for select in selections for name in CONDITIONS for window in (500, 2000)]
    speeds += [exploding(select) for select in ("skip_till_next_match", "skip_till_any_match", "contiguous")]
    return speeds + [operators(select) for select in selections]


if __name__ == "__main__":
    from bench.measured import show

    show(matches(), "matches")
