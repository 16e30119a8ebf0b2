"""A day of real flights by the command and by Airflow: one pattern, a batch of one, a batch of a hundred.

Each run is in processes of its own, with Spark's start, as users meet it. Every measured run is the second of its kind:
the first makes the results table.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.flights_backfill import trendlake
from bench.measured import Measured, show
from bench.trades import timed
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import AirflowHome, free_port
from trendlake.jobs.airflow.login import password_of
from trendlake.pipelines.ingest.flights import data_file, read_flights
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import load_profile

DAY, FLIGHTS = "2013-05-08", 958
RANGE = {"from": "2013-05-08T00:00:00Z", "to": "2013-05-10T00:00:00Z"}
INTERVAL = ("--from", RANGE["from"], "--to", RANGE["to"])
ALONE = "alone"
MANY = 100
PATTERN = """\
name: {name}
source: flights
pattern: Flight F+
where: ["[tailnum]", "F.dep_delay > {bound}", "F.dep_delay < NEXT(F).dep_delay"]
return: {{snowballs: COUNT(*)}}
group_by: [carrier]
within: 1 day
"""
SECONDS = 1_800.0


def airflow_batch(folder: Path) -> list[Measured]:
    """Wall-clock seconds. The project is a copy of this one, with patterns of its own, under `folder`."""
    own = os.environ.get("TRENDLAKE_PROJECT")
    try:
        return measured(lake(folder))
    finally:
        os.environ.pop("TRENDLAKE_PROJECT", None)
        os.environ |= {} if own is None else {"TRENDLAKE_PROJECT": own}


def measured(project: Project) -> list[Measured]:
    commands = {name: seconds(project, *words) for name, words in COMMANDS.items()}
    batch_of_one = seconds(project, "run", "--batch", "one", *INTERVAL)
    with served(project) as api:
        alone, one, many = (airflow_run(api, dag) for dag in (ALONE, "batch_one", "batch_many"))
    run = commands["run"]
    readers = {name: value for name, value in commands.items() if name in ("show", "runs", "history", "diff")}
    slowest = max(readers, key=lambda name: readers[name])
    all_of = ", ".join(f"{name} {value:.1f} s" for name, value in readers.items())
    return [
        Measured(
            f"a run of {FLIGHTS} flights in Airflow, less `trendlake run`",
            alone - run,
            "s",
            15.0,
            f"{alone:.1f} s less {run:.1f} s",
            at_most=True,
        ),
        Measured(
            f"Airflow, a batch of {MANY} patterns, of one pattern",
            many / alone,
            "times",
            4.0,
            f"{many:.1f} s of {alone:.1f} s; a batch of one: {one:.1f} s",
            at_most=True,
        ),
        Measured(f"`trendlake run` of {FLIGHTS} flights, new process", run, "s", 12.0, "", at_most=True),
        Measured("`trendlake revise` with nothing to do, new process", commands["revise"], "s", 4.0, "", at_most=True),
        Measured(f"`trendlake {slowest}`, the slowest of its kind", readers[slowest], "s", 1.5, all_of, at_most=True),
        Measured(
            "`trendlake run` of a batch of one, of the pattern alone",
            batch_of_one / run,
            "times",
            1.1,
            f"{batch_of_one:.1f} s of {run:.1f} s",
            at_most=True,
        ),
    ]


COMMANDS = {
    "run": ("run", ALONE, *INTERVAL),
    "revise": ("revise", ALONE),
    "show": ("show", ALONE),
    "runs": ("runs", ALONE),
    "history": ("history", ALONE, "--group", "carrier=UA", "--window", f"{DAY}T00:00"),
    "diff": ("diff", ALONE, "--from", "0", "--to", "1"),
}


def lake(folder: Path) -> Project:
    """A project with a day of flights, the pattern alone, a batch of one, and a batch of many."""
    shutil.rmtree(folder, ignore_errors=True)
    own, project = find_project(), Project(folder / "project", folder / "state")
    project.patterns.mkdir(parents=True)
    shutil.copytree(own.root / "conf" / "profiles", project.root / "conf" / "profiles")
    shutil.copytree(own.contracts, project.contracts)
    (project.patterns / f"{ALONE}.yaml").write_text(PATTERN.format(name=ALONE, bound=0))
    (project.patterns / "in_batch.yaml").write_text(PATTERN.format(name="in_batch", bound=0) + "batch: one\n")
    for number in range(MANY):
        name = f"over_{number:03d}"
        (project.patterns / f"{name}.yaml").write_text(PATTERN.format(name=name, bound=number) + "batch: many\n")
    flights = read_flights(data_file())
    day = flights.filter(pc.equal(pc.strftime(flights["event_time"], "%Y-%m-%d"), DAY))
    if day.num_rows != FLIGHTS:
        raise SystemExit(f"{day.num_rows} flights on {DAY}, not {FLIGHTS}")
    pq.write_table(day, folder / "day.parquet")
    os.environ["TRENDLAKE_PROJECT"] = str(project.root)
    trendlake(project.state, "ingest", "flights", str(folder / "day.parquet"))
    for name in (ALONE, "in_batch"):
        trendlake(project.state, "run", name, *INTERVAL)
    return project


def seconds(project: Project, *arguments: str) -> float:
    return timed(lambda: trendlake(project.state, *arguments))


@contextmanager
def served(project: Project) -> Iterator[AirflowApi]:
    """The project's Airflow; its schedules start nothing."""
    home = AirflowHome(project, load_profile(project, "local"), free_port(), scheduled=False)
    with home.running() as processes:
        home.wait_until_up(processes)
        yield AirflowApi(home.url, password_of(project))


def airflow_run(api: AirflowApi, dag: str) -> float:
    """Seconds from the second run's trigger to its end. Raises SystemExit where it fails."""
    deadline = time.monotonic() + SECONDS
    while dag not in api.dag_ids():
        wait(deadline, f"no DAG {dag}: {api.import_errors()}")
    api.pause(dag, False)
    took = 0.0
    for run_id in ("first", "second"):
        api.trigger(dag, run_id, RANGE)
        while (state := api.run_state(dag, run_id)) not in ("success", "failed"):
            wait(deadline, f"{dag} is not done")
        run = next(run for run in api.runs(dag) if run["dag_run_id"] == run_id)
        if state == "failed":
            raise SystemExit(f"{dag} failed: {api.tasks(dag, run_id)}")
        began, ended = (datetime.fromisoformat(run[key]) for key in ("queued_at", "end_date"))
        took = (ended - began).total_seconds()
    return took


def wait(deadline: float, reason: str) -> None:
    if time.monotonic() > deadline:
        raise SystemExit(reason)
    time.sleep(0.25)


if __name__ == "__main__":
    state = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(airflow_batch(Path(sys.argv[1]) if len(sys.argv) > 1 else state / "bench" / "airflow"), "airflow_batch")
