"""Kind match_recognize on one core: events in memory, in order but where a measure says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan
from trendlake.cep_core.match_recognize.compile.classes import class_of_plan

V_SHAPE = "PATTERN (S D+ U+) DEFINE D AS price < PREV(price), U AS price > PREV(price)"
ENDS = "S.price AS top, LAST(D.price) AS bottom, LAST(U.price) AS back, COUNT(*) AS n"
NO_E = "PATTERN (A+ B+ C+ E) DEFINE A AS x < 90, B AS x < 80, C AS x < 70, E AS x > 100"
SUMS = "PATTERN (A+ B) DEFINE A AS SUM(price) < 1000 AND AVG(price) < 200, B AS price > PREV(price)"
FREE_SUMS = "PATTERN ((A | B)+ C) DEFINE A AS SUM(A.x) < 200, B AS SUM(B.x) < 200 AND x > 20, C AS AVG(B.x) > AVG(A.x)"


def prices(count: int, partitions: int = 1) -> pa.Table:
    """A random walk, a second apart in each partition; `x` from 0 to 99."""
    random = np.random.default_rng(7)
    times = np.tile(np.arange(count // partitions, dtype=np.int64), partitions) * 1_000_000
    return pa.table(
        {
            "event_id": np.arange(count),
            "event_time": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "event_type": pa.array(np.full(count, "T")),
            "symbol": np.repeat(np.arange(partitions), count // partitions),
            "price": np.round(100 + np.cumsum(random.normal(0, 1, count)), 2),
            "x": random.integers(0, 100, count),
        }
    )


def row_pattern(measures: str, rest: str, *, partitions: bool = False, rows: str = "ONE ROW PER MATCH") -> Any:
    by = "PARTITION BY symbol " if partitions else ""
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({by}ORDER BY event_time MEASURES {measures} {rows} {rest})"
    return {"kind": "match_recognize", "pattern": text, "limit_per_partition": 1_000_000_000}


def seconds(measure: str, query: Any, events: pa.Table, floor: float, goal: float) -> Measured:
    """How long one query takes, ordering and measures included."""
    plan: Any = plan_of(query, events)
    taken, result = best(lambda: run_plan(plan, events))
    note = f"class {class_of_plan(plan)}; {result.num_rows:,} rows of {events.num_rows:,} events; goal {goal:g}"
    return Measured(measure, taken, "s", floor, note, at_most=True)


def against_sort(query: Any, events: pa.Table) -> Measured:
    """Rows in no order: the query against Arrow's sort of its columns by partition and time."""
    plan: Any = plan_of(query, events)
    taken, _ = best(lambda: run_plan(plan, events))
    keys = [("symbol", "ascending"), ("event_time", "ascending")]
    alone, _ = best(lambda: events.sort_by(keys))
    note = f"{events.num_rows:,} events: {taken:.3f} s against {alone:.3f} s; goal 1.2"
    return Measured("V shapes and the sort, of the sort alone", taken / alone, "x", 1.5, note, at_most=True)


def row_patterns() -> list[Measured]:
    """All measures of kind match_recognize that need no Spark."""
    many, half = prices(2_000_000, 1_000), prices(500_000)
    mixed = many.take(pa.array(np.random.default_rng(1).permutation(many.num_rows)))
    v_shapes = row_pattern(ENDS, V_SHAPE, partitions=True)
    onward = row_pattern(ENDS, f"AFTER MATCH SKIP TO NEXT ROW {V_SHAPE}", partitions=True)
    running = row_pattern(
        "CLASSIFIER() AS c, SUM(price) AS total, MAX(price) AS most",
        V_SHAPE,
        partitions=True,
        rows="ALL ROWS PER MATCH",
    )
    nested = "PATTERN (((A+)+ B)) DEFINE A AS x < 100, B AS x > 100"
    counted = "PATTERN (A{2,40} B) DEFINE A AS x < 90, B AS x >= 90"
    count = "COUNT(*) AS n"
    return [
        seconds("V shapes, 1,000 partitions", v_shapes, many, 0.5, 0.2),
        seconds("V shapes, one partition", row_pattern(ENDS, V_SHAPE), prices(2_000_000), 0.5, 0.2),
        seconds("V shapes, 1,000 partitions, SKIP TO NEXT ROW", onward, many, 0.6, 0.25),
        seconds("A{2,40} B", row_pattern(count, counted), half, 0.3, 0.08),
        seconds("A+ B with SUM and AVG in DEFINE", row_pattern(count, SUMS), half, 0.5, 0.1),
        seconds("(A | B)+ C with sums of A and of B in DEFINE", row_pattern(count, FREE_SUMS), half, 1.0, 0.5),
        seconds("A+ B+ C+ E without an E", row_pattern(count, NO_E), prices(80_000), 0.1, 0.005),
        seconds("A+ B+ C+ E without an E, 2 million events", row_pattern(count, NO_E), prices(2_000_000), 0.5, 0.1),
        seconds("((A+)+ B) without a B", row_pattern(count, nested), prices(1_000_000), 1.0, 0.1),
        seconds("ALL ROWS PER MATCH, CLASSIFIER and two running measures", running, many, 1.0, 0.2),
        against_sort(v_shapes, mixed),
    ]


if __name__ == "__main__":
    from bench.measured import show

    show(row_patterns(), "row_patterns")
