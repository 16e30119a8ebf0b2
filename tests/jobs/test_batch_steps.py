"""`trendlake run-steps` of a batch, as Airflow's task calls it: who failed, who has new results, what it skips."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.jobs.test_run_several import DAY, project
from tests.support.own_source import output_of
from trendlake.jobs.actions import batch_steps, revise, steps
from trendlake.jobs.airflow.progress import Failure, members_done, progress_file, steps_done

pytestmark = [pytest.mark.spark, pytest.mark.long]
__all__ = ["project"]

STEPS = ("check_source", "compute", "check_results", "publish", "report")
SCHEDULED = "scheduled__2026-01-06T00:00:00+00:00"


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is task and application in one, and does not end with the file's lock."""
    for module in (batch_steps, steps, revise):
        monkeypatch.setattr(module, "end_with_task", lambda _: None)


def run(*names: str, run_id: str, batch: str | None = "b", code: int = 0) -> tuple[dict[str, str], Any, str]:
    """The lines about the steps, who failed and who has new results, and what was printed."""
    batched = ["--batch", batch] if batch else []
    with progress_file() as progress:
        options = [*DAY, *batched, "--run-id", run_id, "--steps", ",".join(STEPS), "--progress", progress]
        output = output_of("run-steps", *names, *options, code=code)
        return steps_done(progress), members_done(progress), output


def stages(name: str) -> list[tuple[str, str, str]]:
    output = output_of("runs", name, "--limit", "50", "--json")
    records = json.loads(output[output.index("{") : output.rindex("}") + 1])["records"]
    return sorted((record["run_id"], record["stage"], record["status"]) for record in records)


def test_a_member_that_fails_is_named(project: Path) -> None:
    """Each step is done for the others, who are published and have pages; a file that does not compile is left out."""
    table = project / ".trendlake" / "warehouse" / "results" / "rising"
    write_deltalake(table, pa.table({"trends": ["many"]}))
    (project / "conf" / "patterns" / "wrong.yaml").write_text("name: wrong\nsource: trades\nbatch: b\n")
    done, (failures, changed), output = run("falling", "rising", "wrong", run_id="b.one", code=1)
    assert list(done) == list(STEPS)
    assert changed == ["falling"]
    assert [(item.pattern, item.step, item.mistake) for item in failures] == [("rising", "check_source", True)]
    assert failures[0].reason.startswith("[RESULTS_TYPE]")
    assert "left out:" in output
    assert done["compute"] == "1 of 2 patterns; failed: rising"
    assert {stage for _, stage, _ in stages("falling")} == set(STEPS[:4])
    assert (project / ".trendlake" / "reports" / "falling" / "runs").is_dir()


def test_a_step_that_no_member_did_is_not_done(project: Path) -> None:
    shutil.rmtree(project / ".trendlake" / "warehouse" / "sources" / "trades")
    done, (failures, changed), output = run("falling", "rising", run_id="b.one", code=1)
    assert (done, changed, len(failures)) == ({}, [], 2)
    assert "[SOURCE_MISSING]" in output


def test_no_interval_is_run_twice(project: Path) -> None:
    """A pattern that comes into a batch, or leaves it, may be given an interval that its DAG before has published."""
    run("falling", batch=None, run_id=SCHEDULED)
    before = stages("falling")
    done, (failures, changed), output = run("falling", "rising", run_id=f"b.{SCHEDULED}")
    assert (failures, changed) == ([], ["rising"])
    assert f"falling: skipped: run {SCHEDULED} has published this interval" in output
    assert stages("falling") == before
    # cleared: it is the batch's own run; readers are told again of the version that it wrote
    _, (_, changed), _ = run("falling", "rising", run_id=f"b.{SCHEDULED}")
    assert changed == ["rising"]
    assert len(stages("rising")) == 8
    done, _, _ = run("rising", batch=None, run_id=SCHEDULED)
    assert set(done.values()) == {f"skipped: run b.{SCHEDULED} has published this interval"}
    assert len(stages("rising")) == 8


def test_an_interval_that_is_missing_is_named(project: Path) -> None:
    days = ["--from", "2026-01-03", "--to", "2026-01-04"]
    output_of(
        "run-steps", "falling", *days, "--run-id", "scheduled__2026-01-04T00:00:00+00:00", "--steps", ",".join(STEPS)
    )
    _, _, output = run("falling", run_id=f"b.{SCHEDULED}")
    assert "trendlake run falling --from 2026-01-04 --to 2026-01-05\n" in output


def test_a_revision_of_several(project: Path) -> None:
    output_of("run", "falling", *DAY)
    (project / "more.csv").write_text("id,at,company,price\nA9,2026-01-05T09:01:00Z,A,1\n")
    output_of("ingest", "trades", "more.csv")
    with progress_file() as progress:
        output_of("revise", "falling", "rising", "--if-published", "--progress", progress)
        assert steps_done(progress) == {"revise-all": "2 of 2 patterns"}
        assert members_done(progress) == ([], ["falling"])
    with progress_file() as progress:
        output_of("revise", "falling", "rising", "--progress", progress, code=1)
        failures, changed = members_done(progress)
        assert ([item.pattern for item in failures], changed) == (["rising"], [])
        assert isinstance(failures[0], Failure)
        assert failures[0].mistake
        assert steps_done(progress) == {"revise-all": "1 of 2 patterns"}
