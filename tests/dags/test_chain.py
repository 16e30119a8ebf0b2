"""Three patterns, each upon the results of the one before, in a live Airflow: what is published or revised above is
revised below by itself. And a task that somebody has done again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.dags.test_run import DONE, STEPS, wait
from tests.pipelines.revision import test_upstream as upstream
from tests.pipelines.revision.test_upstream import DAYS, PAIRS, RISING, correct, leg, published
from tests.support.flights import Flights, all_steps, table
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import ROOT, AirflowHome, free_port
from trendlake.jobs.airflow.login import password_of
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.spark.jars import jars_folder

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

NAMES = upstream.NAMES[:3]
FIRST, _, LAST = NAMES
REVISED = ["flights_revise", *(f"results_{name}_revise" for name in NAMES[:-1])]
AGAIN = {"compute", "check_results", "publish", "report"}
AGAIN = {"compute", "check_results", "publish", "report"}
SINCE, HALF, UNTIL = "2013-07-01T00:00:00Z", "2013-07-05T00:00:00Z", "2013-07-12T00:00:00Z"


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Iterator[AirflowHome]:
    """An Airflow of a project with these three patterns alone; events start what is scheduled on them."""
    own = find_project(ROOT)
    root = tmp_path / "project"
    shutil.copytree(own.contracts, root / "data_contracts")
    shutil.copytree(own.root / "conf" / "profiles", root / "conf" / "profiles")
    (root / "conf" / "patterns").mkdir()
    for name, text in zip(NAMES, (DAYS, RISING, PAIRS), strict=True):
        (root / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    project = Project(root, tmp_path / "state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLAKE_JARS", str(jars_folder(own)))
        yield AirflowHome(project, load_profile(project, "local"), free_port())


@pytest.fixture
def lake(spark: SparkSession, home: AirflowHome) -> Flights:
    """Seven days of two airlines, three legs a day. Of the first pattern four days are published, of the others, which
    read what there is of it, all."""
    lake = Flights(spark, home.project, home.profile)
    lake.deliver(leg(day, number, carrier) for day in range(1, 8) for carrier in ("UA", "AA") for number in range(3))
    all_steps(lake.run(FIRST, SINCE, HALF, "first"))
    for name in NAMES[1:]:
        all_steps(lake.run(name, SINCE, UNTIL, "first"))
    return lake


def test_a_chain_and_a_task_done_again(lake: Flights, home: AirflowHome, tmp_path: Path) -> None:
    before = {name: published(lake, name) for name in NAMES}
    late = tmp_path / "late.csv"
    pyarrow.csv.write_csv(table([leg(3, 4, "UA", 900.0)]), late)
    with home.running() as processes:
        home.wait_until_up(processes)
        api = AirflowApi(home.url, password_of(home.project))
        wait(lambda: {*NAMES, *REVISED, "ingest_flights"} <= api.dag_ids())

        # one run of the first: the others follow by its asset
        api.pause(FIRST, False)
        api.trigger(FIRST, "second", {"from": HALF, "to": UNTIL})
        wait(lambda: api.run_state(FIRST, "second") in DONE)
        settle(api)
        assert api.run_state(FIRST, "second") == "success", api.tasks(FIRST, "second")
        assert succeeded(api) == dict(zip(REVISED, (0, 1, 1), strict=True))
        second = {name: published(lake, name) for name in NAMES}
        assert second == computed_anew(lake, tmp_path / "second")
        assert all(second[name] != before[name] for name in NAMES)

        # its tasks from compute on, done again: the rows are there once; the record says that it was done twice
        version = newest(lake)
        api.clear(FIRST, "second", "compute")
        wait(lambda: all(task["try_number"] == 2 for task in api.tasks(FIRST, "second") if task["task_id"] in AGAIN))
        wait(lambda: api.run_state(FIRST, "second") in DONE)
        settle(api)
        tasks = {task["task_id"]: (task["state"], task["try_number"]) for task in api.tasks(FIRST, "second")}
        assert tasks == {step: ("success", 2 if step in AGAIN else 1) for step in (*STEPS, "report")}
        assert {name: published(lake, name) for name in NAMES} == second
        assert changes_since(lake, version).isEmpty()
        records = lake.spark.read.format("delta").load(lake.warehouse.runs)
        mine = records.where(f"pattern = '{FIRST}' AND run_id = 'second'").orderBy("finished_at").collect()
        assert [row["stage"] for row in mine] == [*STEPS, *(step for step in STEPS if step in AGAIN)]
        changed = [
            row["rows_inserted"] + row["rows_updated"] + row["rows_deleted"]
            for row in mine
            if row["stage"] == "publish"
        ]
        assert changed == [len(second[FIRST]) - len(before[FIRST]), 0]

        # a late flight, one that is corrected and one that never was: revised from the first to the third
        correct(lake)
        runs_before = succeeded(api)
        api.trigger("ingest_flights", "late", {"files": [str(late)]})
        wait(lambda: api.run_state("ingest_flights", "late") in DONE)
        settle(api)
        assert api.run_state("ingest_flights", "late") == "success", api.tasks("ingest_flights", "late")
        assert {name: count - runs_before[name] for name, count in succeeded(api).items()} == dict.fromkeys(REVISED, 1)
        third = {name: published(lake, name) for name in NAMES}
        assert third == computed_anew(lake, tmp_path / "third")
        assert all(third[name] != second[name] for name in NAMES)


def settle(api: AirflowApi) -> None:
    """Waits until nothing runs in Airflow and no event waits to start a run."""
    wait(lambda: settled(api), pause=2.0)


def settled(api: AirflowApi) -> bool:
    """An event comes before the end of the run that sends it, and waits until its own run is there: runs are looked at
    before the events and after."""
    states = runs(api)
    return set(states.values()) <= DONE and not any(api.waiting(dag) for dag in REVISED) and runs(api) == states


def runs(api: AirflowApi) -> dict[str, str]:
    dags = (*NAMES, *REVISED, "ingest_flights")
    return {f"{dag} {run['dag_run_id']}": run["state"] for dag in dags for run in api.runs(dag)}


def succeeded(api: AirflowApi) -> dict[str, int]:
    """How many revisions Airflow has run by itself. None of them has failed."""
    states = {dag: [run["state"] for run in api.runs(dag)] for dag in REVISED}
    assert {state for states_of_dag in states.values() for state in states_of_dag} <= {"success"}, states
    return {dag: len(states_of_dag) for dag, states_of_dag in states.items()}


def newest(lake: Flights) -> int:
    """The version of the first pattern's results."""
    from delta.tables import DeltaTable

    return int(DeltaTable.forPath(lake.spark, lake.warehouse.results(FIRST)).history(1).collect()[0]["version"])


def changes_since(lake: Flights, version: int) -> DataFrame:
    """Rows of those results that later versions have changed: what their change feed tells who reads them."""
    reader = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
    return reader.load(lake.warehouse.results(FIRST)).where(f"_commit_version > {version}")


def computed_anew(lake: Flights, folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """What a warehouse with the same source and nothing else comes to."""
    shutil.copytree(Path(lake.warehouse.root) / "sources", folder / "sources")
    anew = replace(lake, profile=lake.profile.model_copy(update={"warehouse": str(folder)}))
    for name in NAMES:
        all_steps(whole(anew, name))
    return {name: published(anew, name) for name in NAMES}


def whole(lake: Flights, name: str) -> Run:
    start, end = micros_of(SINCE, "--from"), micros_of(UNTIL, "--to")
    return prepare(
        Lake.of(lake.spark, Warehouse.of(lake.profile, lake.project)),
        lake.project,
        lake.profile,
        name,
        "anew",
        start,
        end,
    )
