"""Pages have the numbers of the reference: random results of every kind, whoever reads them."""

from __future__ import annotations

import math
import random
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.reference.page_numbers import overview_of, results_of
from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.report.facts import Measure, PatternFacts, RunFacts, StageFacts
from trendlake.pipelines.report.read_rows import Span
from trendlake.pipelines.report.read_windows import read_results
from trendlake.pipelines.site.read_overview import read_overview
from trendlake.pipelines.spark.frames import frame_of

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]

ROUNDS = 12 if CHAOS else 2
TIME, COUNT, BASE = pa.timestamp("us", "UTC"), pa.decimal128(38, 0), datetime(2026, 1, 5, tzinfo=UTC)
GROUPS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "city": (pa.string(), ["Oslo", "", None, "Århus", "a'b"]),
    "size": (pa.int32(), [-3, 0, 7, None]),
    "flag": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [BASE.date(), None]),
    "account": (COUNT, [Decimal(10**37), Decimal(0), None]),
}
FORMS = ["now", "now", "now", "before"]
HOUR = timedelta(hours=1)


def pattern(group_by: tuple[str, ...], returns: dict[str, str]) -> PatternFacts:
    return PatternFacts("p", "trends", "", None, "s", None, (), returns, group_by, None, None, "")


def run(days: int, windows: int) -> RunFacts:
    stage = StageFacts("compute", "succeeded", 1.0, None, None, 1, 0, 1, windows, None, None, None, 1)
    return RunFacts(
        "r",
        "p",
        BASE + timedelta(days=1),
        BASE + timedelta(days=1 + days),
        "now",
        "s",
        1,
        1,
        None,
        None,
        None,
        (stage,),
        (),
    )


def groups(rng: random.Random, size: int) -> dict[str, pa.Array]:
    names = rng.sample(list(GROUPS), rng.randrange(4))
    return {name: pa.array(rng.choices(GROUPS[name][1], k=size), GROUPS[name][0]) for name in names}


def trends(rng: random.Random) -> tuple[pa.Table, PatternFacts]:
    """A row a group and window; counts of any size, or doubles with NaN and NULL."""
    size, spread = rng.choice([1, 40, 300]), rng.choice([3, 400])
    columns = groups(rng, size)
    starts = [BASE + HOUR * rng.randrange(spread) for _ in range(size)]
    exact = [rng.choice([0, 1, rng.randrange(10**6), 10**37 * rng.randrange(1, 9), None]) for _ in range(size)]
    logs = [rng.uniform(38, 3000) if n is None else math.log10(n) if n else None for n in exact]
    values = {
        "n": pa.array([None if n is None else Decimal(n) for n in exact], COUNT),
        "n_log10": pa.array(logs, pa.float64()),
    }
    mean = pa.array(rng.choices([1.5, -2.25, 0.0, math.nan, None, 1e300], k=size), pa.float64())
    measures = rng.choice([values | {"mean": mean}, {"mean": mean}])
    table = {
        **columns,
        "window_start": pa.array(starts, TIME),
        "window_end": pa.array([at + HOUR for at in starts], TIME),
    }
    table |= measures | {"plan_hash": pa.array(rng.choices(FORMS, k=size))}
    rows = pa.table(table)
    keys = [*columns, "window_start", "plan_hash"]
    first = rows.append_column("row", pa.array(range(size))).group_by(keys).aggregate([("row", "min")])["row_min"]
    returns = {name: "MAX(x)" for name in measures if not name.endswith("_log10")}
    return rows.take(first.sort()), pattern(tuple(columns), returns)


def matches(rng: random.Random) -> tuple[pa.Table, PatternFacts]:
    """Rows of kind matches, or graphs that hold many."""
    size, spread = rng.choice([1, 60, 300]), rng.choice([5, 2000])
    columns = groups(rng, size)
    ends = [BASE + timedelta(minutes=30 * rng.randrange(spread)) for _ in range(size)]
    starts = [end - timedelta(minutes=rng.randrange(90)) for end in ends]
    table = {
        "match_id": pa.array([f"m{i}" for i in range(size)]),
        "start": pa.array(starts, TIME),
        "end": pa.array(ends, TIME),
    }
    table |= columns | {"score": pa.array(rng.choices([1.0, math.nan, None], k=size), pa.float64())}
    table |= {"ids": pa.array([[f"e{n}" for n in range(rng.randrange(8))] for _ in range(size)], pa.list_(pa.string()))}
    if rng.random() < 0.5:
        held = [rng.choice([1, 12, None]) for _ in range(size)]
        table |= {"matches": pa.array([None if n is None else Decimal(n) for n in held], COUNT)}
        table |= {"matches_log10": pa.array([rng.uniform(38, 90) if n is None else math.log10(n) for n in held])}
    return pa.table(table | {"plan_hash": pa.array(rng.choices(FORMS, k=size))}), pattern(tuple(columns), {})


def same(a: Any, b: Any) -> bool:
    """Equal, logarithms to a part in 10^9; NaN equals NaN."""
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, item.name), getattr(b, item.name)) for item in fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("make", [trends, matches])
def test_random_results(spark: SparkSession, tmp_path: Path, make: Any, seed: int) -> None:
    """The pattern's page and the run's report have the reference's numbers, of a table that this process reads and of
    one that only Spark reads."""
    table, facts = make(random.Random(f"{make.__name__} {seed}"))
    paths = [str(tmp_path / "here"), str(tmp_path / "by_spark")]
    write_deltalake(paths[0], table)
    only_spark(spark, table, paths[1])
    assert [isinstance(Table.at(bare_lake(spark), path).here, NotHere) for path in paths] == [False, True]
    windows, graphs = "window_start" in table.column_names, "matches" in table.column_names
    measure = Measure("matches", True) if not windows else Measure("n", True)
    measures = list(facts.returns) or [name for name in ("score", "matches", "ids") if name in table.column_names]
    if windows and "n" not in measures:
        measure = Measure("mean", False)
    counted = measure.name if windows or graphs else None
    wanted = overview_of(table, facts, counted, count=measure.is_count)
    for path in paths:
        ours = read_overview(bare_lake(spark), path, facts, None)
        assert same(ours, wanted), (ours, wanted)
    for of, begin in ((run(1, 1), BASE - timedelta(days=58)), (run(14, 336), BASE + timedelta(days=1))):
        assert of.interval_from is not None
        assert of.interval_to is not None
        span = Span(begin, of.interval_from, of.interval_to)
        expected = results_of(table, facts, of, span, measure, measures)
        for path in paths:
            mine = read_results(bare_lake(spark), path, facts, replace(of, results_version=0))
            ids = tuple(name for name in measures if name == "ids")
            assert same(mine, replace(expected, version=0, ids=ids)), (mine, expected)


def only_spark(spark: SparkSession, table: pa.Table, path: str) -> None:
    """Columns have other names in the files."""
    frame_of(spark, table).write.format("delta").option("delta.columnMapping.mode", "name").save(path)


@pytest.mark.long
def test_groups_whose_text_is_javas_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """A double, and a day of the year 12026."""
    far = pa.array(np.array(["12026-01-18"] * 2, "datetime64[D]"))
    rows = {"level": [1e10, None], "day": far, "window_start": pa.array([BASE] * 2, TIME)}
    rows |= {"window_end": pa.array([BASE] * 2, TIME), "plan_hash": ["now", "now"]}
    write_deltalake(tmp_path / "results", pa.table(rows))
    for name, texts in (("level", {"1.0E10", None}), ("day", {"+12026-01-18"})):
        overview = read_overview(bare_lake(spark), str(tmp_path / "results"), pattern((name,), {"n": "COUNT(*)"}), None)
        assert overview is not None
        assert {group.key[0] for group in overview.groups} == texts


@pytest.mark.long
def test_a_page_of_more_than_its_memory(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest lies on disk meanwhile."""
    rows = 400_000
    table = pa.table(
        {
            "city": pa.array([f"{i * 7919 % rows:030d}" for i in range(rows)]),
            "window_start": pa.array([BASE + HOUR * (i % 50) for i in range(rows)], TIME),
            "window_end": pa.array([BASE + HOUR * (i % 50 + 1) for i in range(rows)], TIME),
            "n": pa.array([Decimal(i) for i in range(rows)], COUNT),
            "plan_hash": ["now"] * rows,
        }
    )
    write_deltalake(tmp_path / "results", table)
    monkeypatch.setattr(limits, "PAGE_BYTES", 48 << 20)
    overview = read_overview(
        bare_lake(spark), str(tmp_path / "results"), pattern(("city",), {"n": "COUNT(*)"}), None, tmp_path
    )
    assert overview is not None
    assert (overview.rows, overview.group_count, overview.groups[0].peak.exact) == (rows, rows, rows - 1)
    assert sum(int(point.amount.exact or 0) for point in overview.totals) == rows * (rows - 1) // 2
