"""Tables change underneath: dropped and made anew, restored, changed by hand, copied. The next revision equals a
recomputation, and whatever compares versions compares tables too."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaRsTable
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.pipelines.steps.test_stage_records import PLAIN, events
from tests.support import plain_writer
from tests.support.bare_lake import bare_lake
from tests.support.flights import all_steps, renamed
from tests.support.recomputation import in_order, recomputed
from tests.support.signals import START_US, Signals, signals
from trendlake.cep_core import AnyPlan
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.results.coverage import spans
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.site.cards import freshness_words
from trendlake.pipelines.site.freshness import read_freshness, read_source
from trendlake.pipelines.steps.backfill import Chunk, backfill
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAYS = 3
BAD: dict[str, Any] = {
    "event_id": "bad",
    "event_time": START_US,
    "event_type": "A",
    "place": "n",
    "price": 10,
    "remark": "",
}
NO_TIME = BAD | {"event_id": "no time", "event_time": None}


@pytest.fixture(scope="module")
def original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Signals:
    """Its windows show version 1 of the source; each test has a copy of it."""
    lake = signals(spark, tmp_path_factory.mktemp("original") / "p", PLAIN)
    lake.insert(events(range(0, 60, 4)))
    all_steps(lake.run(0, DAYS, "r"))
    return lake


def right(lake: Signals, run: Run) -> None:
    """The results are those of a recomputation at the source's newest version."""
    rows = published(lake, run)
    assert rows == recomputed(run, lake.version(), range(DAYS))
    assert rows, "there should be some"


def published(lake: Signals, run: Run) -> list[dict[str, Any]]:
    table = DeltaRsTable(lake.warehouse.results(run.name))
    return in_order(table.to_pyarrow_table(columns=run.plan.result_schema.names).to_pylist(), run)


def revision(record: Record) -> str:
    return str(next(item.observed for item in record.checks if item.name == "revision"))


def freshness(lake: Signals, run: Run) -> str:
    source = read_source(lake.lake, "signals", lake.contract)
    return freshness_words(read_freshness(lake.lake, run.name, run.plan, source))[1]


@pytest.mark.long
@pytest.mark.more_in_chaos
@pytest.mark.parametrize("commits", [1, 2, 4] if CHAOS else [2])
def test_source_made_anew(spark: SparkSession, tmp_path: Path, commits: int) -> None:
    """Other events under the same versions: `run`, `backfill` and `revise` all see that it is another table. Its bad
    rows are in the quarantine, though a run of the same id has quarantined rows of the same version before."""
    lake = signals(spark, tmp_path / "p", PLAIN)
    lake.insert(events(range(0, 30, 3)))
    lake.insert([BAD])
    run = lake.run(0, DAYS, "r")
    all_steps(run)
    assert freshness(lake, run) == "Up to date"
    assert revision(revise(renamed(run, "v0"))) == "nothing new since version 2"

    lake.recreate([*(events(range(n, 60, 6)) for n in range(commits - 1)), [BAD | {"remark": "new"}]])
    assert freshness(lake, run) == "Source or results replaced"
    chunks = [Chunk(run.start_us, run.end_us)]
    done = list(backfill(bare_lake(spark), lambda chunk: replace(run, run_id="r"), chunks))
    assert done[0][1] is not None, "the chunk is not passed over"
    if commits > 1:
        right(lake, run)
    quarantine = spark.read.format("delta").load(lake.warehouse.quarantine("signals"))
    assert sorted(row["remark"] for row in quarantine.collect()) == ["", "new"]
    assert next(backfill(bare_lake(spark), lambda chunk: renamed(run, "again"), chunks))[1] is None, "now it is"

    deliveries = [events(range(n, 70, 5)) for n in range(commits)]
    lake.recreate([[*deliveries[0], NO_TIME], *deliveries[1:]])
    record = revise(renamed(run, "v1"))
    assert revision(record).endswith("the table of 'signals' was made anew since the results were computed")
    assert record.rows_quarantined == 1, "a row without a time is of no window, and is set apart all the same"
    right(lake, run)
    assert freshness(lake, run) == "Up to date"


@pytest.mark.repeats
def test_results_changed_by_others(spark: SparkSession, original: Signals, tmp_path: Path) -> None:
    """RESTORE goes back to what was known then; after a DELETE by hand nothing is known; OPTIMIZE changes no row."""
    lake = original.copied(tmp_path / "p")
    run = lake.run(0, DAYS, "r")
    path = lake.warehouse.results(run.name)
    before = latest_version(bare_lake(spark), path)
    lake.insert(events(range(1, 6)))
    revise(renamed(run, "late"))
    right(lake, run)

    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {before}")
    assert published(lake, run) == recomputed(run, 1, range(DAYS))
    assert revision(revise(renamed(run, "restored"))).startswith("5 rows changed from version 1 to 2")
    right(lake, run)

    DeltaTable.forPath(spark, path).optimize().executeCompaction()
    assert revision(revise(renamed(run, "optimized"))) == "nothing new since version 2"
    chunks = [Chunk(run.start_us, run.end_us)]
    assert next(backfill(bare_lake(spark), lambda chunk: renamed(run, "b"), chunks))[1] is None

    second = datetime(2026, 1, 2, tzinfo=UTC)
    plain_writer.change(spark, path, lambda row: None if row["window_start"] < second else row)
    lake.insert(events(range(70, 71)))
    assert "other programs have changed the results" in revision(revise(renamed(run, "deleted")))
    right(lake, run)
    assert revision(revise(renamed(run, "after"))) == "nothing new since version 3"


def test_results_made_anew(spark: SparkSession, original: Signals, tmp_path: Path) -> None:
    """Records of the results that were dropped claim nothing of those that are there now."""
    lake = original.copied(tmp_path / "p")
    run = lake.run(0, DAYS, "r")
    lake.insert([events(range(1))[0] | {"event_id": "c", "event_type": "C"}])
    assert revise(renamed(run, "quiet")).note is not None
    path = lake.warehouse.results(run.name)
    shutil.rmtree(path)
    read_log_anew(bare_lake(spark), path)
    all_steps(lake.run(0, 1, "r"))
    assert covered_windows(lake, run.plan) == [(0, 0)]
    all_steps(lake.run(1, DAYS, "rest"))
    right(lake, run)


def covered_windows(lake: Signals, plan: AnyPlan) -> list[tuple[int, int]]:
    return spans(read_ledger(lake.lake, "watched", plan, "signals").segments)


@pytest.mark.long
def test_notes_without_ids(spark: SparkSession, original: Signals, tmp_path: Path) -> None:
    """Trendlake 1 named no tables in its notes. They speak of the present table where that is older than they are;
    where it is younger, all is computed anew, once."""
    lake = original.copied(tmp_path / "p")
    run = lake.run(0, DAYS, "r")
    without_ids(lake, run)
    assert revision(revise(renamed(run, "v1"))) == "nothing new since version 1"
    lake.recreate([events(range(0, 50, 3))])
    assert "younger than notes" in revision(revise(renamed(run, "v2")))
    right(lake, run)
    assert revision(revise(renamed(run, "v3"))) == "nothing new since version 1"


def without_ids(lake: Signals, run: Run) -> None:
    """Leaves the results' log as Trendlake 1 would have written it."""
    for entry in (Path(lake.warehouse.results(run.name)) / "_delta_log").glob("[0-9]*.json"):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for info in (line["commitInfo"] for line in lines if "commitInfo" in line):
            note = json.loads(info.get("userMetadata", "{}"))
            if note:
                remaining = {key: value for key, value in note.items() if key not in ("source_table", "results_table")}
                info["userMetadata"] = json.dumps(remaining)
        entry.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_copied_project(spark: SparkSession, original: Signals, tmp_path: Path) -> None:
    """`cp -r` makes all files new, and the tables stay the same ones: nothing is computed anew."""
    copy = original.copied(tmp_path / "copy")
    there = copy.run(0, DAYS, "r2")
    assert revision(revise(there)) == "nothing new since version 1"
    copy.insert(events(range(1, 3)))
    assert revision(revise(renamed(there, "r3"))).startswith("2 rows changed")
    right(copy, there)
