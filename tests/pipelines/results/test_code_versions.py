"""A fix of the engine reaches rows that are published: `revise` names their windows, `backfill --stale` recomputes them
and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_unique_rows import row
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import Signals, signals
from trendlake.cep_core import run_plan
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.jobs.actions import backfill
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.results.notes import Work
from trendlake.pipelines.revision import here as local
from trendlake.pipelines.runs import code_versions
from trendlake.pipelines.runs.code_versions import Correction
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps import publish as publishing
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAYS = (0.5, 2.5)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Signals:
    """Two groups on the second day; all versions of the code are 1, and none is known to be wrong."""
    monkeypatch.setattr(code_versions, "CORRECTIONS", ())
    monkeypatch.setattr(Plan, "engine_version", 1)
    for name in ("CONTRACT_VERSION", "LOCAL_VERSION", "REVISION_VERSION"):
        monkeypatch.setattr(code_versions, name, 1)
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"])
    lake.insert([row(n, 24 + n // 2, place="ns"[n % 2], price=n) for n in range(10)])
    return lake


def correct(monkeypatch: pytest.MonkeyPatch, component: str) -> None:
    """From now on version 2 of the component is right, version 1 is known to be wrong."""
    monkeypatch.setattr(code_versions, "CORRECTIONS", (Correction(component, 2, "sums were wrong"),))
    if component == "trends":
        monkeypatch.setattr(Plan, "engine_version", 2)
    else:
        monkeypatch.setattr(code_versions, f"{component.upper()}_VERSION", 2)


def named(record: Record) -> list[str]:
    return [item.observed for item in record.checks if item.name == "stale_versions"]


def stale(lake: Signals, *, dry_run: bool = False) -> list[dict[str, Any]]:
    """What `trendlake backfill --stale` says, and does."""
    place = Place(lake.project, Profile(master="local[2]"))
    return list(backfill.run_stale(place, lake.lake, [lake.pattern], None, False, dry_run))


def wrong_plan(plan: Any, events: Any, windows: range, *more: Any) -> Any:
    """The kernels, wrong: what an older version may have given."""
    rows = run_plan(plan, events, windows, *more)
    at = rows.schema.get_field_index("most")
    return rows.set_column(at, rows.schema.field(at), pc.subtract(rows["most"], 1))


@pytest.mark.long
def test_rows_of_a_wrong_version_are_named_and_recomputed(lake: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those windows and no others; unchanged rows of theirs are not written again."""
    run = lake.run(*DAYS, "first")
    all_steps(run)
    lake.insert([row(20, 30, price=9)])
    with monkeypatch.context() as wrong:
        wrong.setattr(local, "run_plan", wrong_plan)
        revised = revise(renamed(run, "revised wrongly"))
    assert revised.staged_version is None
    assert revised.windows
    with pytest.raises(AssertionError):
        agree(lake, run)
    assert named(revise(renamed(run, "before the fix"))) == []
    correct(monkeypatch, "local")
    after = revise(renamed(run, "after the fix"))
    assert [item.observed for item in after.checks if item.name == "revision"] == ["nothing new since version 2"]
    assert named(after) == [
        f"{revised.windows} windows computed by versions known to be wrong (before local 2: sums were wrong); "
        f"recomputed by `trendlake backfill {lake.pattern} --stale`"
    ]
    documents = stale(lake, dry_run=True)
    assert [document["windows"] for document in documents] == [revised.windows]
    assert named(revise(renamed(run, "still"))) == named(after)
    *_, total = stale(lake)
    assert total["changed"]
    agree(lake, run)
    assert named(revise(renamed(run, "all right"))) == []
    assert [document["windows"] for document in stale(lake)] == [0]
    computed = lake.spark.read.format("delta").load(lake.warehouse.runs).where("stage = 'compute'")
    whole, *chunks = [item["windows"] for item in computed.orderBy("started_at").collect()]
    assert (whole, sum(chunks)) == (len(run.windows), revised.windows)
    replayed(lake, run)


@pytest.mark.long
@pytest.mark.parametrize("most", [0, limits.REVISED])
def test_a_revision_claims_its_version_only_for_what_it_computed(
    lake: Signals, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """By Spark one group of the touched windows: they stay stale. In this process all groups: the others stay stale."""
    monkeypatch.setattr(limits, "REVISED", most)
    run = lake.run(*DAYS, "first")
    all_steps(run)
    every = len(run.windows)
    correct(monkeypatch, "trends")
    lake.insert([row(20, 25, place="n", price=9)])
    first = revise(renamed(run, "one group"))
    assert (first.staged_version is None) == (most > 0)
    assert named(first)[0].startswith(f"{every} windows computed by versions known to be wrong (before trends 2: ")
    assert first.windows == 2
    left = every if most == 0 else every - 2
    assert named(revise(renamed(run, "again")))[0].startswith(f"{left} windows ")
    plain = lake.run(*DAYS, "run again")
    all_steps(plain)
    assert named(revise(renamed(run, "at last"))) == []


@pytest.mark.long
def test_a_warehouse_whose_commits_record_no_versions(lake: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Trendlake 0.1 wrote it: its rows count as unknown, and one command says what to recompute."""
    run = lake.run(*DAYS, "first")
    with monkeypatch.context() as before:
        before.setattr(publishing, "work_of_run", lambda plan, windows, partly: Work())
        all_steps(run)
    sentence = (
        f"{len(run.windows)} windows computed by versions that were not recorded (Trendlake 0.1); recomputed by "
        f"`trendlake backfill {lake.pattern} --stale`"
    )
    assert named(revise(renamed(run, "opened"))) == [sentence]
    assert [(document["windows"], len(document["stretches"])) for document in stale(lake, dry_run=True)] == [
        (len(run.windows), 1)
    ]
    *_, total = stale(lake)
    assert not total["changed"]
    assert named(revise(renamed(run, "recomputed"))) == []
    agree(lake, run)


def test_steps_of_two_versions_do_not_meet(lake: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows computed before an upgrade are not published after it."""
    run: Run = lake.run(*DAYS, "first")
    for step in (check_source, compute, check_results):
        step(run)
    correct(monkeypatch, "trends")
    with pytest.raises(
        StepOrderError, match="the version of Trendlake's code was contract 1, engine 1 and is contract 1, engine 2"
    ):
        publish(run)
