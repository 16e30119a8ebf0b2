"""One source, one window, three levels: docs/consistency.md, told hour by hour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.signals import START_US, Signals, signals
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

TEXT = """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["a.price < NEXT(a).price"]
return: {trends: COUNT(*)}
within: 4 hours
"""
HOUR = 3_600_000_000


def event(hour: int, price: int) -> dict[str, Any]:
    ids = {"event_id": f"e{hour}", "event_time": START_US + hour * HOUR, "event_type": "A"}
    return {**ids, "place": "n", "price": price, "remark": ""}


@pytest.mark.long
def test_what_is_published_when(spark: SparkSession, tmp_path: Path) -> None:
    """middle: 3 trends, then 7; strong: nothing until the watermark has passed, then 7; weak: 3, for good."""
    lake = signals(spark, tmp_path / "project", TEXT)
    runs = {}
    for level in ("strong", "middle", "weak"):
        path = tmp_path / f"{level}.yaml"
        path.write_text(f"{Path(lake.pattern).read_text()}consistency: {level}\n".replace("watched", level))
        runs[level] = replace(lake, pattern=str(path)).run(0, 1 / 6, "at four")
    lake.insert([event(1, 1), event(2, 2)])
    published: dict[str, list[list[int]]] = {level: [] for level in runs}
    for level, run in runs.items():
        all_steps(run)
        published[level].append(trends(lake, level))
    for hour, price in ((3, 3), (10, 0)):
        lake.insert([event(hour, price)])
        for level, run in runs.items():
            revise(renamed(run, f"after {hour}"))
            published[level].append(trends(lake, level))
    assert published == {"middle": [[3], [7], [7]], "strong": [[], [], [7]], "weak": [[3], [3], [3]]}


def trends(lake: Signals, name: str) -> list[int]:
    path = lake.warehouse.results(name)
    assert exists(lake.lake, path)
    return [int(row["trends"]) for row in lake.spark.read.format("delta").load(path).collect()]
