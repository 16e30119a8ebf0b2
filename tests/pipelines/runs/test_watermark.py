"""How far time has come is what the good rows say, whether this process reads them or Spark does."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.signals import DAY_US, START_US, batch, signals
from trendlake.cep_core.events.windows import BEGINNING
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.runs import consistency
from trendlake.pipelines.runs.consistency import future_events, limit_of, watermark_of

pytestmark = pytest.mark.spark

TEXT = """\
kind: trends
pattern: A a+
return: {trends: COUNT(*)}
within: 4 hours
consistency: strong
"""
HOUR = 3_600_000_000


@pytest.mark.long
def test_here_and_by_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of versions whose newest rows are good, broken, or of the far future; of ranges before, among and after them."""
    lake, rng = signals(spark, tmp_path / "p", TEXT), random.Random(4)
    newest = START_US + 4 * DAY_US
    row = {"event_id": "last", "event_time": newest, "event_type": "A", "place": "n", "price": 3, "remark": ""}
    far = time.time_ns() // 1000 + 50 * 365 * DAY_US
    added: list[list[dict[str, Any]]] = [
        batch(rng, 9),
        [row | {"event_id": "broken", "event_time": newest + DAY_US, "price": 12}],
        [row],
        [row | {"event_id": "far", "event_time": far}],
    ]
    run = lake.run(0, 1, "r")
    rows: list[dict[str, Any]] = []
    expected, future = {}, {}
    for rows_of_commit in ([], *added):
        if rows_of_commit:
            lake.insert(rows_of_commit)
            rows += rows_of_commit
        version = lake.version()
        limit = limit_of(run, version)
        times = [item["event_time"] for item in rows if is_good(item)]
        future[version] = sum(moment > limit for moment in times), max(times, default=0) if far in times else None
        for span in (None, *((low, low + 12 * HOUR) for low in range(START_US - DAY_US, newest + 2 * DAY_US, DAY_US))):
            low = BEGINNING if span is None else span[0]
            reached = max((moment for moment in times if low <= moment <= limit), default=None)
            end = low if reached is None else reached - run.lateness
            expected[version, span] = end if span is None else min(end, span[1])
    with monkeypatch.context() as alone:
        alone.setattr(consistency, "_good", None)  # Spark is not asked
        assert {asked: watermark_of(run, *asked) for asked in expected} == expected
        alone.setattr(limits, "READ", 3)  # as in a table of more rows than this process reads
        assert {asked: watermark_of(run, *asked) for asked in expected} == expected
        alone.setattr(consistency, "SOME_ROWS", 0)  # a microsecond at first
        assert {asked: watermark_of(run, *asked) for asked in expected} == expected
        checks = {version: future_events(run, version) for version in future}
    assert {version: (check.data["rows"], check.data["newest"]) for version, check in checks.items()} == future

    def refuse(*_: object) -> None:
        raise NotHereError("as if the table were large")

    for name in ("newest_good", "good_times"):
        monkeypatch.setattr(consistency, name, refuse)
    some = [(version, span) for version, span in expected if version > 1][::8]
    assert {asked: watermark_of(run, *asked) for asked in some} == {asked: expected[asked] for asked in some}
    assert checks == {version: future_events(run, version) for version in future}


def is_good(row: dict[str, Any]) -> bool:
    """By the contract's rules of single rows."""
    there = row["event_id"] is not None and row["event_time"] is not None
    return there and row["event_type"] in "ABC" and (row["price"] is None or 0 <= row["price"] <= 9)
