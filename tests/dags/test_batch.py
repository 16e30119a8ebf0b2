"""A batch in Airflow: one DAG for its patterns, five tasks, and each pattern's failure its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.dags.conftest import AirflowCommands
from tests.dags.test_import_errors import parsed
from tests.support.flights import Flights, flight
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import AirflowHome
from trendlake.jobs.airflow.login import password_of

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

MEMBER = """\
name: {name}
description: Legs that leave later and later.
source: flights
pattern: Flight F+
where: ["[tailnum]", "F.dep_delay < NEXT(F).dep_delay"]
return: {{n: COUNT(*)}}
group_by: [{group}]
within: 1 day
schedule: "@daily"
batch: {batch}
"""
READER = """\
name: {name}
source: results/{name_of_source}
pattern: {name_of_source} R+
return: {{n: COUNT(*)}}
within: 7 days
schedule: "@daily"
"""
STEPS = ("check_source", "compute", "check_results", "publish")
DAY = {"from": "2013-07-03T00:00:00Z", "to": "2013-07-05T00:00:00Z"}
DONE = {"success", "failed"}
SECONDS = 300.0


def write(folder: Path, name: str, batch: str, group: str = "carrier", more: str = "") -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(MEMBER.format(name=name, group=group, batch=batch) + more)
    return file


def wait(for_it: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not for_it():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def records(lake: Flights, name: str) -> list[tuple[str, str, str]]:
    frame = lake.spark.read.format("delta").load(lake.warehouse.runs).where(f"pattern = '{name}'")
    return sorted(tuple(row) for row in frame.select("run_id", "stage", "status").collect())


@pytest.fixture
def lake(spark: SparkSession, home: AirflowHome) -> Flights:
    """Two days of one aircraft, each leg later than the one before."""
    lake = Flights(spark, home.project, home.profile)
    legs = ["2013-07-03T12:00", "2013-07-03T15:00", "2013-07-04T11:00", "2013-07-04T14:00", "2013-07-04T17:00"]
    lake.deliver([flight(number, at) for number, at in enumerate(legs, start=1)])
    return lake


@pytest.mark.long
def test_a_batch_is_one_dag(home: AirflowHome, airflow_commands: AirflowCommands, patterns: Path) -> None:
    """Its patterns have no DAG of their own; one with a mistake, or another schedule, has an import error of its own
    and leaves the batch alone. Sources that no pattern reads have no DAG."""
    write(patterns, "legs", "legs")
    write(patterns, "legs_by_airport", "legs", "origin")
    write(patterns, "legs_misspelt", "legs", more="wihtin: 1 day\n")
    odd = write(patterns, "legs_hourly", "legs")
    odd.write_text(odd.read_text().replace("@daily", "@hourly"))
    errors, dags = parsed(airflow_commands)
    assert set(errors) == {"legs_misspelt.py", "legs_hourly.py"}
    assert "wihtin" in errors["legs_misspelt.py"]
    assert f"{odd}:9" in errors["legs_hourly.py"]
    assert "schedule: @hourly, but 'legs' of the same batch 'legs' has @daily" in errors["legs_hourly.py"]
    assert {"batch_legs", "flights_revise", "delay_snowball"} <= dags
    assert not {"legs", "legs_by_airport", "legs_hourly", "batch_legs_revise"} & dags
    assert "ingest_flights" in dags  # Airflow may still list those of files that another test has removed
    sources = home.home / "bundles" / "patterns" / "dags" / "sources-of-the-project.py"
    assert "ingest_dags(['flights'])" in sources.read_text()
    (command,) = airflow_commands(("tasks", "render", "batch_legs", "publish", "2013-01-05"))
    assert "'run-steps', '--batch', 'legs', '--from', '2013-01-04T00:00:00+00:00'" in command
    assert "'--run-id', 'legs." in command


@pytest.mark.chaos
def test_a_member_that_fails(lake: Flights, home: AirflowHome, patterns: Path) -> None:
    """`publish` is red after the others are published, and readers of the others are told. Its next attempt does the
    failed pattern only."""
    good = write(patterns, "rise", "rises")
    upstream = write(home.project.patterns, "rise", "rises")  # where a reader's source is looked up
    bad = write(patterns, "rise_often", "rises", "origin")
    table = lake.warehouse.results("rise_often")
    lake.spark.createDataFrame([("many",)], "n string").write.format("delta").save(table)
    (patterns / "rises_again.yaml").write_text(READER.format(name="rises_again", name_of_source="rise"))
    with home.running() as processes:
        home.wait_until_up(processes)
        api = AirflowApi(home.url, password_of(home.project))
        wait(lambda: {"batch_rises", "results_rise_revise"} <= api.dag_ids())
        api.pause("batch_rises", False)
        api.trigger("batch_rises", "one", DAY)
        wait(lambda: api.run_state("batch_rises", "one") in DONE)
        tasks = {task["task_id"]: task for task in api.tasks("batch_rises", "one")}
        log = api.log("batch_rises", "one", "publish", 1)
        states = {name: task["state"] for name, task in tasks.items()}
        assert states == {**dict.fromkeys(STEPS[:3], "success"), "publish": "failed", "report": "upstream_failed"}, log
        assert tasks["publish"]["try_number"] == 1  # a person must change something first
        assert any("1 of 2 patterns failed: rise_often (check_source): [RESULTS_TYPE]" in line for line in log)
        assert [stage for _, stage, _ in records(lake, "rise")] == sorted(STEPS)
        assert records(lake, "rise_often") == [("rises.one", "check_source", "failed")]
        assert api.waiting("results_rise_revise") == 1  # an event from which no run is started here

        shutil.rmtree(table)
        api.clear("batch_rises", "one", "publish")
        wait(lambda: api.run_state("batch_rises", "one") in DONE)
        assert api.run_state("batch_rises", "one") == "success", api.log("batch_rises", "one", "publish", 2)
    assert len(records(lake, "rise")) == len(STEPS)  # not once more
    again = [stage for _, stage, status in records(lake, "rise_often") if status == "succeeded"]
    assert sorted(again) == sorted(STEPS)
    assert {row["n"] for row in lake.spark.read.format("delta").load(lake.warehouse.results("rise_often")).collect()}
    upstream.unlink()
    for file in (good, bad):
        assert (home.project.state / "reports" / file.stem / "runs").is_dir()


@pytest.mark.chaos
def test_a_pattern_moves_into_a_batch(lake: Flights, home: AirflowHome, patterns: Path) -> None:
    """Its last interval is run by one of the two DAGs, whichever comes first; and the same on its way out."""
    mover = write(patterns, "moves", "moved")
    alone = mover.read_text().replace("batch: moved\n", "")
    mover.write_text(alone)
    scheduled = replace(home, scheduled=True)
    with scheduled.running() as processes:
        scheduled.wait_until_up(processes)
        api = AirflowApi(home.url, password_of(home.project))

        def run_once(dag: str) -> str:
            """The id of the run that the schedule starts, when it has succeeded."""
            wait(lambda: dag in api.dag_ids())
            api.pause(dag, False)
            wait(lambda: bool(api.runs(dag)) and api.runs(dag)[0]["state"] in DONE)
            (run,) = api.runs(dag)
            assert run["state"] == "success", api.tasks(dag, run["dag_run_id"])
            return str(run["dag_run_id"])

        first = run_once("moves")
        assert {run_id for run_id, _, _ in records(lake, "moves")} == {first}
        write(patterns, "stays", "moved")
        write(patterns, "moves", "moved")
        assert run_once("batch_moved") == first
        # Airflow takes a DAG for gone if its file gives none 50 seconds after it was seen last
        write(patterns, "moves", "moved", more="tags: [moved]\n")
        wait(lambda: "moves" not in api.dag_ids())
        assert len(records(lake, "moves")) == len(STEPS)
        assert {run_id for run_id, _, _ in records(lake, "stays")} == {f"moved.{first}"}
        (patterns / "stays.yaml").write_text(alone.replace("moves", "stays"))
        assert run_once("stays") == first
        assert len(records(lake, "stays")) == len(STEPS)
        skipped = f"skipped: run moved.{first} has published this interval"
        assert any(skipped in line for line in api.log("stays", first, "publish", 1))
