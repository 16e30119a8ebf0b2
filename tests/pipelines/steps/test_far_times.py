"""Runs, revisions and pages at the ends of the calendar, and of more windows than memory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.flights import renamed
from tests.support.signals import IN_DRIVER, IN_WORKERS, Signals, signals
from trendlake.cep_core.events.windows import BEGINNING, END
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.report.build import build_report
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.backfill import backfill, chunks
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAY = 86_400_000_000
PATTERNS = {
    "trends": "kind: trends\norigin: 2026-01-01T00:00:00Z\npattern: A a+\nwhere: ['[place]']\n"
    "return: {n: COUNT(*)}\ngroup_by: [place]\nwithin: 10 days\nslide: 1 day\n",
    "matches": "kind: matches\npattern: SEQ(A a, A b)\nwhere: ['[place]']\nreturn: {n: SUM(b.price)}\n"
    "within: 10 days\n",
    "automaton": "kind: automaton\nregister: {n: {type: int, init: 0}}\nstart: p\nfinal: [q, r]\n"
    "arcs: [{from: p, to: q, when: 'e.price > 0'}, {from: q, to: r, at: window_end}]\n"
    "partition_by: [place]\nwithin: 10 days\n",
    "algebra": "kind: algebra\npartition_by: [place]\n"
    "pattern: SELECT price, price_1 AS n FROM EVENTS NEXT{$2.price < $1.price} EVENTS\nwithin: 10 days\n",
    "xml_join": "kind: xml_join\nleft: {a: /item, k: $a/key}\nright: {b: /item, l: $b/key}\n"
    "operator: join\nwhere: [$k = $l]\nwithin: 10 days\n",
    "unbounded": "kind: xml_join\nleft: {a: /item, k: $a/key}\nright: {b: /item, l: $b/key}\n"
    "operator: join\nwhere: [$k = $l]\nwithin: unbounded\n",
}
TIMES = (BEGINNING, BEGINNING + 1, 0, 1, END - 1, END)


def event(number: int, time: int) -> dict[str, Any]:
    return {
        "event_id": f"e{number}",
        "event_time": time,
        "event_type": "A",
        "place": "n",
        "price": 9 - number,
        "remark": None,
        "level": None,
        "rate": None,
        "account": None,
        "day": None,
        "document": "<item><key>k</key></item>",
    }


def far(spark: SparkSession, folder: Path, text: str, profile: Profile = IN_DRIVER) -> Signals:
    lake = signals(spark, folder / "project", text, profile=profile)
    lake.insert([event(number, time) for number, time in enumerate(TIMES)])
    return lake


def run_of(lake: Signals, start: int, end: int, run_id: str) -> Run:
    return prepare(
        Lake.of(lake.spark, Warehouse.of(lake.profile, lake.project)),
        lake.project,
        lake.profile,
        lake.pattern,
        run_id,
        start,
        end,
    )


def published(run: Run) -> tuple[Record, int]:
    """The record of check_results, and the rows in the table."""
    check_source(run)
    compute(run)
    checked = check_results(run)
    publish(run)
    return checked, DeltaTable(run.warehouse.results(run.name)).to_pyarrow_table().num_rows


@pytest.mark.long
@pytest.mark.parametrize("kind", PATTERNS)
def test_the_first_month(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Its rows are published, have a page, and are revised when an event comes; of windows that overlap, those that
    begin before the year 1 are counted and not computed."""
    lake = far(spark, tmp_path, PATTERNS[kind])
    run = run_of(lake, BEGINNING, BEGINNING + 31 * DAY, "first")
    checked, rows = published(run)
    assert rows > 0
    counted = [check.data["windows_outside"] for check in checked.checks if check.name == "windows_outside"]
    assert counted == ([9] if kind == "trends" else [2] if kind == "automaton" else [])
    assert build_report(run.lake, Path(lake.pattern), "first", tmp_path, run.plan).html.exists()
    lake.insert([event(0, BEGINNING + 2) | {"event_id": "late", "price": 7}])
    record = revise(renamed(run, "revised"))
    assert (record.rows_inserted or 0) + (record.rows_updated or 0) > 0
    assert record.interval_from is None or record.interval_from >= BEGINNING


@pytest.mark.long
@pytest.mark.parametrize("kind", PATTERNS)
def test_the_last_month(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """No window that holds the last moment ends in the calendar: nothing is published, and nothing fails."""
    lake = far(spark, tmp_path, PATTERNS[kind])
    run = run_of(lake, END - 31 * DAY, END, "last")
    _, rows = published(run)
    assert rows == 0
    assert build_report(run.lake, Path(lake.pattern), "last", tmp_path, run.plan).html.exists()


@pytest.mark.repeats
def test_workers_compute_the_first_month(spark: SparkSession, tmp_path: Path) -> None:
    """As the driver does."""
    _, rows = published(
        run_of(far(spark, tmp_path, PATTERNS["trends"], IN_WORKERS), BEGINNING, BEGINNING + DAY * 31, "w")
    )
    assert rows == 1


def test_a_chunk_before_the_first_window(spark: SparkSession, tmp_path: Path) -> None:
    """A backfill goes on after it, and its check counts the windows that no run computes."""
    lake = far(spark, tmp_path, PATTERNS["trends"])
    todo = chunks(lake.run(0, 1, "plan").plan.windows, BEGINNING, BEGINNING + 10 * DAY, 9 * DAY, newest_first=False)
    done = list(
        backfill(bare_lake(spark), lambda chunk: run_of(lake, chunk.start_us, chunk.end_us, chunk.run_id), todo)
    )
    assert [record is not None and record.rows_inserted for _, record in done] == [0, 1]
    assert [
        record
        for _, record in backfill(
            bare_lake(spark), lambda chunk: run_of(lake, chunk.start_us, chunk.end_us, "2"), todo[1:]
        )
    ] == [None]


@pytest.mark.long
def test_an_edit_of_more_windows_than_memory_holds(spark: SparkSession, tmp_path: Path) -> None:
    """Windows of a microsecond in all of time: an edited form is computed anew."""
    text = PATTERNS["trends"].replace("within: 10 days\nslide: 1 day\n", "within: 1 microsecond\n")
    lake = far(spark, tmp_path, text)
    assert published(run_of(lake, BEGINNING, END, "old"))[1] == len(TIMES) - 1
    lake.edit(text.replace("return: {", "return: {least: MIN(a.price), "))
    run = run_of(lake, BEGINNING, END, "new")
    assert published(run)[1] == len(TIMES) - 1
    rows = DeltaTable(run.warehouse.results(run.name)).to_pyarrow_table(columns=["plan_hash"])
    assert set(rows["plan_hash"].to_pylist()) == {run.plan.hash}
    assert run.plan.windows.end(run.windows[-1]) == END
