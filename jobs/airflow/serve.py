"""A project's Airflow from the command line: served until Ctrl-C, and any airflow command with its settings."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import typer

from trendlake.jobs.airflow.home import AirflowHome, AirflowHomeError, Processes, free_port, stop_on_signals, tail
from trendlake.jobs.airflow.lock import address, claimed
from trendlake.jobs.airflow.login import USER, password_of
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.project.stores import refuse_airflow
from trendlake.pipelines.spark.java_home import choose_java

LOOK_SECONDS = 1.0
"""How often it is looked whether Airflow's processes live."""


def home_of(folder: Path | None, port: int) -> AirflowHome:
    """The Airflow of the project. Raises ProjectError, ProfileError, UnsafeStoreError."""
    project = find_project(folder)
    profile = load_profile(project)
    refuse_airflow(profile, project)
    choose_java(project)
    return AirflowHome(project, profile, port)


def serve(folder: Path | None, port: int) -> None:
    """Runs the project's Airflow with its page until Ctrl-C. `port`: another one where that is taken.

    Raises ProjectError where it runs already, AirflowHomeError where one of its processes ends.
    """
    home = home_of(folder, free_port(port))
    stop_on_signals()
    try:
        with claimed(home.project) as claim:
            typer.echo(f"Airflow of {home.project.root} is starting ...")
            with home.running() as processes:
                home.wait_until_up(processes)
                claim.write_text(home.url)
                typer.echo(f"Airflow's page: {home.url}   (logs in {home.home / 'logs'}; Ctrl-C stops it)")
                typer.echo(f"log in as {USER} with the password {password_of(home.project)}   (of this start only)")
                _watch(home, processes)
    except KeyboardInterrupt:
        typer.echo("\nstopped")


def airflow(folder: Path | None, arguments: list[str]) -> int:
    """An airflow command on the project's Airflow, running or not; its exit code."""
    home = home_of(folder, 0)
    env = home.env() | {"PYTHONWARNINGS": "ignore:Could not import graphviz"}
    if address(home.project) is None:
        home.prepare(env)
    return subprocess.run(home.airflow(*arguments), env=env, check=False).returncode


def _watch(home: AirflowHome, processes: Processes) -> None:
    while True:
        time.sleep(LOOK_SECONDS)
        for component, process in processes.items():
            if process.poll() is not None:
                raise AirflowHomeError(f"Airflow's {component} ended\n{tail(home.log(component))}")
