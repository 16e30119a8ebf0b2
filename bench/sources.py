"""Events of three tables beside the same events in one table, on one core: `python -m bench.sources`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measured import Measured, alternating, show
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.events.schema import EventSchema, schema_of

START = 1_577_836_800_000_000
"""2020-01-01."""
SPAN = 86_400_000_000 * 10
"""Microseconds of the events."""
TIME = pa.timestamp("us", "UTC")
TYPES = {"Order": "orders", "Payment": "payments", "Ticket": "tickets"}
EVENTS = 1_000_000
ROUNDS = 6
BOUND, GOAL = 1.15, 1.03
PATTERNS: Mapping[str, Mapping[str, Any]] = {
    "trends": {
        "kind": "trends",
        "pattern": "SEQ(Order o+, Payment p)",
        "where": ["[customer]", "o.amount > NEXT(o).amount"],
        "group_by": ["customer"],
        "return": {"n": "COUNT(*)", "total": "SUM(p.amount)"},
        "within": "1 day",
    },
    "matches": {
        "kind": "matches",
        "pattern": "SEQ(Order o, Payment p, Ticket t)",
        "where": ["[customer]", "o.amount > 500", "p.amount > 500", "t.amount > 500"],
        "select": "partition_contiguous",
        "within": "1 hour",
    },
    "automaton": {
        "kind": "automaton",
        "start": "idle",
        "final": ["done"],
        "partition_by": ["customer"],
        "arcs": [
            {"from": "idle", "to": "high", "when": "e.amount > 950"},
            {"from": "high", "to": "done", "when": "e.amount > 950"},
        ],
        "within": "1 hour",
    },
}
"""By kind, over the events of all types; the second and the third read the total order, and ids."""


def tables(events: int) -> tuple[dict[str, pa.Table], pa.Table]:
    """Three tables of events in order of time, and all of these in one table, whose column `sequence` is their total
    order."""
    random = np.random.default_rng(3)
    times = START + np.sort(random.integers(0, SPAN, events))
    table = random.integers(0, len(TYPES), events)
    own = np.empty(events, np.int64)
    for number in range(len(TYPES)):
        mine = table == number
        own[mine] = np.arange(int(mine.sum()))
    customer, amount = random.integers(0, events // 1_000, events), random.random(events) * 1000
    columns = {"event_time": pa.array(times, TIME), "customer": customer, "amount": amount}
    rank = np.empty(events, np.int64)
    rank[np.lexsort((own, table, times))] = np.arange(events)
    kinds = pa.DictionaryArray.from_arrays(pa.array(table.astype(np.int32)), pa.array(list(TYPES)))
    whole = {"event_id": own * len(TYPES) + table, "event_type": kinds, "sequence": rank}
    rows = pa.table({"event_id": own, **columns})
    several = {name: rows.filter(pa.array(table == number)) for number, name in enumerate(TYPES.values())}
    return several, pa.table(columns | whole)


def three_of_one(kind: str, several: Mapping[str, pa.Table], one: pa.Table, rounds: int = ROUNDS) -> Measured:
    """Processor seconds over three tables, of those over one."""
    query = dict(PATTERNS[kind])
    schemas = {}
    for name, table in several.items():
        plain = schema_of(table, event_type=None, roles=("event_time",))
        schemas[name] = EventSchema(dict(plain.columns), "event_id", "event_time", "")
    united = compile_query(query | {"sources": TYPES}, schemas)
    alone = compile_query(query, schema_of(one, sequence="sequence"))
    first, second = alternating(lambda: run_plan(united, several), lambda: run_plan(alone, one), rounds)
    rows, others = (run_plan(*of).num_rows for of in ((united, several), (alone, one)))
    if rows != others:
        raise SystemExit(f"{kind}: {rows} rows of three tables, {others} of one")
    note = f"{one.num_rows:,} events: {first:.2f} s against {second:.2f} s, {rows:,} rows; goal {GOAL:g}"
    return Measured(f"kind {kind}, three tables of one", first / second, "x", BOUND, note, at_most=True)


def sources(events: int = EVENTS) -> list[Measured]:
    """All measures of several tables in this process."""
    several, one = tables(events)
    return [three_of_one(kind, several, one) for kind in PATTERNS]


if __name__ == "__main__":
    show(sources(), "sources")
