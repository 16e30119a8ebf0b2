"""A batch: its members' rows, records and verdicts are those of each alone, and one that fails stops no other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support.flights import PATTERN, Flights, all_steps, flight
from trendlake.cep_core import TrendlakeError
from trendlake.pipelines.errors import OutOfMemoryError, ShardTooLargeError, UpstreamFailedError
from trendlake.pipelines.execute.worker import Answers, Batches, Work
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.results import computation
from trendlake.pipelines.results.staging import HIDDEN
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps import check_source
from trendlake.pipelines.steps.batch import Member, run_batch

pytestmark = pytest.mark.spark

DAYS = ("2013-03-01", "2013-03-03")
SHAPES = {
    "by_day": {"within": "1 day", "slide": "1 day", "group_by": "carrier"},
    "by_day_again": {"within": "1 day", "slide": "1 day", "group_by": "origin"},
    "by_hours": {"within": "3 hours", "slide": "1 hour", "group_by": "carrier"},
    "too_large": {"within": "1 day", "slide": "1 day", "group_by": "carrier"},
}
PAIR = """\
name: pairs
kind: matches
source: flights
pattern: SEQ(Flight a, Flight b)
where: ["[tailnum]", "a.dep_delay < b.dep_delay"]
return: {more: b.dep_delay - a.dep_delay}
within: 3 hours
"""
BUSY = """\
name: {name}
source: results/{source}
pattern: {source} R+
return: {{windows: COUNT(*), most: MAX(R.snowballs)}}
within: 1 day
"""
OWN = ("run_id", "computed_at", "_commit_timestamp")
"""Columns of the change feed in which two runs of the same windows may differ."""


@pytest.fixture(scope="module")
def untouched(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Flights:
    """A project with the patterns of the test, and three days of flights, of which some break the contract. To be
    copied."""
    project, folder = find_project(ROOT), tmp_path_factory.mktemp("batch")
    texts = {name: PATTERN.format(name=name, **shape) for name, shape in SHAPES.items()} | {"pairs": PAIR}
    texts |= {f"busy_{name}": BUSY.format(name=f"busy_{name}", source=name) for name in ("by_day", "too_large")}
    own = replace(project, root=folder / "project", state=folder / "state")
    own.patterns.mkdir(parents=True)
    own.contracts.symlink_to(project.contracts)
    for name, text in texts.items():
        (own.patterns / f"{name}.yaml").write_text(text)
    lake = Flights(spark, own, Profile(master="local[2]", limits=Limits(driver_rows=1)))
    rows = [
        flight(
            100 * day + n,
            f"2013-03-{day:02d}T{6 + n % 12:02d}:{n:02d}:00",
            carrier="AU"[n % 2] + "A",
            dep_delay=float(n * 7 % 31),
        )
        for day in (1, 2, 3)
        for n in range(40)
    ]
    broken = [flight(900, "2013-03-01T07:00:00", arr_time=None), flight(901, "2013-03-02T08:00:00", tailnum="X")]
    lake.append([*rows, *broken])
    return lake


def copied(lake: Flights, folder: Path) -> Flights:
    """The project and its tables in another folder."""
    project = replace(lake.project, root=folder / "project", state=folder / "state")
    shutil.copytree(lake.project.root, project.root, symlinks=True)
    shutil.copytree(lake.project.state, project.state)
    return replace(lake, project=project)


@pytest.fixture
def lake(untouched: Flights, tmp_path: Path) -> Flights:
    return copied(untouched, tmp_path)


def runs(lake: Flights, names: list[str]) -> dict[str, Run]:
    return {name: lake.run(name, *DAYS, "r1", limit=1 if name == "too_large" else None) for name in names}


def feed(lake: Flights, name: str) -> list[dict[str, Any]]:
    """Every change of the results of a pattern, in an order of its own."""
    changes = pa.table(DeltaTable(lake.warehouse.results(name)).load_cdf(starting_version=0))
    return sorted(changes.drop_columns(list(OWN)).to_pylist(), key=str)


def facts(lake: Flights, name: str, published: list[str]) -> dict[str, str]:
    """What the run record has of each stage of a pattern's run, but for times and roads; ids of results tables by
    name."""
    ids = {str(table_id(lake.lake, lake.warehouse.results(other), 0)): other for other in published}
    texts = {}
    for stage in ("check_source", "compute", "check_results", "publish"):
        record = find(lake.lake, name, "r1", stage)
        assert record is not None
        own = ("seconds", "staged_version", "road", "road_reason")
        text = str({key: value for key, value in vars(record).items() if key not in own})
        for identity, other in ids.items():
            text = text.replace(identity, other)
        texts[stage] = text
    return texts


MEMBERS = ("by_day", "by_day_again", "by_hours", "pairs", "busy_by_day")


@pytest.fixture(scope="module")
def alone(untouched: Flights, tmp_path_factory: pytest.TempPathFactory) -> Flights:
    """A copy of the lake, in which each of the members has run by itself on Spark."""
    alone = copied(untouched, tmp_path_factory.mktemp("alone"))
    for name in MEMBERS:
        all_steps(runs(alone, [name])[name])
    return alone


@pytest.mark.long
def test_rows_and_records_are_those_of_each_alone(
    lake: Flights, alone: Flights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time ranges of two sources are judged once each; whatever the order of the members."""
    judged: list[list[tuple[int, int]]] = []
    real = check_source.judge_source
    monkeypatch.setattr(
        check_source, "judge_source", lambda runs, *pin: judged.append([run.span for run in runs]) or real(runs, *pin)
    )
    jobs: list[int] = []
    distribute = computation.distribute
    monkeypatch.setattr(computation, "distribute", lambda *args: jobs.append(len(args[2])) or distribute(*args))
    names = ["pairs", "by_hours", "by_day_again", "by_day", "busy_by_day"]
    together = runs(lake, names)
    members = [Member(name, together[name]) for name in names]
    steps = list(run_batch(lake.lake, members))
    assert [member.state for member in members] == ["succeeded"] * 5
    assert len(steps) == 4 * 5
    assert [len(spans) for spans in judged] == [3, 1]  # of the flights three ranges in one go, then of the results
    assert len(set(judged[0])) == 3
    assert jobs == [3, 1]  # of the flights three channels in one job, then of the results of by_day
    for name in MEMBERS:
        assert feed(lake, name) == feed(alone, name)
        read = [name, "by_day"]
        assert facts(lake, name, read) == facts(alone, name, read)
    assert len(feed(lake, "by_day")) > 2


@pytest.mark.long
def test_few_events_are_computed_in_this_process(
    lake: Flights, alone: Flights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rows and records of a run on Spark, though some events break the contract; by no Spark job."""
    names = ["pairs", "by_hours", "by_day", "busy_by_day"]
    monkeypatch.setattr(computation, "distribute", None)
    quick = replace(lake, profile=Profile(master="local[2]"))
    members = [Member(name, run) for name, run in runs(quick, names).items()]
    list(run_batch(lake.lake, members))
    assert [member.state for member in members] == ["succeeded"] * 4
    for name in names:
        assert feed(quick, name) == feed(alone, name)
        assert facts(quick, name, names) == facts(alone, name, names)


@pytest.mark.long
def test_a_member_that_fails_stops_no_other(lake: Flights) -> None:
    """Its error is recorded under its name; the pattern that reads its results does not begin."""
    names = ["too_large", "busy_too_large", "by_day"]
    together = runs(lake, names)
    wrong = Member("wrong", None, ValueError("no such file"))
    members = [Member(name, run) for name, run in together.items()]
    steps = [(step, member.name) for step, member in run_batch(lake.lake, [wrong, *members])]
    assert steps == [
        ("check_source", "too_large"),
        ("check_source", "by_day"),
        ("compute", "too_large"),
        ("compute", "by_day"),
        ("check_results", "by_day"),
        ("publish", "by_day"),
    ]
    by_name = {member.name: member for member in members}
    assert isinstance(by_name["too_large"].error, ShardTooLargeError)
    assert isinstance(by_name["busy_too_large"].error, UpstreamFailedError)
    assert [member.state for member in (wrong, *members)] == ["failed", "failed", "skipped", "succeeded"]
    assert not exists(lake.lake, lake.warehouse.results("too_large"))
    assert lake.results(together["by_day"]).count() > 2
    rows = lake.spark.read.format("delta").load(lake.warehouse.runs).where("status = 'failed'").collect()
    assert [(row["pattern"], row["stage"]) for row in rows] == [("too_large", "compute")]


@pytest.mark.long
def test_an_error_in_the_data_of_a_member_stops_no_other(lake: Flights) -> None:
    """It comes from a worker beside the rows of the others; none of its files can be read."""
    text = PAIR.replace("name: pairs", "name: crowded") + "limit_per_partition: 2\n"
    (lake.project.patterns / "crowded.yaml").write_text(text)
    together = runs(lake, ["crowded", "pairs", "by_day"])
    members = [Member(name, run) for name, run in together.items()]
    steps = [(step, member.name) for step, member in run_batch(lake.lake, members) if member.error is not None]
    assert steps == [("compute", "crowded")]
    error = members[0].error
    assert isinstance(error, TrendlakeError)
    assert error.code == "TOO_MANY_MATCHES"
    assert error.hint
    assert [member.state for member in members] == ["failed", "succeeded", "succeeded"]
    folder = Path(lake.warehouse.staging("crowded", "r1"))
    assert [file.name for file in folder.rglob("*.parquet") if not file.name.startswith(HIDDEN)] == []
    rows = lake.spark.read.format("delta").load(lake.warehouse.runs).where("status = 'failed'").collect()
    assert [(row["pattern"], row["stage"]) for row in rows] == [("crowded", "compute")]
    assert "TOO_MANY_MATCHES" in rows[0]["error"]


@pytest.mark.long
def test_a_member_that_kills_a_worker_is_alone_in_the_end(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails as a whole job is parted until who fails by itself is by itself; the others are published."""
    together = {name: lake.run(name, *DAYS, "r1") for name in ("by_day", "by_hours", "by_day_again", "pairs")}
    fatal = together["by_hours"].plan
    answers_of = computation.answers_of

    def deadly(work: Work) -> Callable[[Batches], Answers]:
        answers = answers_of(work)
        doomed = any(member.plan == fatal for channel in work.channels for member in channel.members)

        def die(batches: Batches) -> Answers:
            if doomed:
                os._exit(7)
            yield from answers(batches)

        return die

    monkeypatch.setattr(computation, "answers_of", deadly)
    members = [Member(name, run) for name, run in together.items()]
    list(run_batch(lake.lake, members))
    assert [member.state for member in members] == ["succeeded", "failed", "succeeded", "succeeded"]
    assert isinstance(members[1].error, OutOfMemoryError)


@pytest.mark.long
def test_one_version_for_all_members(lake: Flights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that come while the batch checks its source are not seen by the members that come after."""
    together = runs(lake, ["by_day", "by_day_again"])
    members = [Member(name, run) for name, run in together.items()]
    late = iter([True])
    for step, _ in run_batch(lake.lake, members):
        if step == "check_source" and next(late, False):
            lake.append([flight(999, "2013-03-01T10:00:00")])
    assert len({member.records[0].source_version for member in members}) == 1
    assert {member.records[-1].source_version for member in members} == {members[0].records[0].source_version}
