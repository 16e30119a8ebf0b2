"""The small files of small deliveries are put together: every answer stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.document_lake import DocumentLake
from tests.support.flights import Flights, all_steps, answers, flight, renamed, snowball, table
from tests.support.reading import stored
from trendlake.pipelines.ingest import small_files
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.small_files import put_together
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import known_commits
from trendlake.pipelines.lake.here import write
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

MANY = 4
SECOND = 1_000_000


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "MANY", MANY)


def at_hour(number: int) -> dict[str, Any]:
    """One of flights that come out of the order of their times."""
    return flight(number, f"2013-03-01T{7 * number % 24:02d}:00:00")


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows["event_id"].to_pylist())


@pytest.mark.long
def test_rows_and_their_history_stay(lake: Flights) -> None:
    """To this process the newest version and each before it, to Spark those that put files together; to both the
    change feed, each delivery once."""
    numbers = range(11)
    for number in numbers:
        assert lake.deliver([at_hour(number)], feed=f"f{number}").rows_out == number + 1
    spark, path = lake.spark, lake.warehouse.source("flights")
    commits = known_commits(bare_lake(spark), path)
    moved = [commit for commit in commits if commit.note.get("stage") == "compact"]
    assert len(moved) == 3
    assert len(table_here(bare_lake(spark), path).files) == 2
    written = 0
    for commit in commits[::-1]:
        written += commit.note.get("stage") == "ingest"
        expected = sorted(at_hour(number)["event_id"] for number in range(written))
        if commit in moved:
            assert ids(read_at(bare_lake(spark), path, commit.version).toArrow()) == expected
        at = table_here(bare_lake(spark), path, commit.version)
        assert ids(at.every(["event_id"], 100)) == expected
        assert at.row_count == written
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    feed = reader.load(path).toArrow()
    assert ids(feed) == expected
    assert pc.unique(feed["_change_type"]).to_pylist() == ["insert"]
    assert ids(table_here(bare_lake(spark), path).feed(["event_id"], 0, 100)) == expected
    assert lake.deliver([at_hour(3)], feed="f3").rows_inserted == 0


def test_the_file_is_in_the_order_of_time(lake: Flights) -> None:
    for number in range(MANY):
        lake.deliver([at_hour(number)], feed=f"f{number}")
    table_of_one = table_here(lake.lake, lake.warehouse.source("flights"))
    assert len(table_of_one.files) == 1
    times = table_of_one.every(["event_time"], 100)["event_time"].to_pylist()
    assert times == sorted(times)


def test_large_files_stay(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows, and by bytes that are not compressed."""
    lake.deliver([at_hour(number) for number in range(3)], feed="large")
    monkeypatch.setattr(small_files, "SMALL_ROWS", 2)
    for number in range(3, 3 + MANY):
        lake.deliver([at_hour(number)], feed=f"f{number}")
    table_now = table_here(lake.lake, lake.warehouse.source("flights"))
    assert sorted(table_now.actions["num_records"].to_pylist()) == [3, MANY]
    monkeypatch.setattr(small_files, "SMALL_BYTES", 10)
    assert small_files.small_files(table_now, "event_time") == []


def test_many_deliveries_of_one_ingestion(lake: Flights) -> None:
    """Not only at its end; broken rows go to the quarantine all the same."""
    deliveries = [table([at_hour(number) | ({"origin": "XXX"} if number == 2 else {})]) for number in range(1, 10)]
    lake.deliver([], feed="none")
    record = ingest(lake.lake, lake.contract, deliveries, feed="f", run_id="r")
    assert (record.rows_inserted, record.rows_out, record.rows_quarantined) == (9, 9, 1)
    path = lake.warehouse.source("flights")
    assert len(table_here(lake.lake, path).files) < MANY
    assert record.source_version == latest_version(lake.lake, path)


def test_another_writer_comes_first(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delivery is taken, and the files are put together after the next one."""
    real, path, others = write.put_together, lake.warehouse.source("flights"), [at_hour(100)]

    def meanwhile(*asked: Any) -> Commit:
        if others:
            lake.append([others.pop()])
        return real(*asked)

    for number in range(MANY - 1):
        lake.deliver([at_hour(number)], feed=f"f{number}")
    monkeypatch.setattr(write, "put_together", meanwhile)
    assert lake.deliver([at_hour(MANY)], feed="overtaken").rows_inserted == 1
    assert len(table_here(lake.lake, path).files) == MANY + 1
    assert not others
    assert lake.deliver([at_hour(MANY + 1)], feed="next").rows_out == MANY + 2
    assert len(table_here(lake.lake, path).files) == 3


def another_compaction(lake: Flights, path: str) -> None:
    put_together(lake.lake, path, lake.contract, "another")


def an_optimize(lake: Flights, path: str) -> None:
    DeltaTable.forPath(lake.spark, path).optimize().executeCompaction()


def a_deletion(lake: Flights, path: str) -> None:
    DeltaTable.forPath(lake.spark, path).delete(f"event_id = '{at_hour(1)['event_id']}'")


def an_append(lake: Flights, path: str) -> None:
    lake.append([at_hour(50)])


@pytest.mark.long
@pytest.mark.parametrize("other", [another_compaction, an_optimize, a_deletion, an_append])
def test_another_writer_commits_meanwhile(
    lake: Flights, monkeypatch: pytest.MonkeyPatch, other: Callable[[Flights, str], None]
) -> None:
    """After the file is written: every row is there as the other writer has left it, and once."""
    real, path, others = write.AddAction, lake.warehouse.source("flights"), [other]
    for number in range(MANY - 1):
        lake.deliver([at_hour(number)], feed=f"f{number}")
    lake.append([at_hour(MANY - 1)])

    def added(*asked: Any) -> Any:
        if others:
            others.pop()(lake, path)
        return real(*asked)

    monkeypatch.setattr(write, "AddAction", added)
    before = {at_hour(number)["event_id"] for number in range(MANY)}
    put_together(lake.lake, path, lake.contract, "compaction")
    assert not others
    if other is a_deletion:
        before -= {at_hour(1)["event_id"]}
    if other is an_append:
        before |= {at_hour(50)["event_id"]}
    assert ids(stored(path)) == sorted(before)


@pytest.mark.long
def test_results_stay(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """No revision has anything to do, of a table whose files alone have changed."""
    for row in snowball(1, MANY - 1):
        lake.deliver([row], feed=str(row["event_id"]))
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "first")
    all_steps(run)
    before = answers(lake.results(run), run)
    spark, path = lake.spark, lake.warehouse.source("flights")
    lake.deliver([], feed="empty")
    version = latest_version(bare_lake(spark), path)
    monkeypatch.setattr(small_files, "MANY", MANY - 1)
    put_together(bare_lake(spark), path, lake.contract, "by hand")
    assert latest_version(bare_lake(spark), path) == version + 1
    record = revise(renamed(run, "revision"))
    assert record.rows_inserted == record.rows_updated == record.rows_deleted == 0
    assert latest_version(bare_lake(spark), lake.warehouse.results(run.name)) == record.results_version
    all_steps(renamed(run, "again"))
    assert answers(lake.results(run), run) == before
    assert before


@pytest.mark.long
def test_documents_are_corrected_in_what_was_put_together(spark: SparkSession, tmp_path: Path) -> None:
    lake = DocumentLake.of(spark, tmp_path / "project")
    documents = [{"id": f"d{n}", "time": (7 * n % 10) * SECOND, "xml": f"<a><k>{n}</k></a>"} for n in range(6)]
    for document in documents:
        lake.deliver("items", [document], document["id"])
    lake.deliver("items", [documents[1] | {"xml": "<a/>"}], "correction")
    rows = read_at(
        bare_lake(spark), path := lake.warehouse.source("items"), latest_version(bare_lake(spark), path)
    ).toArrow()
    texts = dict(zip(rows["event_id"].to_pylist(), rows["document"].to_pylist(), strict=True))
    assert texts == {one["id"]: one["xml"] for one in documents} | {"d1": "<a/>"}
    assert "compact" in {commit.note.get("stage") for commit in known_commits(bare_lake(spark), path)}
