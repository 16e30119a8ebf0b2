"""Kind algebra on one core: chart patterns by FOLD and by instants, NEXT by key beside Arrow's sort, and many queries
of one template (Hong 2009, sections 4.6 and 5.5); a part of `make bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.measured import Measured, best, plan_of
from bench.workloads import drawn
from trendlake.cep_core import run_plan, run_plans
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.generate.quotes import quotes
from trendlake.pipelines.project.paths import find_project

TICKS = 1_000_000
KEYED = 10_000_000
EVENTS = 100_000
MANY = 10_000
"""Queries of each template."""
PRICES, GAP = 8_000, 5_000_000
"""Greatest price, and microseconds from event to event: then of 10,000 queries some five begin at an event and some 600
wait for a next one, as in the paper, whose 200,000 have 100, and 6,000 to 16,000 (4.6.1)."""
TEMPLATES = {
    "LinearStat": "FROM FILTER{{name = {n} AND price < {c}}}(FILTER{{name = {n} AND price > {b}}}("
    "FILTER{{name = {n} AND price < {a}}}(Stock) NEXT Stock) NEXT Stock)",
    "Filter": "FROM FILTER{{price < {c}}}(FILTER{{price > {b}}}(FILTER{{name = {n} AND price < {a}}}(Stock) "
    "NEXT{{DUR <= 10 minutes AND $2.name = {n}}} Stock) NEXT{{DUR <= 10 minutes AND $2.name = {n}}} Stock)",
    "NonDeterministic": "FROM FILTER{{price < {c}}}(FILTER{{price > {b}}}(FILTER{{name = {n} AND price < {a}}}(Stock) "
    "FOLD{{DUR <= 10 minutes AND $2.name = {n}, , }} Stock) FOLD{{DUR <= 10 minutes AND $2.name = {n}, , }} Stock)",
}
"""The paper's templates. A name is one of 1,000, drawn as the constants are; prices are drawn evenly."""


def example(name: str) -> dict[str, Any]:
    """A shipped pattern, as it is."""
    path: Path = find_project().root / "examples" / f"{name}.yaml"
    query: dict[str, Any] = plain(read_yaml(path).data)
    del query["name"]
    return query


def ticks() -> pa.Table:
    """The stream `quotes`: 10 symbols, a random walk each; here no two ticks share a time, one comes a second."""
    table = quotes(TICKS, 1.0, 1, 0)
    times = pa.array(np.arange(TICKS) * 1_000_000).cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index("event_time"), "event_time", times)


def charts() -> list[Measured]:
    """Double-Top in two ways beside kind automaton's, and rising runs."""
    events = ticks()
    plan = plan_of(example("automata/double_top"), events)
    automaton, runs = best(lambda: run_plan(plan, events))
    rows = []
    for name, bar in (("folds", 2.0), ("instants", None)):
        plan = plan_of(example(f"algebra/double_top_by_{name}"), events)
        seconds, result = best(lambda plan=plan: run_plan(plan, events))  # type: ignore[misc]
        note = (
            f"{TICKS:,} quotes of 10 symbols, {result.num_rows:,} rows in {seconds * 1000:.0f} ms; "
            f"automaton {runs.num_rows:,} in {automaton * 1000:.0f} ms (other rows by definition)"
        )
        rows.append(
            Measured(f"Double-Top by {name} against kind automaton", seconds / automaton, "x", bar, note, at_most=True)
        )
    query = {
        "kind": "algebra",
        "pattern": "SELECT price_1 AS first, price FROM Tick FOLD{, $2.price > $.price, } Tick",
        "partition_by": ["symbol"],
        "within": "1 hour",
    }
    plan = plan_of(query, events)
    seconds, result = best(lambda: run_plan(plan, events))
    note = f"{TICKS:,} events in {seconds * 1000:.0f} ms, {result.num_rows:,} rows"
    rows.append(Measured("rising runs by FOLD", TICKS / seconds / 1e6, "million events/s", 2, note))
    return rows


def by_key() -> Measured:
    """NEXT by an equality, beside one sort by (key, end) in Arrow of the columns that it reads."""
    chance = np.random.default_rng(5)
    events = pa.table(
        {
            "event_id": np.arange(KEYED),
            "event_time": pa.array(np.arange(KEYED) * 100_000).cast(pa.timestamp("us", "UTC")),
            "event_type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(KEYED, np.int32)), pa.array(["S"])),
            "key": chance.integers(0, 100_000, KEYED),
        }
    )
    query = {
        "kind": "algebra",
        "pattern": "SELECT event_id_1 AS first, event_id AS next FROM S NEXT{$1.key = $2.key} S",
        "within": "1 day",
        "limit_per_partition": 1_000_000_000,
    }
    plan = plan_of(query, events)
    order = [("key", "ascending"), ("event_time", "ascending")]
    sorting, _ = best(lambda: events.take(pc.sort_indices(events, sort_keys=order)), 2)
    seconds, result = best(lambda: run_plan(plan, events), 2)
    note = (
        f"{KEYED:,} events, 100,000 keys, {result.num_rows:,} rows of 32 bytes in {seconds:.2f} s; sort {sorting:.2f} s"
    )
    return Measured("NEXT by key against Arrow's sort by (key, end)", seconds / sorting, "x", 3, note, at_most=True)


def stocks() -> pa.Table:
    """The paper's events: names by Zipf's law, prices evenly."""
    chance = np.random.default_rng(6)
    names = np.array(drawn(EVENTS, "zipf", chance)) - 1
    return pa.table(
        {
            "event_id": np.arange(EVENTS),
            "event_time": pa.array(np.arange(EVENTS) * GAP).cast(pa.timestamp("us", "UTC")),
            "event_type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(EVENTS, np.int32)), pa.array(["Stock"])),
            "name": names,
            "price": chance.integers(1, PRICES + 1, EVENTS),
        }
    )


def subscriptions(template: str, count: int) -> list[dict[str, Any]]:
    """`count` queries of a template; constants by Zipf's law."""
    chance = np.random.default_rng(7)
    columns = [drawn(count, "zipf", chance) for _ in range(4)]
    queries = []
    for n, a, b, c in zip(*columns, strict=True):
        text = TEMPLATES[template].format(n=n - 1, a=a, b=PRICES + 1 - b, c=c)
        queries.append({"kind": "algebra", "pattern": text, "within": "1 hour"})
    return queries


def together() -> list[Measured]:
    """The time of many subscriptions over that of one, the mean of ten."""
    events = stocks()
    rows = []
    for template in TEMPLATES:
        plans = [plan_of(query, events) for query in subscriptions(template, MANY)]
        ones = [best(lambda plan=plan: run_plan(plan, events), 1)[0] for plan in plans[:10]]  # type: ignore[misc]
        one = sum(ones) / len(ones)
        many, answers = best(lambda plans=plans: list(run_plans(plans, events)), 1)  # type: ignore[misc]
        total = sum(answer.num_rows for _, answer in answers if isinstance(answer, pa.Table))
        note = (
            f"{EVENTS:,} events; {many:.2f} s against {one * 1000:.1f} ms; {len({plan.hash for plan in plans}):,} "
            f"different; {total:,} rows"
        )
        rows.append(Measured(f"{template}, T({MANY:,}) / T(1)", many / one, "x", 100, note, at_most=True))
    return rows


def algebra() -> list[Measured]:
    """All measures of kind algebra on one core."""
    return [*charts(), by_key(), *together()]


if __name__ == "__main__":
    from bench.measured import show

    show(algebra(), "algebra")
