"""Kind matches on one core: the template queries of SASE+ (Agrawal et al. 2008, section 6), and an exploding pattern.

The stream is the paper's: two symbols, prices that rise by 1 with probability 0.7 (else stay or fall), volumes from 1
to 1000. `SEQ(Stock a+, Stock b)`, `a[1].price % 500 = 0`, `b.volume < 150`, within W events of a partition; p1 takes
any a[i], p2 rising prices, p3 those above the least so far. Every match is written with all its events.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from cep_core import compile_query, run_plan
from cep_core.matches.finish import Finish
from cep_core.matches.results import result_table
from cep_core.matches.run import Matches
from cep_core.matches.stream import Stream
from cep_core.schema import schema_of

EVENTS = 40_000
BAR = 500_000
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


def seconds(query: dict[str, Any], events: pa.Table) -> tuple[float, pa.Table]:
    """Least processor seconds of three, after one to warm up."""
    plan = compile_query(query, schema_of(events))
    result = run_plan(plan, events)
    taken = []
    for _ in range(3):
        began = time.process_time()
        run_plan(plan, events)
        taken.append(time.process_time() - began)
    return min(taken), result


def unmerged(query: dict[str, Any], events: pa.Table) -> float:
    """Processor seconds with every run on its own."""
    plan: Any = compile_query(query, schema_of(events))
    began = time.process_time()
    stream = Stream(plan, events)
    finish = Finish(plan, stream)
    result_table(finish, Matches(plan, stream, finish, None, merging=False).chunks())
    return time.process_time() - began


def main() -> None:
    """Two tables."""
    console = Console(width=120)
    table = Table(title=f"SASE+ templates, {EVENTS:,} events, bar {BAR:,} events/s", title_justify="left")
    for name in ("query", "select", "W", "events/s", "runs apart, events/s", "matches", "events written"):
        table.add_column(name, justify="left" if name in ("query", "select") else "right")
    events = ticks(EVENTS)
    for select in ("partition_contiguous", "skip_till_next_match"):
        for name, condition in CONDITIONS.items():
            for window in (500, 2000):
                query = template(condition, select, window)
                taken, result = seconds(query, events)
                apart = f"{EVENTS / unmerged(query, events):,.0f}"
                written = sum(len(result[v].combine_chunks().flatten()) for v in "ab") if result.num_rows else 0
                rate = f"{EVENTS / taken:,.0f}"
                table.add_row(name, select, str(window), rate, apart, f"{result.num_rows:,}", f"{written:,}")
    console.print(table)
    table = Table(title="SEQ(A a+, B b+, C c+, E e) with no E, seconds (bar: 5 at 80,000)", title_justify="left")
    for name in ("select", "20,000 rows", "80,000 rows"):
        table.add_column(name, justify="left" if name == "select" else "right")
    for select in ("skip_till_next_match", "skip_till_any_match", "contiguous"):
        query = {"kind": "matches", "pattern": "SEQ(A a+, B b+, C c+, E e)", "select": select, "within": "30 days"}
        kinds = (np.random.default_rng(1).choice(list("ABC"), count) for count in (20_000, 80_000))
        table.add_row(select, *(f"{seconds(query, events_of(one))[0]:.2f}" for one in kinds))
    console.print(table)


if __name__ == "__main__":
    main()
