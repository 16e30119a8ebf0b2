"""Families on Spark: one table, one commit. An edited list of rows computes what is new, retracts what is gone and
leaves the rest as it is. The results are always a recomputation's."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_changes import change
from tests.support.signals import DAY_US, IN_WORKERS, Signals, signals, tidy_batch
from trendlake.cep_core.sharing.family import FamilyPlan
from trendlake.jobs.actions.backfill import run_backfill
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.lake.lake import Lake, latest_version, read_at
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.results.read import Selection, group_values, read_rows
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.batch import Member, run_batch
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

FAMILIES = {
    "trends": """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
where: ["a.price >= $least", "a.place = $where", "a.price <= NEXT(a).price"]
return: {trends: COUNT(*), most: MAX(a.price)}
within: 8 hours
slide: 4 hours
""",
    "matches": """\
kind: matches
pattern: SEQ(A a, B b+)
where: ["a.price >= $least", "b.price >= a.price", "b.place = $where"]
return: {total: SUM(b.price)}
within: 5 hours
""",
    "automaton": """\
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [q]
arcs:
  - {from: p, to: q, when: "e.event_type = 'A' AND e.place = $where", set: {n: "n + 1"}}
  - {from: q, to: q, when: "e.price > $least", set: {n: "n + 1"}}
within: 5 hours
""",
    "algebra": """\
kind: algebra
pattern: |
  FROM (SELECT price, place FROM FILTER{place = $where}(A))
  NEXT{$2.price >= $1.price AND $2.price > $least} (SELECT price FROM B)
within: 5 hours
""",
}
ROWS = "least,where\n1,n\n3,s\n5,n\n,n\n"
EDITED = "least,where\n5,n\n1,n\n4,s\n,n\n"
"""(3, s) is gone, (4, s) is new, and the others stay."""
FIRST_DAY, LAST_DAY = 0.5, 2.5


def lake_of(spark: SparkSession, folder: Path, kind: str) -> Signals:
    lake = signals(spark, folder / "project", FAMILIES[kind] + "for_each: {file: watched.csv}\n", profile=IN_WORKERS)
    return lake


def write(lake: Signals, rows: str) -> None:
    Path(lake.pattern).with_suffix(".csv").write_text(rows)


def run_of(lake: Signals, name: str) -> Run:
    run = lake.run(FIRST_DAY, LAST_DAY, name)
    all_steps(run)
    return run


def unchanged_members(run: Run) -> int | None:
    checks = {check.name: check for check in run.records["compute"].checks}
    return None if "members_changed" not in checks else checks["members_changed"].data["members_unchanged"]


def changes(lake: Signals, run: Run, version: int) -> set[tuple[Any, ...]]:
    """The members whose rows a version of the results has changed."""
    path = lake.warehouse.results(run.name)
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true")
    rows = feed.option("startingVersion", version).option("endingVersion", version).load(path).collect()
    return {(row["least"], row["where"]) for row in rows}


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["trends", *(pytest.param(kind, marks=pytest.mark.repeats) for kind in ("matches", "automaton", "algebra"))]
)
def test_run_revise_edit(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rng = random.Random(f"families {kind}")
    lake = lake_of(spark, tmp_path, kind)
    write(lake, ROWS)
    lake.insert(tidy_batch(rng, 55))
    first = run_of(lake, "first")
    agree(lake, first)
    assert isinstance(first.plan, FamilyPlan)
    path = lake.warehouse.results(first.name)
    assert latest_version(bare_lake(spark), path) == 1  # made, and one commit
    for number in range(2):
        change(rng, lake, tidy=True)
        revise(renamed(first, f"revision {number}"))
        agree(lake, first)
    write(lake, EDITED)
    edited = run_of(lake, "edited")
    assert edited.plan.hash != first.plan.hash
    agree(lake, edited)
    assert unchanged_members(edited) == 3
    assert changes(lake, edited, latest_version(bare_lake(spark), path)) <= {(3, "s"), (4, "s")}
    hashes = {
        row["plan_hash"] for row in read_at(bare_lake(spark), path, latest_version(bare_lake(spark), path)).collect()
    }
    assert hashes == {edited.plan.form}
    change(rng, lake, tidy=True)
    record: Record = revise(renamed(edited, "after the edit"))
    assert [check.name for check in record.checks if check.success is False] == []
    agree(lake, edited)
    write(lake, ROWS)
    newer = run_of(lake, "back")
    agree(lake, newer)
    replayed(lake, newer)


@pytest.mark.long
def test_members_only_leave(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is computed, and the rows of the members that are gone are retracted."""
    lake = lake_of(spark, tmp_path, "trends")
    write(lake, ROWS)
    lake.insert(tidy_batch(random.Random(5), 55))
    run_of(lake, "first")
    write(lake, "least,where\n1,n\n,n\n")
    plan = lake.run(FIRST_DAY, LAST_DAY, "look").plan
    path = lake.warehouse.results("watched")
    rows = read_rows(bare_lake(spark), path, plan, Selection())
    assert rows.stale == sum(row["least"] in (3, 5) for row in rows.table.to_pylist())
    fewer = run_of(lake, "fewer")
    assert unchanged_members(fewer) == 2
    agree(lake, fewer)
    chosen = Selection(groups=group_values(fewer.plan, {"least": "1", "where": "n"}, "--group"))
    rows = read_rows(bare_lake(spark), path, fewer.plan, chosen)
    assert rows.stale == 0
    assert {(row["least"], row["where"]) for row in rows.table.to_pylist()} == {(1, "n")}


@pytest.mark.long
def test_what_makes_all_members_new(spark: SparkSession, tmp_path: Path) -> None:
    """Another version of the source, another condition, or the same run again: nothing is left alone."""
    lake = lake_of(spark, tmp_path, "trends")
    write(lake, ROWS)
    rng = random.Random(6)
    lake.insert(tidy_batch(rng, 50))
    first = run_of(lake, "first")
    again = run_of(lake, "again")
    assert unchanged_members(again) is None
    lake.insert([{**tidy_batch(rng, 1)[0], "event_id": "late"}])
    write(lake, EDITED)
    newer = run_of(lake, "newer")
    assert unchanged_members(newer) is None
    agree(lake, newer)
    lake.edit(FAMILIES["trends"].replace("price <= NEXT", "price < NEXT") + "for_each: {file: watched.csv}\n")
    other = run_of(lake, "other")
    assert isinstance(first.plan, FamilyPlan)
    assert isinstance(other.plan, FamilyPlan)
    assert other.plan.form != first.plan.form
    assert unchanged_members(other) is None
    agree(lake, other)


EXPECT = """\
expect:
  - {measure: trends, between: [0.9, 1.1], of_last: 2 windows}
  - {groups: none_vanish, of_last: 2 windows}
"""


@pytest.mark.long
def test_backfill_batch_and_expect(spark: SparkSession, tmp_path: Path) -> None:
    """A backfill by chunks gives the rows of one run, and so does a batch with another pattern; `expect` names the
    members as groups."""
    lake = lake_of(spark, tmp_path, "trends")
    write(lake, ROWS)
    lake.edit(FAMILIES["trends"] + "for_each: {file: watched.csv}\n" + EXPECT)
    lake.insert(tidy_batch(random.Random(7), 55))
    days = ("2026-01-01T12:00:00Z", "2026-01-03T12:00:00Z")
    place = Place(lake.project, IN_WORKERS)
    *chunks, total = run_backfill(place, Lake.of(spark, place.warehouse), lake.pattern, *days, DAY_US, False, False)
    assert (len(chunks), total["computed"]) == (2, 2)
    run = lake.run(FIRST_DAY, LAST_DAY, "all at once")
    agree(lake, run)
    rows = spark.read.format("delta").load(lake.warehouse.results(run.name)).collect()
    assert {(row["least"], row["where"]) for row in rows} == {(1, "n"), (3, "s"), (5, "n")}  # none is less than NULL

    sibling = tmp_path / "project" / "sibling.yaml"
    text = FAMILIES["matches"].replace("$least", "3").replace("$where", "'n'")
    sibling.write_text(f"name: sibling\nsource: signals\n{text}")
    other = prepare(
        Lake.of(spark, Warehouse.of(IN_WORKERS, lake.project)),
        lake.project,
        IN_WORKERS,
        str(sibling),
        "batch",
        run.start_us,
        run.end_us,
    )
    members = [Member("watched", lake.run(FIRST_DAY, LAST_DAY, "batch")), Member("sibling", other)]
    list(run_batch(bare_lake(spark), members))
    assert [member.state for member in members] == ["succeeded"] * 2
    agree(lake, run)
    assert members[0].records[-1].rows_inserted == members[0].records[-1].rows_deleted == 0
    seen = {check.name: check.observed for check in members[0].records[2].checks if "of_last" in check.name}
    assert set(seen) == {"trends_between_0.9_and_1.1_of_last_2", "none_vanish_of_last_2"}
    assert "least=1, where=n" in seen["trends_between_0.9_and_1.1_of_last_2"]
