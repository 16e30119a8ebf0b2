"""Airflow is told of a table's new version: by the outlets of its own tasks, or by the command that wrote it."""

from __future__ import annotations

import os

import typer

from jobs.airflow.api import AirflowApi, AirflowApiError
from jobs.airflow.lock import address
from jobs.airflow.login import password_of
from pipelines.project.paths import PUBLISHED, Project, upstream

IN_A_TASK = "AIRFLOW_CTX_DAG_ID"
"""Set by Airflow in its tasks, whose outlets tell of the version."""


def asset_of(source: str) -> tuple[str, str]:
    """Name and URI of a source's asset in Airflow, also where the source is a pattern's results."""
    name = upstream(source)
    return (f"source_{source}", f"trendlake://sources/{source}") if name is None else (
        f"results_{name}", f"trendlake://results/{name}",
    )  # fmt: skip


def tell_of_results(project: Project, pattern: str) -> None:
    """As `tell_of`, of what a pattern has published."""
    tell_of(project, f"{PUBLISHED}{pattern}")


def tell_of(project: Project, source: str) -> bool:
    """Has the project's Airflow, where `trendlake airflow` serves it now, revise what reads the source; whether it was
    told. That it cannot be is no failure of what was done: the next event catches up with it."""
    url = None if IN_A_TASK in os.environ else address(project)
    if url is None:
        return False
    name, uri = asset_of(source)
    try:
        told = AirflowApi(url, password_of(project)).new_version(uri)
    except (AirflowApiError, OSError) as error:
        typer.echo(f"{url} could not be told that {source} has a new version: {error}", err=True)
        return False
    if told:
        typer.echo(f"told Airflow: {name} has a new version")
    return told
