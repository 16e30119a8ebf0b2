"""Publishing: one commit, only what changed, whoever else publishes, as often as it is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from tests.support.flights import Flights, all_steps, answers, flight, renamed
from trendlake.pipelines.errors import ChecksFailedError, StaleRunError, StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.results.staging import read_staged
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish

pytestmark = pytest.mark.spark

WEEK = ("2013-03-01", "2013-03-08")


def snowballs(day: int, legs: int, carrier: str | None = "UA", first: int = 0) -> list[dict[str, object]]:
    """`legs` flights of one aircraft, each later than the one before: 2^legs - 1 trends."""
    return [
        flight(
            1000 * day + first + leg,
            f"2013-03-{day:02d}T{8 + leg:02d}:00:00",
            carrier=carrier,
            tailnum=f"N{carrier or 'XX'}",
            dep_delay=10.0 + leg,
        )
        for leg in range(legs)
    ]


@pytest.fixture(params=["files", "MERGE"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By files that are written in this process, or by Spark, to whom all rows are many."""
    if request.param == "MERGE":
        monkeypatch.setattr(limits, "PUBLISHED", -1)


@pytest.fixture(scope="module")
def first(shared_lake: Flights) -> tuple[Flights, Run, Record]:
    """A lake with one published run, and the record of its publishing."""
    shared_lake.deliver([*snowballs(1, 4), *snowballs(3, 3, "AA", 500)])
    run = shared_lake.run(shared_lake.pattern(), *WEEK, "r1")
    return shared_lake, run, all_steps(run)


def test_the_right_rows_come_out(first: tuple[Flights, Run, Record]) -> None:
    """Counts, extremes and means of a case worked by hand."""
    lake, run, record = first
    rows = answers(lake.results(run), run)
    values = [(row["carrier"], row["window_start"].day, int(row["snowballs"]), int(row["legs"])) for row in rows]
    assert values == [("AA", 3, 7, 12), ("UA", 1, 15, 32)]
    assert [row["worst"] for row in rows] == [12.0, 13.0]
    assert [row["mean"] for row in rows] == pytest.approx([11.0, 11.5], rel=1e-12)
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (2, 0, 0)


def test_one_commit_a_publish(first: tuple[Flights, Run, Record]) -> None:
    """The table's history: made once, then one commit for each run, which says where it came from."""
    lake, run, record = first
    commits = recent_commits(lake.lake, lake.warehouse.results(run.name))[-2:]
    assert [commit.version for commit in commits] == [1, 0]
    assert commits[0].note["run_id"] == "r1"
    assert commits[0].note["source_version"] == record.source_version == 1


def test_publishing_again_changes_nothing(first: tuple[Flights, Run, Record]) -> None:
    """A retry, or another run of the same range: no row is touched and the change feed stays silent."""
    lake, run, record = first
    before = lake.results(run).collect()
    again = publish(run)
    other = all_steps(renamed(run, "r2"))
    for later in (again, other):
        assert (later.rows_inserted, later.rows_updated, later.rows_deleted) == (0, 0, 0)
    assert sorted(lake.results(run).collect()) == sorted(before)
    changes = (
        lake.spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", int(record.results_version or 0) + 1)
        .load(lake.warehouse.results(run.name))
    )
    assert changes.count() == 0


@pytest.mark.long
def test_a_table_made_with_its_rows_is_not_an_empty_one(lake: Flights) -> None:
    """As who restores a warehouse by CREATE TABLE AS SELECT makes it: its rows are replaced, not doubled."""
    lake.deliver([flight(n, f"2013-03-01T{n:02d}:00:00") for n in range(1, 12)])
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "first")
    all_steps(run)
    path = run.warehouse.results(run.name)
    Path(path).rename(f"{path}_old")
    lake.spark.sql(f"CREATE TABLE restored USING delta LOCATION '{path}' AS SELECT * FROM delta.`{path}_old`")
    lake.spark.sql("DROP TABLE restored")  # its name: the files stay
    before = answers(lake.results(run), run)
    all_steps(renamed(run, "second"))
    assert answers(lake.results(run), run) == before
    assert before


@pytest.mark.usefixtures("road")
def test_late_changed_and_lost_rows_change_the_results(lake: Flights) -> None:
    """A run made again sees what has arrived since: rows are inserted, updated and deleted, each where it must."""
    lake.deliver([*snowballs(1, 3), *snowballs(2, 3, "AA", 300)], feed="first")
    run = lake.run(lake.pattern(), *WEEK, "r1")
    all_steps(run)
    late = flight(1900, "2013-03-01T20:00:00", tailnum="NUA", dep_delay=99.0)
    lake.deliver([late, *snowballs(4, 2, "B6", 600)], feed="second")
    lake.spark.createDataFrame([("AA",)], ["carrier"]).createOrReplaceTempView("gone")
    lake.spark.sql(f"DELETE FROM delta.`{lake.warehouse.source('flights')}` WHERE carrier = 'AA'")
    record = all_steps(run)
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (1, 1, 1)
    rows = answers(lake.results(run), run)
    assert [(row["carrier"], int(row["snowballs"])) for row in rows] == [("B6", 3), ("UA", 15)]


def test_a_group_may_be_null(lake: Flights) -> None:
    """The key is compared null-safe: a group without a name is one row, however often it is published."""
    nothing = dict.fromkeys(("tailnum", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"))
    lake.deliver([*snowballs(1, 3), flight(1800, "2013-03-01T21:00:00", event_type="Cancellation", **nothing)])
    path = Path(lake.pattern(group_by="tailnum"))
    text = path.read_text().replace("Flight F+", "Cancellation F+").replace('"[tailnum]", ', "")
    path.write_text(text.replace('"F.dep_delay < NEXT(F).dep_delay"', '"F.distance <= NEXT(F).distance"'))
    run = lake.run(path, *WEEK, "r1")
    all_steps(run)
    again = all_steps(renamed(run, "r2"))
    assert (again.rows_inserted, again.rows_updated, again.rows_deleted) == (0, 0, 0)
    assert [(row["tailnum"], int(row["snowballs"])) for row in answers(lake.results(run), run)] == [(None, 1)]


def test_concurrent_publishes_of_overlapping_ranges(lake: Flights) -> None:
    """Three runs that share days publish at once: every row is there once, as if they had come one by one."""
    lake.deliver([row for day in range(1, 8) for row in snowballs(day, 3)])
    path = lake.pattern()
    ranges = [("2013-03-01", "2013-03-06"), ("2013-03-03", "2013-03-08"), ("2013-03-02", "2013-03-07")]
    runs = [lake.run(path, since, until, f"r{index}") for index, (since, until) in enumerate(ranges)]
    for run in runs:
        check_source(run), compute(run), check_results(run)
    with ThreadPoolExecutor(len(runs)) as pool:
        records = list(pool.map(publish, runs))
    assert sum(record.rows_inserted or 0 for record in records) == 7
    assert sum((record.rows_updated or 0) + (record.rows_deleted or 0) for record in records) == 0
    rows = answers(lake.results(runs[0]), runs[0])
    assert [(row["window_start"].day, int(row["snowballs"])) for row in rows] == [(d, 7) for d in range(1, 8)]


def test_other_windows_are_left_alone(lake: Flights) -> None:
    """A run deletes only within its own windows."""
    lake.deliver([*snowballs(1, 3), *snowballs(5, 3)])
    path = lake.pattern()
    all_steps(lake.run(path, "2013-03-01", "2013-03-02", "r1"))
    record = all_steps(lake.run(path, "2013-03-02", "2013-03-08", "r2"))
    assert (record.rows_inserted, record.rows_deleted) == (1, 0)


def test_older_results_do_not_replace_newer_ones(lake: Flights) -> None:
    """A run that read an older version is refused where a newer one has published."""
    lake.deliver(snowballs(1, 3), feed="first")
    old = lake.run(lake.pattern(), *WEEK, "old")
    check_source(old), compute(old), check_results(old)
    lake.deliver(snowballs(2, 2), feed="second")
    all_steps(renamed(old, "new"))
    version = latest_version(lake.lake, lake.warehouse.results(old.name))
    with pytest.raises(StaleRunError, match="published from version 2"):
        publish(old)
    assert latest_version(lake.lake, lake.warehouse.results(old.name)) == version


def test_bad_results_are_not_published(lake: Flights) -> None:
    """What breaks the results contract stays in staging; the failed checks are named."""
    lake.deliver(snowballs(1, 3))
    pattern = lake.pattern()
    run = lake.run(pattern, *WEEK, "r1")
    check_source(run)
    staged = compute(run)
    rows = read_staged(run, int(staged.staged_version or 0))
    worse = rows.withColumn("snowballs", sf.lit(0).cast("decimal(38,0)")).union(rows)
    worse.write.parquet(f"{lake.warehouse.staging(run.name, run.run_id)}/1")
    lake.spark.sql(f"UPDATE delta.`{lake.warehouse.runs}` SET staged_version = 1, rows_out = 2 WHERE stage = 'compute'")
    later = lake.run(pattern, *WEEK, "r1")  # as another process: a run's own steps remember what they recorded
    with pytest.raises(ChecksFailedError, match="primary_key_unique"):
        check_results(later)
    with pytest.raises(StepOrderError, match="check-results has not succeeded"):
        publish(later)


def test_steps_keep_their_order(lake: Flights) -> None:
    """A step asks for the one before it: of this run, this interval and this state of the pattern."""
    lake.deliver(snowballs(1, 3))
    path = lake.pattern()
    run = lake.run(path, *WEEK, "r1")
    with pytest.raises(StepOrderError, match="check-source has not succeeded"):
        compute(run)
    check_source(run)
    with pytest.raises(StepOrderError, match="was for another interval"):
        compute(lake.run(path, "2013-03-01", "2013-03-02", "r1"))
    lake.pattern(within="2 days")
    with pytest.raises(StepOrderError, match="the pattern has changed"):
        compute(lake.run(path, *WEEK, "r1"))
