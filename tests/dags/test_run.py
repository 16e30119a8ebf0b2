"""A pattern from Airflow's scheduler to its results: real processes, real Spark, real Delta."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from openlineage.client.event_v2 import RunState
from pyspark.sql import Row, SparkSession

from tests.conftest import CHAOS
from tests.dags.conftest import AirflowCommand
from tests.dags.test_login import no_way_in_without_the_password
from tests.support.flights import Flights, flight
from tests.support.lineage_events import events, read
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import ROOT, AirflowHome
from trendlake.jobs.airflow.login import password_of
from trendlake.pipelines.runs.stage import STAGES

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

PATTERN = "delay_snowball"
KILLED = "three_legs_later"
"""The pattern, from examples/flights, whose task is killed."""
ABSENCE = "late_and_gone"
OTHERS = (KILLED, ABSENCE)
"""Patterns of the other kinds."""
STEPS = [stage for stage in STAGES if stage not in ("ingest", "revise")]
LATE = "never_in_time"
"""A pattern whose runs have a second, and whose one run has an interval that no run can have."""
DONE = {"success", "failed"}
SECONDS = 1800.0


def utc(day: int, hour: int = 0) -> datetime:
    return datetime(2013, 7, day, hour, tzinfo=UTC)


@pytest.fixture
def lake(spark: SparkSession, home: AirflowHome) -> Flights:
    """Two days of one aircraft: two legs, then three, each later than the one before. Days after, another with three
    that are later still, and one that is late and gone."""
    lake = Flights(spark, home.project, home.profile)
    legs = ["2013-07-03T12:00", "2013-07-03T15:00", "2013-07-04T11:00", "2013-07-04T14:00", "2013-07-04T17:00"]
    later = [
        flight(10 * n, f"2013-07-10T{9 + n}:00", tailnum=tail, dep_delay=delay)
        for n, (tail, delay) in enumerate(
            [("N20UA", 20.0), ("N20UA", 30.0), ("N20UA", 40.0), ("N30UA", 200.0)], start=1
        )
    ]
    last = flight(50, "2013-07-13T12:00", tailnum="N40UA", dep_delay=0.0)
    lake.deliver([*(flight(number, at) for number, at in enumerate(legs, start=1)), *later, last])
    return lake


@pytest.fixture
def alerts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a web hook is sent; Airflow knows it by the connection `trendlake_alerts`."""
    lines: list[str] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            lines.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AIRFLOW_CONN_TRENDLAKE_ALERTS", f"http://127.0.0.1:{server.server_port}/alerts")
        yield lines
        server.shutdown()
        thread.join()


@pytest.mark.long
@pytest.mark.more_in_chaos
def test_a_backfill_runs_each_day_once(lake: Flights, home: AirflowHome, airflow: AirflowCommand) -> None:
    """Local days from 04:00, in summer from 08:00 UTC: a run each, which computes the window that ends with its own.
    Two are published side by side."""
    days = 2 if CHAOS else 1
    last = f"2013-07-0{2 + days}T12:00:00"
    with home.running() as processes:
        home.wait_until_up(processes)
        no_way_in_without_the_password(home)
        api = AirflowApi(home.url, password_of(home.project))
        wait(lambda: PATTERN in api.dag_ids())
        api.pause(PATTERN, False)
        airflow("backfill", "create", "--dag-id", PATTERN, "--from-date", "2013-07-03", "--to-date", last)
        wait(lambda: len(api.runs(PATTERN)) == days and all(run["state"] in DONE for run in api.runs(PATTERN)))
        runs = api.runs(PATTERN)
        logs = {run["dag_run_id"]: api.tasks(PATTERN, run["dag_run_id"]) for run in runs}
        assert {run["state"] for run in runs} == {"success"}, logs
        done_again = runs[0]["dag_run_id"]
        one_application_for_all_steps(api, done_again)

    warehouse = lake.warehouse
    results = lake.spark.read.format("delta").load(warehouse.results(PATTERN)).collect()
    rows = {row["window_end"].astimezone(UTC): (int(row["snowballs"]), int(row["legs"])) for row in results}
    assert rows == dict([(utc(4, 8), (3, 4)), (utc(5, 8), (7, 12))][:days])

    records = lake.spark.read.format("delta").load(warehouse.runs).where(f"pattern = '{PATTERN}'").collect()
    intervals = {(row["interval_from"].astimezone(UTC), row["interval_to"].astimezone(UTC)) for row in records}
    assert intervals == {(utc(3 + day, 8), utc(4 + day, 8)) for day in range(days)}
    assert {row["run_id"] for row in records} == set(logs)
    assert sorted(row["stage"] for row in records) == sorted([*days * STEPS, "publish"])
    again = [row for row in records if (row["run_id"], row["stage"]) == (done_again, "publish")]
    assert sorted(row["rows_inserted"] for row in again) == [0, 1]
    assert len(list((home.project.state / "reports" / PATTERN / "runs").glob("*.html"))) == days
    lineage_links_up(events(home.project.state), records, days)


def one_application_for_all_steps(api: AirflowApi, run_id: str) -> None:
    """The first task has started it; the others say who has done their step. A task that is cleared by itself does its
    step again, in an application of its own, and no other step is done."""
    for step in (*STEPS[1:], "report"):
        assert any("done by the application of check_source" in line for line in api.log(PATTERN, run_id, step, 1)), (
            step
        )
    api.clear(PATTERN, run_id, "publish", downstream=False)
    wait(lambda: (tried(api, run_id)["publish"], api.run_state(PATTERN, run_id)) == (2, "success"))
    assert tried(api, run_id) == {**dict.fromkeys((*STEPS, "report"), 1), "publish": 2}
    assert not any("done by the application" in line for line in api.log(PATTERN, run_id, "publish", 2))


def tried(api: AirflowApi, run_id: str) -> dict[str, int]:
    """How often each task of a run has been started."""
    return {task["task_id"]: task["try_number"] for task in api.tasks(PATTERN, run_id)}


def lineage_links_up(events: list[dict[str, Any]], records: list[Row], runs: int) -> None:
    """Airflow told of each task's run, the steps of theirs: each is a part of the run of the task that started its
    application, whose DAG's run is the root; and both have ended well."""
    ends = [read(event, others=True) for event in events if event["eventType"] == "COMPLETE"]
    assert all(read(event, others=True).eventType in RunState for event in events)
    tasks = {end.run.runId: end.job.name for end in ends if end.job.namespace == "trendlake.airflow"}
    names = sorted(name for name in tasks.values() if name.startswith(f"{PATTERN}."))
    tasks_run = [*runs * [*STEPS, "report"], "publish"]  # one was cleared
    assert names == sorted(f"{PATTERN}.{step}" for step in tasks_run)
    steps = [end for end in ends if end.job.namespace == "trendlake" and end.job.name.startswith(f"{PATTERN}.")]
    assert sorted(end.job.name for end in steps) == sorted(f"{PATTERN}.{row['stage']}" for row in records)
    for end in steps:
        parent = end.run.facets["parent"]
        starter = f"{PATTERN}.check_source"
        assert tasks[parent.run.runId] == parent.job.name
        assert parent.job.name in (starter, end.job.name)
        assert parent.root.job.name == PATTERN
    starters = [end.run.facets["parent"].job.name for end in steps]
    assert sorted(starters) == sorted([*runs * len(STEPS) * [f"{PATTERN}.check_source"], f"{PATTERN}.publish"])
    published = [end for end in events if end["job"]["name"] == f"{PATTERN}.publish" and end["outputs"]]
    versions = {int(end["outputs"][0]["facets"]["version"]["datasetVersion"]) for end in published}
    assert versions == {row["results_version"] for row in records if row["stage"] == "publish"}


@pytest.mark.chaos
def test_other_kinds_and_what_goes_wrong(lake: Flights, home: AirflowHome, patterns: Path, alerts: list[str]) -> None:
    """A run of a range for a pattern of each other kind: the same DAG, the same steps. One of their tasks is killed
    while it writes: Airflow does it again, and the rows are there once. A run that fails, and is late too, is told
    of."""
    for name in OTHERS:
        shutil.copy(ROOT / "examples" / "flights" / f"{name}.yaml", patterns)
    text = (patterns / f"{PATTERN}.yaml").read_text().replace(f"name: {PATTERN}", f"name: {LATE}")
    (patterns / f"{LATE}.yaml").write_text(f"{text}deadline: 1 second\n")
    with home.running() as processes:
        home.wait_until_up(processes)
        api = AirflowApi(home.url, password_of(home.project))
        wait(lambda: {LATE, *OTHERS} <= api.dag_ids())
        api.pause(LATE, False)
        api.trigger(LATE, "backwards", {"from": "2013-07-14T00:00:00Z", "to": "2013-07-10T00:00:00Z"})
        for name in OTHERS:
            api.pause(name, False)
            api.trigger(name, "range", {"from": "2013-07-10T00:00:00Z", "to": "2013-07-14T00:00:00Z"})
        staging = Path(lake.warehouse.staging(KILLED, "range"))
        wait(lambda: any(staging.rglob("*.parquet")), pause=0.01)
        kill_task(f"{KILLED}.yaml", "run-steps")
        wait(lambda: all(api.run_state(name, "range") in DONE for name in OTHERS))
        states = {name: api.run_state(name, "range") for name in OTHERS}
        assert set(states.values()) == {"success"}, {name: api.tasks(name, "range") for name in OTHERS}
        tries = {task["task_id"]: task["try_number"] for task in api.tasks(KILLED, "range")}
        assert tries["check_source"] > 1  # its application did all; Airflow may try others again, when it is slow
        wait(lambda: api.run_state(LATE, "backwards") in DONE)
        wait(lambda: len(alerts) >= 2)
        reason = "[BAD_TIME] the interval is empty: --from must be before --to"
        line = f"{LATE}: check_source of run backwards failed at attempt 1: {reason}"
        assert line in api.log(LATE, "backwards", "check_source", 1)
        (task,) = (task for task in api.tasks(LATE, "backwards") if task["task_id"] == "check_source")
        assert task["try_number"] == 1  # an error of the user's: another attempt would end the same
        late, failed = sorted(alerts, key=lambda line: reason in line)
        assert failed == line
        assert late.startswith(f"{LATE}: run backwards is late: not done by ")

    warehouse = lake.warehouse
    (match,) = lake.spark.read.format("delta").load(warehouse.results(KILLED)).collect()
    assert (match["a"], match["b"], match["c"], match["last_delay"]) == (["UA-10"], ["UA-20"], ["UA-30"], 40.0)
    records = lake.spark.read.format("delta").load(warehouse.runs).where(f"pattern = '{KILLED}'")
    stages = [tuple(row) for row in records.select("stage", "status").collect()]
    assert sorted(stages) == sorted((stage, "succeeded") for stage in [*STEPS, "check_source"])
    (gone,) = lake.spark.read.format("delta").load(warehouse.results(ABSENCE)).collect()
    assert (gone["tailnum"], gone["first"], gone["state"], gone["delay"]) == ("N30UA", "UA-40", "gone", 200.0)
    for name in OTHERS:
        assert len(list((home.project.state / "reports" / name / "runs").glob("range.html"))) == 1


def kill_task(*words: str) -> None:
    """SIGKILL for a task's process in Airflow and all beneath it: spark-submit, the driver, the workers. It is found by
    words on its application's command line."""
    parents: dict[int, int] = {}
    applications: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            parents[int(place.name)] = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if "org.apache.spark.deploy.SparkSubmit" in command and all(
                any(item.endswith(word) for item in command) for word in words
            ):
                applications.append(int(place.name))
    (application,) = (
        pid for pid in applications if parents[pid] not in applications
    )  # a child just forked has its parent's words
    tree = [parents[application]]
    for process in tree:
        tree.extend(child for child, parent in parents.items() if parent == process)
    for process in tree:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def wait(for_it: Callable[[], bool], pause: float = 1.0) -> None:
    deadline = time.monotonic() + SECONDS
    while not for_it():
        assert time.monotonic() < deadline
        time.sleep(pause)
