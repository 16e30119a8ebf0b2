"""An event of the far future, as a producer's wrong clock sends it, does not carry the watermark past everything."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.promises import agree
from tests.support.reading import stored
from tests.support.recomputation import in_order
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import CONTRACT, START_US, Signals, signals
from trendlake.pipelines.runs.consistency import watermark_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.compute import reached
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = pytest.mark.spark

HOUR, DAY, YEAR = 3_600_000_000, 86_400_000_000, 365 * 86_400_000_000
TEXTS = {
    "strong": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
return: {trends: COUNT(*)}
within: 4 hours
consistency: strong
""",
    "window_end": PATTERNS["automaton"],
}


def now() -> int:
    return time.time_ns() // 1000


def insert(lake: Signals, **times: int) -> None:
    """An event of each name at its time, microseconds, in one commit."""
    row: dict[str, Any] = {"event_type": "A", "place": "n", "price": 3, "remark": ""}
    lake.insert([row | {"event_id": name, "event_time": at_us} for name, at_us in times.items()])


def future(record: Record) -> list[tuple[bool, str]]:
    return [(item.success, item.observed) for item in record.checks if item.name == "future_events"]


def published(lake: Signals, run: Run) -> list[dict[str, Any]]:
    return in_order(stored(lake.warehouse.results(run.name), run.plan.result_schema.names).to_pylist(), run)


@pytest.mark.long
@pytest.mark.parametrize("what", TEXTS)
def test_an_event_of_the_far_future(spark: SparkSession, tmp_path: Path, what: str) -> None:
    """The results are those without it, in the windows that it is not in; a check names it, and no row is lost."""
    lakes = [signals(spark, tmp_path / name, TEXTS[what]) for name in ("with", "without")]
    results = []
    for lake in lakes:
        insert(lake, **{f"e{hour}": START_US + hour * HOUR for hour in range(14)})
        run = lake.run(0, 1, "r")
        if lake is lakes[0]:
            insert(lake, far=now() + 50 * YEAR)
        checked = STEPS["check_source"](run)
        for name in list(STEPS)[1:]:
            STEPS[name](run)
        results.append(published(lake, run))
        assert checked.rows_quarantined == 0
        [(good, observed)] = future(checked)
        assert good == (lake is lakes[1])
        assert observed.startswith("1 row up to 20" if lake is lakes[0] else "0 rows")
    assert results[0] == results[1]
    # the same after a late event, by a revision; it names the event too
    for lake in lakes:
        insert(lake, late=START_US + 90 * 60_000_000)
        run = renamed(lake.run(0, 1, "r"), "revision")
        record = revise(run)
        results.append(published(lake, run))
        assert [good for good, _ in future(record)] == [lake is lakes[1]]
    assert results[2] == results[3] != results[0]


def test_the_limit(spark: SparkSession, tmp_path: Path) -> None:
    """The commit's time and `maxFuture`, a day where the contract does not say; a property of the version, which a copy
    of the folder has too."""
    lake = signals(spark, tmp_path / "p", TEXTS["strong"])
    insert(lake, first=START_US)
    insert(lake, soon=(soon := now() + 23 * HOUR))
    insert(lake, later=(later := now() + 30 * HOUR))
    run = lake.run(0, 1, "r")
    assert watermark_of(run, 1) == START_US - run.lateness
    assert watermark_of(run, 2) == watermark_of(run, 3) == soon - run.lateness
    allow_two_days(lake)
    wider = lake.run(0, 1, "r")
    assert wider.contract.fingerprint != run.contract.fingerprint
    assert (watermark_of(wider, 2), watermark_of(wider, 3)) == (soon - run.lateness, later - run.lateness)
    shutil.copytree(lake.source, f"{lake.source}_copy")
    shutil.rmtree(lake.source)
    shutil.copytree(f"{lake.source}_copy", lake.source, copy_function=shutil.copyfile)
    for entry in Path(lake.source, "_delta_log").glob("*.json"):
        os.utime(entry, (0, 0))
    assert (watermark_of(run, 3), watermark_of(wider, 3)) == (soon - run.lateness, later - run.lateness)


@pytest.mark.long
def test_what_waits_for_time_asks_the_same_limit(spark: SparkSession, tmp_path: Path) -> None:
    """`at: window_end`: how far time has come for a run is no further than for a revision; an edited `maxFuture` is an
    edited contract, whose windows a revision computes anew."""
    lake = signals(spark, tmp_path / "p", TEXTS["window_end"])
    insert(lake, **{f"e{hour}": START_US + hour * HOUR for hour in (1, 2, 3)})
    insert(lake, far=now() + 30 * HOUR)
    run = lake.run(0, 1, "r")
    all_steps(run)
    assert run.need("check_source").source_version == 2
    assert reached(run, Versions.one(2)) == watermark_of(run, 2) == START_US + 3 * HOUR
    before = published(lake, run)
    allow_two_days(lake)
    run = lake.run(0, 1, "revision")
    revise(run)
    agree(lake, run)
    assert len(published(lake, run)) > len(before)


def allow_two_days(lake: Signals) -> None:
    text = CONTRACT.replace("unit: h}]", "unit: h}, {property: maxFuture, value: 2, unit: d}]")
    assert text != CONTRACT
    lake.project.contract_path("signals").write_text(text)
