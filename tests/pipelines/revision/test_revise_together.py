"""Revising several patterns of one source: what each has is what it has alone, and what a recomputation gives; the
change feed is read once, and only who can match a changed row is computed again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.support.flights import Flights, all_steps, flight, renamed
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.revision import spark
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.batch import Member, run_batch
from trendlake.pipelines.steps.revise import revise, revise_together

pytestmark = pytest.mark.spark

DAYS = ("2013-03-01", "2013-03-03")
CARRIER = """\
name: {name}
source: flights
pattern: Flight F+
where: ["[tailnum]", "F.dep_delay < NEXT(F).dep_delay", "F.carrier = '{carrier}'"]
return: {{n: COUNT(*), mean: AVG(F.dep_delay)}}
group_by: [origin]
within: 1 day
"""
PAIR = """\
name: pairs
kind: matches
source: flights
pattern: SEQ(Flight a, Flight b)
where: ["[tailnum]", "a.dep_delay < b.dep_delay", "a.distance > 1000"]
return: {more: b.dep_delay - a.dep_delay}
within: 3 hours
"""
CARRIERS = [f"C{n}" for n in range(6)]
NAMES = [carrier.lower() for carrier in CARRIERS]
OWN = ["run_id", "computed_at", "_commit_timestamp"]
"""Columns of the change feed in which two revisions may differ."""
COUNTS = (
    "windows",
    "rows_in",
    "rows_quarantined",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "source_version",
    "results_version",
)
"""What of the records of two patterns is equal, where neither has anything to do."""


@pytest.fixture(scope="module")
def original(shared_lake: Flights, tmp_path_factory: pytest.TempPathFactory) -> Flights:
    """Two days of six carriers, and the results of a pattern for each of them and of one for all."""
    project = shared_lake.project
    own = replace(project, root=tmp_path_factory.mktemp("project"))
    own.patterns.mkdir(parents=True)
    own.contracts.symlink_to(project.contracts)
    for name, carrier in zip(NAMES, CARRIERS, strict=True):
        (own.patterns / f"{name}.yaml").write_text(CARRIER.format(name=name, carrier=carrier))
    (own.patterns / "pairs.yaml").write_text(PAIR)
    lake = replace(shared_lake, project=own)
    lake.deliver(
        [
            flight(
                100 * day + n,
                f"2013-03-{day:02d}T{6 + n // 6:02d}:{n:02d}:00",
                carrier=CARRIERS[n % 6],
                tailnum=f"N1{n % 6}UA",
                dep_delay=float(n * 7 % 31),
            )
            for day in (1, 2)
            for n in range(48)
        ]
    )
    assert [member.state for member in batch(lake, "first")] == ["succeeded"] * 7
    return lake


@pytest.fixture
def lake(original: Flights, tmp_path: Path) -> Flights:
    return copied(original, tmp_path / "state")


def copied(lake: Flights, state: Path) -> Flights:
    """The same tables in another place."""
    shutil.copytree(lake.project.state, state)
    return replace(lake, project=replace(lake.project, state=state))


def batch(lake: Flights, run_id: str) -> list[Member]:
    """All patterns after a run."""
    members = [Member(name, run) for name, run in runs(lake, run_id).items()]
    list(run_batch(lake.lake, members))
    return members


def correct(lake: Flights) -> None:
    """Rows of two carriers change, in both directions; one changes where no pattern looks."""
    changes = {"UA-103": {"dep_delay": 99.0}, "UA-115": {"dep_delay": 99.0}, "UA-101": {"dep_time": 901}}
    for ident, values in changes.items():
        lake.change(lambda row, ident=ident, values=values: row | values if row["event_id"] == ident else row)
    lake.change(lambda row: None if row["event_id"] == "UA-205" else row)


def break_one(lake: Flights) -> None:
    lake.change(lambda row: row | {"tailnum": "X"} if row["event_id"] == "UA-209" else row)


def runs(lake: Flights, run_id: str) -> dict[str, Run]:
    return {name: lake.run(name, *DAYS, run_id) for name in (*NAMES, "pairs")}


def feed(lake: Flights, name: str) -> list[dict[str, Any]]:
    rows = pa.table(DeltaTable(lake.warehouse.results(name)).load_cdf(starting_version=0)).drop_columns(OWN)
    return sorted(rows.to_pylist(), key=str)


def facts(lake: Flights, name: str, run_id: str) -> dict[str, Any]:
    record = find(lake.lake, name, run_id, "revise")
    assert record is not None
    return {key: value for key, value in vars(record).items() if key not in ("seconds", "staged_version")}


@pytest.mark.long
@pytest.mark.parametrize("in_process", [True, pytest.param(False, marks=pytest.mark.repeats)])
def test_each_is_revised_as_alone(
    lake: Flights, tmp_path: Path, in_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, and by Spark; a row goes to quarantine: once."""
    correct(lake)
    break_one(lake)
    if not in_process:
        monkeypatch.setattr(limits, "REVISED", 0)
    alone = copied(lake, tmp_path / "alone")
    reads: list[str] = []
    of_file, of_spark = TableHere.feed, spark.changes
    monkeypatch.setattr(TableHere, "feed", lambda *args: reads.append("here") or of_file(*args))
    monkeypatch.setattr(spark, "changes", lambda *args, **named: reads.append("spark") or of_spark(*args, **named))
    written = latest_version(lake.lake, lake.warehouse.runs)
    attempts = revise_together(list(runs(lake, "r2").values()))
    assert reads == (["here"] if in_process else ["here", "spark"])
    assert [attempt.error for attempt in attempts] == [None] * 7
    assert latest_version(lake.lake, lake.warehouse.runs) == written + 1
    computed = {attempt.record.pattern for attempt in attempts if attempt.record.windows}
    assert computed == {"c3", "c5", "pairs"}
    assert DeltaTable(lake.warehouse.quarantine("flights")).to_pyarrow_table()["run_id"].to_pylist() == ["r2"]
    quiet = [name for name in NAMES if name not in computed]
    for name, run in runs(alone, "r2").items():
        if in_process or name not in quiet[1:]:
            revise(run)
            assert facts(lake, name, "r2") == facts(alone, name, "r2")
        else:  # by Spark each takes seconds, and all are as the first of them
            mine, first = facts(lake, name, "r2"), facts(lake, quiet[0], "r2")
            assert [mine[key] for key in COUNTS] == [first[key] for key in COUNTS]
        assert feed(lake, name) == feed(alone, name)
    for done in (member.records[-1] for member in batch(lake, "again")):
        assert done.stage == "publish"
        assert done.rows_inserted == done.rows_updated == done.rows_deleted == 0


def test_one_that_fails_stops_no_other(lake: Flights) -> None:
    correct(lake)
    table = lake.warehouse.results("c1")
    shutil.rmtree(table)
    lake.spark.createDataFrame([("many",)], "n string").write.format("delta").save(table)
    attempts = revise_together(list(runs(lake, "r2").values()))
    errors = {attempt.record.pattern: attempt.error for attempt in attempts if attempt.error is not None}
    assert list(errors) == ["c1"]
    assert isinstance(errors["c1"], Exception)
    assert facts(lake, "c3", "r2")["rows_updated"] == 1
    assert all_steps(renamed(runs(lake, "x")["c3"], "again")).rows_updated == 0
