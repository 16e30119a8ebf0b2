"""Columns that are called like those that the pipelines add, or once added, to rows: by Spark they are quarantined,
shown, repaired, counted, judged, published and revised like any others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.signals import CONTRACT, IN_WORKERS, SCHEMA, START_US, Signals, signals
from trendlake.pipelines.contracts.column_names import ID
from trendlake.pipelines.ingest.open_rows import open_rows_by_spark
from trendlake.pipelines.ingest.replay import replay
from trendlake.pipelines.report.build import build_report
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.repeats]

NAMES = {
    "place": "old_0",
    "remark": "replaces",
    "level": "Rule_0",
    "rate": "micros",
    "account": "__stretch",
    "day": "s",
}
NAMED = CONTRACT
for usual, odd in NAMES.items():
    NAMED = NAMED.replace(f"name: {usual},", f"name: {odd},")
PATTERN = """\
pattern: A S+
return: {__there: COUNT(*), __wanted: COUNT(S), t: MAX(S.price), RULE_0: SUM(S.price)}
group_by: [old_0, __stretch]
within: 1 day
"""


def insert(lake: Signals, prices: dict[int, int]) -> None:
    times = [START_US + number * 3_600_000_000 for number in prices]
    values = {
        "event_id": [f"e{number}" for number in prices],
        "event_time": times,
        "event_type": ["A"] * len(times),
        "place": ["n"] * len(times),
        "price": list(prices.values()),
        "remark": ["r"] * len(times),
    }
    table = pa.table(
        {field.name: pa.array(values.get(field.name, [None] * len(times)), field.type) for field in SCHEMA}
    )
    frame = lake.spark.createDataFrame(table.rename_columns([NAMES.get(name, name) for name in table.column_names]))
    frame.coalesce(1).write.format("delta").mode("append").save(lake.source)


def counts(lake: Signals, name: str) -> list[tuple[int, int, int, int]]:
    table = DeltaTable(lake.warehouse.results(name)).to_pyarrow_table()
    columns = [table[column].to_pylist() for column in ("__there", "__wanted", "t", "RULE_0")]
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]  # type: ignore[misc]


def test_they_are_columns_like_others(spark: SparkSession, tmp_path: Path) -> None:
    lake = signals(spark, tmp_path / "p", PATTERN, NAMED, IN_WORKERS)
    lake.sql("ALTER TABLE signals SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    insert(lake, {1: 2, 2: 3, 3: -1})
    run = lake.run(0, 1, "run")
    all_steps(run)
    assert counts(lake, run.name) == [(3, 4, 3, 10)]

    (broken,) = open_rows_by_spark(lake.lake, lake.contract, lake.version()).toArrow().to_pylist()
    assert (broken["event_id"], broken["replaces"], "price" in broken["reason"]) == ("e3", "r", True)
    mended = pa.Table.from_pylist([{name: broken[name] for name in (ID, *lake.contract_columns)} | {"price": 5}])
    assert replay(lake.lake, lake.contract, mended, "replay").repaired == 1
    assert revise(renamed(run, "revision")).rows_updated == 1
    assert counts(lake, run.name) == [(7, 12, 5, 40)]
    page = build_report(lake.lake, Path(lake.pattern), "run", tmp_path / "report", run.plan).html
    assert "__there" in page.read_text()
