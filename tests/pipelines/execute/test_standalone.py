"""A run on a real standalone cluster, started as Airflow starts it, beside the same run on this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support.cluster import standalone
from tests.support.flights import Flights, all_steps, answers, flight
from trendlake.jobs.airflow.home import AirflowHome
from trendlake.jobs.airflow.spark_settings import write_spark_settings
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import SPARK_PROPERTIES, Profile, load_profile
from trendlake.pipelines.spark.jars import jars_folder

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.slow]

SINCE, UNTIL = "2013-07-01", "2013-07-08"
SUBMIT = """
import sys
from trendlake_dags import submitted
submitted("run", "a run on a cluster", sys.argv[1:]).execute({})
"""
"""The operator of the generated DAGs, without a scheduler."""
SMALL = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "640m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.pyspark.python": sys.executable,
    "spark.sql.codegen.wholeStage": "false",
    "spark.network.timeout": "600s",  # a machine that is busy with other things is no lost worker
}


@pytest.mark.chaos
def test_a_cluster_finds_what_one_machine_finds(
    spark: SparkSession, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile is conf/profiles/standalone.yaml, save for names and sizes; both workers compute; the rows are the
    same, and no trace of the cluster stays."""
    local_lake = Flights(spark, project, Profile(warehouse=str(tmp_path / "here")))
    local_lake.deliver(
        flight(100 * day + 10 * plane + leg, f"2013-07-0{day}T{8 + leg:02}:00", tailnum=f"N{plane}0UA", carrier=carrier)
        for day in range(1, 8)
        for plane, carrier in enumerate(("UA", "AA", "B6", "DL"))
        for leg in range(5)
    )
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    pattern = local_lake.pattern()
    local = local_lake.run(pattern, SINCE, UNTIL, "local")
    all_steps(local)

    shipped = load_profile(project, "standalone")
    with standalone(tmp_path, workers=2) as cluster:
        changed = {"master": cluster.master, "warehouse": str(tmp_path / "there"), "spark": shipped.spark | SMALL}
        profile = Profile.model_validate(shipped.model_dump() | changed)
        (tmp_path / "conf" / "profiles").mkdir(parents=True)
        (tmp_path / "conf" / "profiles" / "standalone.yaml").write_text(profile.model_dump_json())
        (tmp_path / "data_contracts").symlink_to(ROOT / "data_contracts")
        own = replace(project, root=tmp_path)
        monkeypatch.setenv("TRENDLAKE_PROFILE", "standalone")
        monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        monkeypatch.setenv("TRENDLAKE_JARS", str(jars_folder(project)))
        env = AirflowHome(own, load_profile(own)).env()
        write_spark_settings(Path(env[SPARK_PROPERTIES]).parent, own, profile)
        command = [sys.executable, "-c", SUBMIT, "run", pattern, "--from", SINCE, "--to", UNTIL, "--run-id", "there"]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (application,) = cluster.state()["completedapps"]
        assert (application["state"], application["cores"]) == ("FINISHED", 2)
    workers = {path.parents[2].name for path in tmp_path.glob("work*/app-*/*/stderr")}
    assert workers == {"work0", "work1"}

    there = replace(local_lake, profile=Profile(warehouse=str(tmp_path / "there")))
    rows = answers(there.results(local), local)
    assert rows == answers(local_lake.results(local), local)
    assert len(rows) == 28
