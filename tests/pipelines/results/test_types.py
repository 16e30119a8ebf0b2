"""A measure whose type has changed is refused before anything is computed; `trendlake reset` is a way out."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.pipelines.revision.test_unique_rows import row
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import Signals, signals
from trendlake.jobs.actions import reset as resetting
from trendlake.jobs.main import app
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import ResultsTypeError, StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake, exists, latest_version
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.results import reset
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.runs.record import newest_records
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps import check_source, publish, revise

pytestmark = pytest.mark.spark

COUNTED, AVERAGED = (
    PATTERNS["plain"].replace("total: SUM(a.price)", f"m: {text}") for text in ("COUNT(a)", "AVG(a.price)")
)
DAYS = (0.5, 2.5)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Signals:
    """Rows of `m: COUNT(a)`, published; then the pattern says `m: AVG(a.price)`."""
    lake = signals(spark, tmp_path / "project", COUNTED)
    lake.insert([row(n, 20 + n, price=2**n % 9) for n in range(8)])
    all_steps(lake.run(*DAYS, "counted"))
    lake.edit(AVERAGED)
    return lake


def published(lake: Signals, run: Run) -> tuple[int, list[Any]]:
    path = lake.warehouse.results(run.name)
    return latest_version(lake.lake, path), sorted(map(str, lake.spark.read.format("delta").load(path).collect()))


def test_a_run_is_refused(lake: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its first step, and at the last where the first had let it pass; nothing is published, nothing cast."""
    run = lake.run(*DAYS, "averaged")
    before = published(lake, run)
    with pytest.raises(ResultsTypeError) as refused:
        all_steps(run)
    assert "'m' is decimal(38,0), and the pattern gives double" in str(refused.value)
    assert "another name" in str(refused.value)
    assert f"trendlake reset {lake.pattern}" in str(refused.value)
    monkeypatch.setattr(check_source, "refuse_other_types", lambda run: None)
    with pytest.raises(ResultsTypeError, match="the pattern gives double"):
        all_steps(renamed(run, "averaged again"))
    assert published(lake, run) == before


@pytest.mark.long
@pytest.mark.parametrize("most", [0, limits.REVISED])
def test_a_revision_is_refused(lake: Signals, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows that an earlier version has cast, on both paths."""
    monkeypatch.setattr(limits, "REVISED", most)
    run = lake.run(*DAYS, "averaged")
    with monkeypatch.context() as as_before:
        for step in (check_source, publish):
            as_before.setattr(step, "refuse_other_types", lambda run: None)
        all_steps(run)
    before = published(lake, run)
    lake.insert([row(20, 30)])
    with pytest.raises(ResultsTypeError, match="'m' is decimal"):
        revise.revise(renamed(run, "revision"))
    assert published(lake, run) == before


@pytest.mark.long
def test_reset(lake: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what is lost and asks; then the next run starts anew, and what earlier records say counts no more."""
    lake.edit(COUNTED)
    quiet = lake.run(*DAYS, "quiet")
    lake.sql("UPDATE signals SET remark = 'looked at'")
    assert (revise.revise(quiet).note or {})["quiet"]  # a record at version 1 of the table that is about to go
    lake.edit(AVERAGED)
    run = lake.run(1.0, 1.5, "after")
    versions, rows = published(lake, run)
    source = lake.version()
    monkeypatch.setattr(resetting, "find_place", lambda *_, **__: Place(lake.project, Profile(master="local[2]")))
    monkeypatch.setattr(resetting, "session", lambda place, *_, **__: nullcontext(Lake.of(lake.spark, place.warehouse)))
    answer = CliRunner().invoke(app, ["reset", lake.pattern], input="n\n")
    assert answer.exit_code == 1
    assert f"results/watched: {len(rows)} rows and {versions + 1} versions are lost" in answer.output
    assert exists(lake.lake, lake.warehouse.results("watched"))
    done = CliRunner().invoke(app, ["reset", lake.pattern, "--yes"])
    assert done.exit_code == 0, done.output
    assert not exists(lake.lake, lake.warehouse.results("watched"))
    assert reset.published(lake.lake, lake.warehouse.results("watched")) is None
    assert lake.version() == source
    records = newest_records(lake.lake, "watched", 100)
    assert records is not None
    assert len(records) == 5
    with pytest.raises(StepOrderError, match="has published nothing"):
        revise.revise(renamed(run, "too early"))
    all_steps(run)
    ledger = read_ledger(lake.lake, "watched", run.plan, "signals")
    assert [(item.first, item.last) for item in ledger.segments] == [(run.windows[0], run.windows[-1])]
    lake.insert([row(20, 30)])
    revise.revise(renamed(run, "revised"))
    agree(lake, run)
    replayed(lake, run)
    again = CliRunner().invoke(app, ["reset", lake.pattern, "--yes"])
    assert again.exit_code == 0
    assert "nothing is published" in CliRunner().invoke(app, ["reset", lake.pattern, "--yes"]).output
