"""Revising: what changed in the source changes in the results, and nothing else does."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaRsTable

from tests.support.flights import Flights, all_steps, flight, renamed
from trendlake.jobs.actions.history import print_diff, print_history
from trendlake.jobs.terminal.printing import console
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.errors import BadNumberError, BadTimeError, StepOrderError
from trendlake.pipelines.json_text import json_text
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.lake.maintain import clear_staging, maintain, tables
from trendlake.pipelines.results.history import between, reasons, values, version_of
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

WEEK = ("2013-03-01", "2013-03-08")


def snowballs(day: int, legs: int, carrier: str = "UA") -> list[dict[str, Any]]:
    """`legs` flights of one aircraft of `carrier`, each later than the one before: 2^legs - 1 trends."""
    return [
        flight(
            10 * day + leg,
            f"2013-03-{day:02d}T{8 + leg:02d}:00:00",
            event_id=f"{carrier}-{day}-{leg}",
            carrier=carrier,
            tailnum=f"N{carrier}",
            dep_delay=10.0 + leg,
        )
        for leg in range(legs)
    ]


def sql(lake: Flights, statement: str) -> None:
    """A statement on the source, written as `flights`."""
    lake.spark.sql(statement.replace("flights", f"delta.`{lake.warehouse.source('flights')}`"))


def revised(run: Run, run_id: str) -> Record:
    return revise(renamed(run, run_id))


def counts(lake: Flights, run: Run) -> dict[tuple[str, int], int]:
    table = DeltaRsTable(lake.warehouse.results(run.name))
    rows = table.to_pyarrow_table(columns=["carrier", "window_start", "snowballs"]).to_pylist()
    return {(row["carrier"], row["window_start"].day): int(row["snowballs"]) for row in rows}


def outcome_of(record: Record) -> str:
    return str(next(item.observed for item in record.checks if item.name == "revision"))


def changed(record: Record) -> tuple[int | None, int | None, int | None]:
    return record.rows_inserted, record.rows_updated, record.rows_deleted


def test_late_changed_and_deleted_events(lake: Flights, capsys: pytest.CaptureFixture[str]) -> None:
    """Inserts, updates and retractions in one commit; only the windows they touch are computed; then all is quiet."""
    lake.deliver([*snowballs(1, 3), *snowballs(2, 2), *snowballs(3, 2, "AA")], feed="first")
    run = lake.run(lake.pattern(), *WEEK, "r1")
    with pytest.raises(StepOrderError, match="has published nothing"):
        revise(run)
    all_steps(run)
    assert changed(revised(run, "nothing new")) == (0, 0, 0)
    path = lake.warehouse.results(run.name)
    before = latest_version(lake.lake, path)

    late = flight(99, "2013-03-01T20:00:00", tailnum="NUA", dep_delay=99.0)
    lake.deliver([late, *snowballs(5, 1, "B6"), *snowballs(20, 3)], feed="second")
    sql(lake, "DELETE FROM flights WHERE carrier = 'AA'")
    record = revised(run, "v1")
    assert outcome_of(record) == "7 rows changed from version 1 to 3: 3 windows touched"
    assert changed(record) == (1, 1, 1)
    assert record.staged_version is None, "so small a revision is computed in this process"
    assert counts(lake, run) == {("UA", 1): 15, ("UA", 2): 3, ("B6", 5): 1}
    commits = recent_commits(lake.lake, path)
    assert [commit.version for commit in commits if commit.version > before] == [before + 1]
    assert commits[0].note["source_version"] == 3

    sql(lake, "UPDATE flights SET distance = distance + 1")  # no condition or measure reads it
    assert changed(revised(run, "v2")) == (0, 0, 0)
    sql(lake, "UPDATE flights SET dep_delay = 10.0 WHERE event_id = 'UA-99'")  # the trends of that day go back to 8
    assert changed(revised(run, "v3")) == (0, 1, 0)
    assert counts(lake, run) == {("UA", 1): 8, ("UA", 2): 3, ("B6", 5): 1}
    assert latest_version(lake.lake, path) == before + 2
    again = all_steps(renamed(run, "all of it"))
    assert changed(again) == (0, 0, 0)
    what_was_published(lake, run, before, capsys)


def what_was_published(lake: Flights, run: Run, before: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The two clocks: any version can be read, compared with another, and followed row by row."""
    path = lake.warehouse.results(run.name)
    commit_times = {
        row[0]: row[1]
        for row in DeltaTable.forPath(lake.spark, path).history().select("version", "timestamp").collect()
    }
    assert version_of(lake.lake, path, str(before)) == before
    assert version_of(lake.lake, path, commit_times[before + 1].astimezone(UTC).isoformat()) == before + 1
    with pytest.raises(BadNumberError, match="the results have versions 0 to"):
        version_of(lake.lake, path, "99")
    with pytest.raises(BadTimeError, match="there were no results"):
        version_of(lake.lake, path, "2013-01-01")
    numbers, rows = between(lake.lake, path, run.plan, before, before + 2)
    assert numbers == {"added": 1, "changed": 1, "retracted": 1}
    differences = {(row.kind, (row.after or row.before or {})["carrier"]) for row in rows}
    assert differences == {("changed", "UA"), ("added", "B6"), ("retracted", "AA")}
    assert [commit.note["source_version"] for commit in reasons(lake.lake, path, before, before + 2)] == [3, 5]
    had = values(lake.lake, path, run.plan, {"carrier": ["UA"]}, micros_of("2013-03-01", ""))
    past = [(value.commit.note["source_version"], int(value.row["snowballs"])) for value in had if value.row]
    assert past == [(1, 7), (3, 15), (5, 8)]
    gone = values(lake.lake, path, run.plan, {"carrier": ["AA"]}, micros_of("2013-03-03", ""))
    assert [value.row is None for value in gone] == [False, True]
    with console.capture() as printed:
        print_diff(lake.lake, path, run.plan, (str(before), str(before + 2)), 10)
        print_history(lake.lake, path, run.plan, {"carrier": "AA"}, micros_of("2013-03-03", ""))
    lines = printed.get()
    assert f"version {before} to {before + 2}: 1 added, 1 changed, 1 retracted" in lines
    assert "snowballs 7 -> 8" in lines
    assert f"version {before + 1}, revision v1 of the source's version 3: retracted" in lines
    document = print_diff(lake.lake, path, run.plan, (str(before), str(before + 2)), 10, as_json=True)
    document = json.loads(json_text(document, None))
    assert document["counts"] == {"added": 1, "changed": 1, "retracted": 1}
    assert {row["kind"] for row in document["rows"]} == set(document["counts"])
    assert [commit["source_version"] for commit in document["commits"]] == [3, 5]
    document = print_history(lake.lake, path, run.plan, {"carrier": "AA"}, micros_of("2013-03-03", ""), as_json=True)
    had = json.loads(json_text(document, None))["values"]
    assert [(value["row"] or {}).get("carrier") for value in had] == ["AA", None]
    assert capsys.readouterr().out == ""


def test_quarantined_rows_that_are_repaired(lake: Flights) -> None:
    """A row that breaks the contract counts once it is repaired; one that breaks it now goes, and into quarantine; and
    of two rows with one id neither counts, until one of them goes."""
    good = snowballs(1, 3)
    broken = {**good[2], "event_id": "broken", "arr_time": None, "dep_delay": 50.0}
    twin = {**good[0], "event_time": good[0]["event_time"].replace(day=4), "tailnum": "NZZ"}
    lake.append([*good, broken, twin, *(row for day in (2, 5, 6, 7) for row in snowballs(day, 15))])
    run = lake.run(lake.pattern(), *WEEK, "r1")
    all_steps(run)
    assert counts(lake, run)[("UA", 1)] == 3
    assert ("UA", 4) not in counts(lake, run)
    lake.change(lambda row: row | {"arr_time": 1300} if row["event_id"] == "broken" else row)
    revised(run, "repaired")
    assert counts(lake, run)[("UA", 1)] == 5  # as late as the third flight, so never after it
    gone = (good[0]["event_id"], "NUA")
    lake.change(lambda row: None if (row["event_id"], row["tailnum"]) == gone else row)
    revised(run, "one of two gone")
    assert counts(lake, run)[("UA", 1)] == 5
    assert counts(lake, run)[("UA", 4)] == 1
    lake.change(lambda row: row | {"tailnum": "no such"} if row["tailnum"] == "NZZ" else row)
    record = revised(run, "broken now")
    assert (record.rows_quarantined, record.rows_deleted) == (1, 1)
    set_apart = DeltaRsTable(lake.warehouse.quarantine("flights")).to_pyarrow_table()["run_id"].to_pylist()
    assert set_apart.count("broken now") == 1
    assert changed(all_steps(renamed(run, "all of it"))) == (0, 0, 0)


@pytest.mark.long
def test_without_a_feed_all_is_computed(lake: Flights) -> None:
    """Where the feed was off, the published windows are computed anew, and the record says why."""
    lake.deliver(snowballs(1, 3), feed="first")
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-03", "r1")
    all_steps(run)
    sql(lake, "ALTER TABLE flights SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    lake.deliver([*snowballs(2, 2), *snowballs(5, 2)], feed="second")
    record = revised(run, "no feed")
    assert "all computed anew, 2 windows: no change feed" in outcome_of(record)
    assert counts(lake, run) == {("UA", 1): 7, ("UA", 2): 3}


@pytest.mark.chaos
def test_backfills_in_any_order(lake: Flights) -> None:
    """Windows published from different versions are each brought to the newest; windows no run asked for stay away."""
    lake.deliver(snowballs(1, 3), feed="first")
    pattern = lake.pattern()
    run = lake.run(pattern, "2013-03-01", "2013-03-04", "r1")
    all_steps(run)
    lake.deliver([*snowballs(2, 2, "AA"), *snowballs(5, 2, "AA"), *snowballs(9, 2, "AA")], feed="second")
    all_steps(lake.run(pattern, "2013-03-08", "2013-03-12", "later windows"))
    lake.deliver(snowballs(10, 2, "AA"), feed="third")
    with ThreadPoolExecutor(2) as pool:  # at once: one comes first, the other finds nothing left to do
        records = list(pool.map(lambda name: revised(run, name), ("newest", "newest too")))
    assert sorted(changed(record) for record in records) == [(0, 0, 0), (2, 0, 0)]
    assert counts(lake, run) == {("UA", 1): 7, ("AA", 2): 3, ("AA", 9): 3, ("AA", 10): 3}

    # Maintenance is no change: fewer files, the same rows, versions still there, nothing to revise.
    maintained = tables(lake.lake, ["flights", "none"], [run.name])
    assert set(maintained) == {"sources/flights", f"results/{run.name}", "trendlake_runs"}
    by_table = {item.table: item for item in maintain(lake.lake, maintained)}
    assert all(item.files_after <= item.files_before for item in by_table.values())
    assert by_table["sources/flights"].files_after < by_table["sources/flights"].files_before
    assert changed(revised(run, "after maintenance")) == (0, 0, 0)
    assert read_at(lake.lake, lake.warehouse.results(run.name), 1).count() == 1
    attempts = sorted(Path(lake.warehouse.staged).glob("*/*/*"))
    assert clear_staging(lake.lake) == 0
    os.utime(attempts[0], (time.time() - 31 * 86400,) * 2)
    assert clear_staging(lake.lake) == 1
    assert sorted(Path(lake.warehouse.staged).glob("*/*/*")) == attempts[1:]
