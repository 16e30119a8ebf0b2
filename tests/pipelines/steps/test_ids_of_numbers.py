"""Events whose id is a whole number: read, set apart, revised and shown like those whose id is text; of the same time
they are in order of the number."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import CONTRACT, IN_WORKERS, SCHEMA, START_US, Signals, batch, signals
from trendlake.pipelines.contracts.column_names import ID
from trendlake.pipelines.ingest.open_rows import open_rows
from trendlake.pipelines.ingest.replay import replay
from trendlake.pipelines.report.build import build_report
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.repeats]

NUMBERED = CONTRACT.replace("event_id, logicalType: string", "event_id, logicalType: integer, physicalType: bigint")
GRAPHS = (
    PATTERNS["matches"].replace("within", "output: compressed\nwithin").replace("return: {total: SUM(b.price)}\n", "")
)
NEXT = """\
kind: matches
pattern: SEQ(A a, A b)
select: contiguous
within: 5 hours
"""
"""Of the events of one time, `b` is the one that comes right behind `a`."""


def numbered(row: dict[str, Any]) -> dict[str, Any]:
    name = row["event_id"]
    return row | {"event_id": None if name is None else int(name[1:])}


def insert(lake: Signals, rows: list[dict[str, Any]]) -> None:
    schema = SCHEMA.set(0, pa.field("event_id", pa.int64()))
    frame = lake.spark.createDataFrame(pa.Table.from_pylist([numbered(row) for row in rows], schema))
    frame.coalesce(1).write.format("delta").mode("append").save(lake.source)


def test_they_are_in_order_of_the_number(spark: SparkSession, tmp_path: Path) -> None:
    """As text 10 would come before 9. Rows that break the contract are set apart, shown, and put back."""
    lake = signals(spark, tmp_path / "project", NEXT, NUMBERED, profile=IN_WORKERS)
    hours = {8: 0, 9: 1, 10: 1, 11: 1, 100: 2}
    row = {"event_type": "A", "place": "n", "price": 1, "remark": ""}
    rows = [row | {"event_id": f"e{n}", "event_time": START_US + (24 + h) * 3_600_000_000} for n, h in hours.items()]
    insert(lake, [one | {"price": -1} if one["event_id"] == "e11" else one for one in rows])
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    assert pairs(lake, run.name) == [([8], [9]), ([9], [10]), ([10], [100])]

    (broken,) = open_rows(lake.lake, lake.contract, lake.version()).to_pylist()
    assert (broken["event_id"], "price" in broken["reason"]) == (11, True)
    names = [ID, *lake.contract_columns]
    mended = pa.Table.from_pylist([{name: broken[name] for name in names} | {"price": 1}])
    assert replay(lake.lake, lake.contract, mended, "replay").repaired == 1
    assert revise(renamed(run, "revision")).rows_inserted == 2
    assert pairs(lake, run.name) == [([8], [9]), ([9], [10]), ([10], [11]), ([11], [100])]
    agree(lake, run)
    replayed(lake, run)
    page = build_report(lake.lake, Path(lake.pattern), "first", tmp_path / "report", run.plan).html
    assert "100" in page.read_text()


def pairs(lake: Signals, name: str) -> list[tuple[list[int], list[int]]]:
    rows = lake.spark.read.format("delta").load(lake.warehouse.results(name)).select("a", "b").collect()
    return sorted((row["a"], row["b"]) for row in rows)


@pytest.mark.chaos
@pytest.mark.parametrize(
    "text", [GRAPHS, PATTERNS["automaton"], PATTERNS["plain"]], ids=["graphs", "automaton", "plain"]
)
def test_every_kind_reads_and_revises_them(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """Among them ids that come twice and ids that are not there; the results are those of a recomputation."""
    rng = random.Random(text)
    lake = signals(spark, tmp_path / "project", text, NUMBERED, profile=IN_WORKERS)
    insert(lake, batch(rng, 60))
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    agree(lake, run)
    insert(lake, batch(rng, 6))
    lake.sql("UPDATE signals SET price = 7 WHERE event_id IN (10, 11, 12, 13)")
    lake.sql("DELETE FROM signals WHERE event_id = 9")
    revise(renamed(run, "revision"))
    agree(lake, run)
    replayed(lake, run)
    kinds = {
        field.name: field.dataType.simpleString()
        for field in lake.spark.read.format("delta").load(lake.warehouse.results(run.name)).schema.fields
    }
    ids = {"end_event": "bigint", "first": "bigint"}
    assert all(kinds[name] == kind for name, kind in ids.items() if name in kinds and run.plan.kind != "trends")
