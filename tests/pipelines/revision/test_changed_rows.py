"""What has changed in a source, in this process and by Spark: the same rows came and went, the same are set apart with
the same words, and both know alike whether a key is repeated."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import DRAWS, PART
from tests.support.bare_lake import bare_lake
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree
from tests.support.signal_changes import change
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import START_US, Signals, batch, signals, tidy_batch
from trendlake.pipelines.contracts.column_names import REASONS
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.quarantine_counts import broken_of
from trendlake.pipelines.revision.change_feed import Changes, changes
from trendlake.pipelines.revision.changed_rows import changed_rows
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.more_in_chaos]

HOUR = 3_600_000_000
MOST = 1_000


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    """Rows by their values, as often as they are there: NaN is NaN, -0.0 is 0.0."""
    counted: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        times = row.pop(NET, 1)
        counted[tuple(str(value + 0.0 if isinstance(value, float) else value) for value in row.values())] += times
    return Counter({row: times for row, times in counted.items() if times})


@pytest.mark.long
@pytest.mark.parametrize("draw", [0, *(pytest.param(draw, marks=pytest.mark.repeats) for draw in range(1, 2 * DRAWS))])
def test_as_spark_says(spark: SparkSession, tmp_path: Path, draw: int) -> None:
    rng = random.Random(f"{draw}{PART}")
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    tidy = draw % 2 == 0  # then no key is repeated in the older version
    lake.insert((tidy_batch if tidy else batch)(rng, 40))
    after, run = lake.version(), lake.run(0.5, 2.5, "r")
    names = [item.name for item in run.contract.columns]
    for _ in range(2):
        done = [change(rng, lake) for _ in range(rng.randrange(1, 4))]
        version = lake.version()
        if version == after:  # none of them met a row
            continue
        mine = changed_rows(run, Task(Versions.one(version), Versions.one(after), True, tidy, (), (), None), MOST)
        theirs = changes(bare_lake(spark), lake.source, run.contract, after, version, settled=True, unique=tidy)
        assert isinstance(theirs, Changes)
        try:
            assert mine.rows == theirs.rows, done
            assert mine.broken == broken_of(theirs.bad)
            assert bag(mine.good.select([*names, NET]).to_pylist()) == bag(
                theirs.good(names).select(*names, NET).toArrow().to_pylist()
            )
            bad = q.bad_rows(theirs.bad, "r", version).select(*names, *REASONS)
            assert bag(mine.bad.to_pylist()) == bag(bad.toArrow().to_pylist())
            repeats = q.repeated(read_at(bare_lake(spark), lake.source, version), run.contract.rules, None)
            assert mine.unique != repeats
        finally:
            for frame in theirs.persisted:
                frame.unpersist()


def row(number: int, hour: int, **other: Any) -> dict[str, Any]:
    return {
        "event_id": f"e{number}",
        "event_time": START_US + hour * HOUR,
        "event_type": "A",
        "place": "n",
        "price": number % 10,
        "remark": "",
    } | other


def test_a_small_source_is_revised_here(spark: SparkSession, tmp_path: Path) -> None:
    """With rows that break a rule and keys that are repeated: set apart once, counted, left out; and back again."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    lake.insert([row(n, 20 + n) for n in range(8)])
    run = lake.run(0.5, 2.5, "first")
    all_steps(run)
    lake.insert([row(20, 25, price=99), row(3, 40)])
    record = revise(renamed(run, "two that differ, one too dear"))
    assert record.staged_version is None
    assert record.rows_quarantined == 3
    agree(lake, run)
    assert not record.note["unique"]
    assert quarantined(lake) == {"e20": 1, "e3": 2}
    lake.update({"event_id": "e20"}, price=9)
    lake.delete(event_id="e3", price=3)
    record = revise(renamed(run, "repaired, and both deleted"))
    assert record.staged_version is None
    assert record.rows_quarantined == 0
    assert record.note["unique"]
    agree(lake, run)


def quarantined(lake: Signals) -> Counter[str]:
    table = lake.spark.read.format("delta").load(lake.warehouse.quarantine("signals"))
    return Counter(item["event_id"] for item in table.collect())


def test_a_source_of_many_rows_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    lake.insert([row(n, 20 + n) for n in range(8)])
    run, task = lake.run(0.5, 2.5, "r"), Task(Versions.one(2), Versions.one(1), True, True, (), (), None)
    lake.insert([row(3, 40)])
    assert changed_rows(run, task, 9).broken.rows == 2
    with pytest.raises(NotHereError, match="rows whose keys may be repeated, more than 8"):
        changed_rows(run, task, 8)
