"""Airflow DAGs of batches: patterns of one source and schedule in one DAG, and in one Spark application a run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, AssetAlias, chain
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from trendlake_alerts import late
from trendlake_batch_steps import BatchStepOperator
from trendlake_dags import EPOCH, FROM, TO, defaults, range_params, spark, timetable

from trendlake.cep_core import Pattern
from trendlake.cep_core.load import read_pattern
from trendlake.jobs.actions.steps import STEPS
from trendlake.pipelines.authoring.pattern_page import batch_page
from trendlake.pipelines.project.dag_names import batch_id
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.project.stores import refuse_airflow


def batch_dags(name: str, paths: list[str]) -> dict[str, DAG]:
    """The DAG of a batch by id. `paths`: the files of its patterns, which agree on source and schedule."""
    project = find_project()
    refuse_airflow(load_profile(project), project)
    read = {path: read_pattern(Path(path))[0] for path in paths}
    members = {path: pattern for path, pattern in read.items() if pattern is not None}
    return {batch_id(name): runs_dag(name, members)} if members else {}


def runs_dag(name: str, members: dict[str, Pattern]) -> DAG:
    """A run of all patterns for each data interval. Its runs are recorded with the batch's name before Airflow's id:
    a pattern that had a DAG of its own has runs of the same ids."""
    first = next(iter(members.values()))
    with DAG(
        dag_id=batch_id(name),
        description=f"{len(members)} patterns over {', '.join(first.tables)}",
        doc_md=batch_page(name, list(members.values())),
        schedule=timetable(first),
        deadline=deadline(list(members.values())),
        start_date=EPOCH,
        catchup=False,
        max_active_runs=2,
        tags=tags(members),
        default_args=defaults(owners(members)),
        params=range_params(),
    ) as dag:
        arguments = ["run-steps", "--batch", name, "--from", FROM, "--to", TO, "--run-id", f"{name}.{{{{ run_id }}}}"]
        common: dict[str, Any] = {
            "patterns": list(members),
            "results": AssetAlias(f"results_of_batch_{name}"),
            "order": STEPS,
            "judge": "publish",
            "weight_rule": "upstream",
            **spark(f"trendlake batch {name}", arguments),
        }
        chain(*(BatchStepOperator(step=step, **common) for step in STEPS))
    return dag


def owners(members: dict[str, Pattern]) -> str:
    return ", ".join(sorted({pattern.owner for pattern in members.values() if pattern.owner}))


def tags(members: dict[str, Pattern]) -> list[str]:
    patterns = members.values()
    named = {
        "trendlake",
        "batch",
        *(item.kind for item in patterns),
        *(table for item in patterns for table in item.tables),
    }
    return sorted(named.union(*(item.tags for item in patterns)))


def deadline(patterns: list[Pattern]) -> DeadlineAlert | None:
    """That of the pattern with the shortest."""
    allowed = [pattern.deadline for pattern in patterns if pattern.deadline is not None]
    if not allowed:
        return None
    shortest = timedelta(microseconds=min(allowed))
    return DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, shortest, SyncCallback(late))
