"""A step killed in the middle, really (SIGKILL, the JVM too), leaves what was published, and can be done again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines.runs import find
from pipelines.session import jars_folder
from pipelines.steps.check_results import check_results
from pipelines.steps.check_source import check_source
from pipelines.steps.compute import compute
from pipelines.steps.publish import publish
from pipelines.steps.run import Run
from tests.conftest import ROOT
from tests.pipeline.flights import Lake, all_steps, answers, flight

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WEEK = ("2013-03-01", "2013-03-08")
PATIENCE = 240.0


def days(first: int, last: int, legs: int) -> list[dict[str, Any]]:
    """Each day one aircraft with `legs` growing delays: 2^legs - 1 trends."""
    return [
        flight(100 * day + leg, f"2013-03-{day:02d}T{8 + leg:02d}:00:00", tailnum="N10UA", dep_delay=5.0 + leg)
        for day in range(first, last + 1)
        for leg in range(legs)
    ]


def killed(step: str, run: Run, pattern: str, watched: Path) -> None:
    """Start a step as the command does, and kill it with all its children as soon as it writes data to `watched`."""
    before = set(watched.rglob("*.parquet"))
    command = [sys.executable, "-m", "jobs.cli", step, pattern, "--from", WEEK[0], "--to", WEEK[1]]
    command += ["--run-id", run.run_id, "--project-dir", str(ROOT)]
    jars = str(jars_folder(run.project) if "TRENDLAKE_JARS" in os.environ else ROOT / ".trendlake" / "jars")
    env = os.environ | {"TRENDLAKE_STATE": str(run.project.state), "TRENDLAKE_JARS": jars}
    log = run.project.state / f"{step}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        try:
            while not set(watched.rglob("*.parquet")) - before:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.002)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == -signal.SIGKILL


def counts(lake: Lake, run: Run) -> list[tuple[int, int]]:
    """Day and number of trends of every published row."""
    return [(row["window_start"].day, int(row["snowballs"])) for row in answers(lake.results(run), run)]


def test_killed_steps_lose_and_double_nothing(lake: Lake) -> None:
    """compute and publish killed while they write: the old rows stand; done again, the new ones do, each once."""
    lake.deliver(days(1, 5, legs=3), feed="first")
    pattern = lake.pattern()
    run = lake.run(pattern, *WEEK, "before")
    all_steps(run)
    old = [(day, 7) for day in range(1, 6)]
    assert counts(lake, run) == old

    late = [{**row, "event_id": f"late-{row['event_id']}", "tailnum": "N11UA"} for row in days(4, 7, legs=4)]
    lake.deliver(late, feed="second")
    run = lake.run(pattern, *WEEK, "killed")
    check_source(run)

    killed("compute", run, pattern, Path(lake.warehouse.staging(run.name, run.run_id)))
    assert find(lake.spark, lake.warehouse, run.name, run.run_id, "compute") is None
    assert counts(lake, run) == old

    compute(run)
    check_results(run)
    killed("publish", run, pattern, Path(lake.warehouse.results(run.name)))
    new = [(1, 7), (2, 7), (3, 7), (4, 22), (5, 22), (6, 15), (7, 15)]
    assert counts(lake, run) in (old, new)

    publish(run)
    assert counts(lake, run) == new
    again = publish(run)
    assert (again.rows_inserted, again.rows_updated, again.rows_deleted) == (0, 0, 0)
