"""What was judged is what is published: each step refuses a record made for something else, and says what differs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.support.bare_lake import bare_lake
from tests.support.flights import all_steps, answers, renamed
from tests.support.roads import only_spark
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import CONTRACT, START_US, Signals, signals
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.report.read_run import read_run
from trendlake.pipelines.runs import record as runs
from trendlake.pipelines.runs.record import BASIS, NUMBER
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000
PLAIN = """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
return: {trends: COUNT(*)}
group_by: [place]
within: 1 day
"""
MINIMUM = ("minimum: 0, maximum: 9", "minimum: 3, maximum: 9")
FUTURE = ("unit: h}]", "unit: h}, {property: maxFuture, value: 2, unit: h}]")
DOUBLE = ("logicalType: integer, physicalType: bigint", "logicalType: number, physicalType: double")
LATER, SOONER = ("value: 6, unit: h", "value: 3, unit: d"), ("value: 6, unit: h", "value: 1, unit: h")


def events(hours: range, place: str = "n") -> list[dict[str, Any]]:
    row = {"event_type": "A", "place": place, "price": 1, "remark": ""}
    return [row | {"event_id": f"{place}{hour}", "event_time": START_US + hour * HOUR} for hour in hours]


def edit_contract(lake: Signals, *edits: tuple[str, str]) -> None:
    text = CONTRACT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    lake.project.contract_path("signals").write_text(text)


def trends(lake: Signals, run: Run) -> list[Any]:
    frame = lake.spark.read.format("delta").load(lake.warehouse.results(run.name))
    return [row["trends"] for row in answers(frame, run)]


def test_a_contract_edited_before_publish(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of the old contract would be published under the new one's name; `revise` would answer "nothing new"."""
    lake = signals(spark, tmp_path / "p", PLAIN)
    lake.insert(events(range(3)))
    run = lake.run(0, 1, "r")
    for step in list(STEPS.values())[:3]:
        step(run)
    edit_contract(lake, MINIMUM)
    with pytest.raises(StepOrderError, match=r"check_results.*contract"):
        STEPS["publish"](lake.run(0, 1, "r"))


def test_a_latency_edited_before_publish(spark: SparkSession, tmp_path: Path) -> None:
    """Windows that were not computed would be owned by the publication, and emptied."""
    lake = signals(spark, tmp_path / "p", f"{PATTERNS['automaton']}consistency: strong\n")
    edit_contract(lake, SOONER)
    lake.insert(events(range(0, 90, 3)))
    all_steps(lake.run(0, 2, "days"))
    run = lake.run(2, 3, "r")
    before = spark.read.format("delta").load(lake.warehouse.results(run.name)).count()
    for step in list(STEPS.values())[:3]:
        step(run)
    edit_contract(lake, LATER)
    with pytest.raises(StepOrderError, match="lateness"):
        STEPS["publish"](lake.run(2, 3, "r"))
    assert spark.read.format("delta").load(lake.warehouse.results(run.name)).count() == before > 0


@pytest.mark.long
def test_a_run_done_again_on_a_machine_whose_clock_is_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on from its own records, not from those of the attempt before."""
    lake = signals(spark, tmp_path / "p", PLAIN)
    lake.insert(events(range(2)))

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(minutes=10)

    with monkeypatch.context() as clock:
        clock.setattr(runs, "datetime", Ahead)
        for step in STEPS.values():
            step(lake.run(0, 1, "r"))  # each a process of its own
    lake.insert(events(range(2, 3)))
    records = [step(lake.run(0, 1, "r")) for step in STEPS.values()]
    assert {record.source_version for record in records} == {2}
    assert [record.record_number for record in records] == [5, 6, 7, 8]
    facts = read_run(lake.lake, "watched", "r")
    assert (facts.source_version, facts.results_version) == (2, records[-1].results_version)
    assert trends(lake, lake.run(0, 1, "r")) == [7]


Edit = Callable[[Signals], Run]
STRONG = f"{PATTERNS['automaton']}consistency: strong\n"
EDITS: dict[str, tuple[Edit, str]] = {
    "a rule of the contract": (lambda lake: edited(lake, MINIMUM), r"the source's contract \(fingerprint\) was"),
    "a longer latency": (lambda lake: edited(lake, LATER), "the allowed lateness was 6 h and is 72 h"),
    "a shorter latency": (lambda lake: edited(lake, SOONER), "the allowed lateness was 6 h and is 1 h"),
    "how far in the future": (lambda lake: edited(lake, FUTURE), r"the source's contract \(fingerprint\) was"),
    "the consistency": (lambda lake: of_text(lake, STRONG.replace("strong", "middle")), "the consistency was strong"),
    "the pattern": (lambda lake: of_text(lake, STRONG.replace("n > 1", "n > 2")), "the pattern has changed"),
    "the profile's table": (lambda lake: elsewhere(lake), r"version 1 of the source was of table \S+, and is of table"),
    "a newer version": (lambda lake: checked_again(lake), "the source's version was 1 and is 2"),
    "the source made again": (lambda lake: made_again(lake), "of the source was of table"),
}


def edited(lake: Signals, edit: tuple[str, str]) -> Run:
    edit_contract(lake, edit)
    return lake.run(0, 3, "r")


def of_text(lake: Signals, text: str) -> Run:
    lake.edit(text)
    return lake.run(0, 3, "r")


def elsewhere(lake: Signals) -> Run:
    """The profile says that the source is another table, of as many versions."""
    run, path = lake.run(0, 3, "r"), f"{lake.warehouse.root}/elsewhere"
    create_source(lake.lake, path, lake.contract)
    lake.spark.read.format("delta").load(lake.source).write.format("delta").mode("append").save(path)
    return replace(run, lake=Lake.of(lake.spark, replace(run.warehouse, elsewhere={"signals": path})))


def checked_again(lake: Signals) -> Run:
    lake.insert(events(range(90, 93)))
    STEPS["check_source"](lake.run(0, 3, "r"))
    return lake.run(0, 3, "r")


def made_again(lake: Signals) -> Run:
    """With as many versions: a nightly job drops the table and fills it anew."""
    shutil.rmtree(lake.source)
    create_source(lake.lake, lake.source, lake.contract)
    for hours in (range(0, 50, 3), range(50, 90, 3)):
        lake.insert(events(hours))
    return lake.run(0, 3, "r")


@pytest.mark.long
def test_no_step_goes_on_after_an_edit(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever is edited, between whichever two steps. Without an edit each goes on."""
    lake = signals(spark, tmp_path / "p", STRONG)
    lake.insert(events(range(0, 90, 3)))
    steps = list(STEPS)
    for name in steps[:3]:
        STEPS[name](lake.run(0, 3, "r"))
    for what, (edit, expected) in EDITS.items():
        run = edit(lake)
        for name in steps[1:]:
            if what == "a newer version" and name == "compute":
                continue  # it goes on from check_source's newest record, as it should
            with pytest.raises(StepOrderError, match=expected) as refused:
                STEPS[name](replace(run))
            assert "trendlake check-source" in str(refused.value.hint)
        edit_contract(lake)
        lake.edit(STRONG)
        if what == "the profile's table":
            STEPS["publish"](lake.run(0, 3, "r"))
    assert spark.read.format("delta").load(lake.warehouse.results("watched")).count()


def unsupported(*arguments: object) -> Any:
    raise NotHereError("for the test")


@pytest.mark.long
def test_records_of_an_earlier_version(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without the new columns opens; a run that it tells of is made anew, as nobody knows what it was made
    for."""
    lake = signals(spark, tmp_path / "p", PLAIN)
    lake.insert(events(range(3)))
    run, old = lake.run(0, 1, "r"), StructType([item for item in runs.SCHEMA if item.name not in (NUMBER, BASIS)])
    values = {"run_id": "r", "pattern": "watched", "stage": "check_source", "status": "succeeded", "source_version": 1}
    values |= {"plan_hash": run.plan.hash, "checks": "[]", "finished_at": datetime(2036, 1, 1, tzinfo=UTC)}
    values |= {name: runs.moment(us) for name, us in (("interval_from", run.start_us), ("interval_to", run.end_us))}
    shutil.rmtree(lake.warehouse.runs)
    spark.createDataFrame([values], old).write.format("delta").save(lake.warehouse.runs)
    record = runs.find(lake.lake, "watched", "r", "check_source")
    assert record is not None
    assert (record.basis, record.interval_to) == (None, run.end_us)
    with pytest.raises(StepOrderError, match=r"check_source of watched, run r: .* earlier version of Trendlake"):
        STEPS["compute"](run)
    records = [STEPS[name](lake.run(0, 1, "r")) for name in STEPS]
    assert trends(lake, run) == [7]
    newest = runs.find(lake.lake, "watched", "r", "check_source")
    assert newest is not None
    assert (newest.record_number, newest.basis) == (records[0].record_number, records[0].basis)
    local = [runs.find(lake.lake, "watched", "r", stage) for stage in STEPS]  # type: ignore[arg-type]
    with only_spark():
        by_spark = [runs.find(lake.lake, "watched", "r", stage) for stage in STEPS]  # type: ignore[arg-type]
        assert by_spark == local
        fresh = [Record("r", name, "compute") for name in ("watched", "another")]
        runs.number_records(lake.lake, fresh)
        assert [record.record_number for record in fresh] == [int(records[-1].record_number or 0) + 1, 1]
    for record in (*records, revise(renamed(run, "revision"))):
        assert record.basis is not None
        assert record.basis.sources is not None
        assert record.basis.sources.table_id == table_id(bare_lake(spark), lake.source)
    notes = [
        commit.note for commit in recent_commits(bare_lake(spark), lake.warehouse.results("watched")) if commit.note
    ]
    assert [note["source_table"] for note in notes] == [table_id(bare_lake(spark), lake.source)]


SECOND = """\
name: second
source: results/watched
pattern: watched w+
return: {sum: SUM(w.most)}
within: 1 day
consistency: strong
"""


def test_a_contract_upstream(spark: SparkSession, tmp_path: Path) -> None:
    """A pattern over another's results: their contract, and its latency, follow from that pattern's source."""
    lake = signals(spark, tmp_path / "p", PLAIN.replace("COUNT(*)", "COUNT(*), most: MAX(a.price)"))
    patterns = lake.project.patterns
    patterns.mkdir(parents=True)
    shutil.copy(lake.pattern, patterns / "watched.yaml")
    (patterns / "second.yaml").write_text(SECOND)
    lake.insert(events(range(0, 90, 3)))
    all_steps(lake.run(0, 4, "first"))
    second = replace(lake, pattern="second")
    for name in list(STEPS)[:3]:
        STEPS[name](second.run(0, 2, "r"))
    for edit, expected in (
        (LATER, "the allowed lateness was 30 h and is 96 h"),
        (DOUBLE, "pattern has changed|contract"),
    ):
        edit_contract(lake, edit)
        for name in list(STEPS)[1:]:
            with pytest.raises(StepOrderError, match=expected):
                STEPS[name](second.run(0, 2, "r"))
    edit_contract(lake)
    STEPS["publish"](second.run(0, 2, "r"))
