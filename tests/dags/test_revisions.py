"""The DAG of a source in a live Airflow: one application revises all patterns, and each has a task that fails for it
alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.dags.test_batch import DONE, READER, records, wait, write
from tests.support.flights import Flights, all_steps, flight
from trendlake.jobs.airflow.api import AirflowApi
from trendlake.jobs.airflow.home import AirflowHome
from trendlake.jobs.airflow.login import password_of

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

DAG = "flights_revise"
NAMES = ("rise", "rise_often", "never_published")


def test_one_that_fails_stops_no_other(spark: SparkSession, home: AirflowHome, patterns: Path) -> None:
    """Readers of the others are told; readers of results that stay as they are, are not. The task of the one that
    failed revises it alone, when it is done again."""
    lake = Flights(spark, home.project, home.profile)
    lake.deliver([flight(n + 1, f"2013-07-0{3 + n // 3}T{11 + n}:00") for n in range(5)])
    for name, group in zip(NAMES, ("carrier", "origin", "carrier"), strict=True):
        write(patterns, name, "x", group)
        file = patterns / f"{name}.yaml"
        file.write_text(file.read_text().replace("batch: x\n", ""))
    for name in NAMES[:2]:
        all_steps(lake.run(str(patterns / f"{name}.yaml"), "2013-07-03", "2013-07-05", "first"))
    (patterns / "rises_again.yaml").write_text(READER.format(name="rises_again", name_of_source="rise"))
    upstream = write(home.project.patterns, "rise", "x")  # where a reader's source is looked up
    often = patterns / "rise_often.yaml"
    right = often.read_text()
    often.write_text(right.replace("F.dep_delay <", "F.delay <"))
    lake.deliver([flight(9, "2013-07-04T18:00")], feed="late")
    with home.running() as processes:
        home.wait_until_up(processes)
        api = AirflowApi(home.url, password_of(home.project))
        wait(lambda: {DAG, "results_rise_revise"} <= api.dag_ids())
        api.trigger(DAG, "one", {})
        wait(lambda: api.run_state(DAG, "one") in DONE)
        tasks = {task["task_id"]: task for task in api.tasks(DAG, "one")}
        log = api.log(DAG, "one", "rise_often", 1)
        states = {name: tasks[name]["state"] for name in ("revise-all", *NAMES)}
        wanted = {"revise-all": "success", "rise": "success", "never_published": "success", "rise_often": "failed"}
        assert states == wanted, log
        assert api.run_state(DAG, "one") == "failed"
        assert tasks["rise_often"]["try_number"] == 1  # a person must change something first
        assert "[UNKNOWN_ATTRIBUTE]" in "\n".join(log), "\n".join(log[-8:])
        assert [stage for run, stage, _ in records(lake, "rise") if run == "one"] == ["revise"]
        assert records(lake, "never_published") == []
        assert api.waiting("results_rise_revise") == 1  # an event from which no run is started here

        often.write_text(right)
        api.clear(DAG, "one", "rise_often")
        wait(lambda: api.run_state(DAG, "one") in DONE)
        assert api.run_state(DAG, "one") == "success", "\n".join(api.log(DAG, "one", "rise_often", 2))
        assert [stage for run, stage, _ in records(lake, "rise") if run == "one"] == ["revise"]  # not once more
        assert ("one", "revise", "succeeded") in records(lake, "rise_often")

        api.trigger(DAG, "two", {})
        wait(lambda: api.run_state(DAG, "two") in DONE)
        states = {task["task_id"]: task["state"] for task in api.tasks(DAG, "two")}
        assert states == dict.fromkeys(states, "success"), "\n".join(api.log(DAG, "two", "revise-all", 1))
        assert api.waiting("results_rise_revise") == 1  # nothing new: its readers are not told
    upstream.unlink()
