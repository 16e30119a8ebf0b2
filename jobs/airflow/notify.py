"""Notifies Airflow of a table's new version after a command has written it; Airflow's own tasks do so by outlets."""

from __future__ import annotations

import os

from trendlake.jobs.airflow.api import AirflowApi, AirflowApiError
from trendlake.jobs.airflow.lock import address
from trendlake.jobs.airflow.login import password_of
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.pipelines.project.paths import PUBLISHED, Project, upstream

IN_A_TASK = "AIRFLOW_CTX_DAG_ID"
"""Set by Airflow in its tasks, whose outlets create the event."""


def asset_of(source: str) -> tuple[str, str]:
    """Name and URI of a source's asset in Airflow; `source` may also be the results of a pattern."""
    name = upstream(source)
    return (
        (f"source_{source}", f"trendlake://sources/{source}")
        if name is None
        else (f"results_{name}", f"trendlake://results/{name}")
    )


def notify_of_results(project: Project, pattern: str) -> None:
    """As `notify_of_source`, for the results of a pattern."""
    notify_of_source(project, f"{PUBLISHED}{pattern}")


def notify_of_source(project: Project, source: str) -> bool:
    """Creates an event of the source's asset in the Airflow started by `trendlake airflow`, if it is running, which
    starts the revisions of patterns that read the source. Returns whether Airflow has taken the event. An Airflow that
    does not answer is a warning, because the next event leads to the same revision."""
    url = None if IN_A_TASK in os.environ else address(project)
    if url is None:
        return False
    name, uri = asset_of(source)
    try:
        notified = AirflowApi(url, password_of(project)).new_version(uri)
    except (AirflowApiError, OSError) as error:
        print_error(f"{url} could not be notified of the new version of {source}: {error}")
        return False
    if notified:
        say(f"notified Airflow: {name} has a new version")
    return notified
