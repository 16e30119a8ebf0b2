"""Airflow DAGs of pattern files: each task is a `trendlake` command in a Spark application."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, Param, chain
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from airflow.sdk.exceptions import AirflowTimetableInvalid
from trendlake_alerts import failed, late, tried
from trendlake_retries import RetryCrashes
from trendlake_steps import StepOperator

from trendlake.cep_core import AnyPlan, Pattern, PatternErrors
from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.jobs.actions.steps import STEPS
from trendlake.jobs.airflow.notify import asset_of
from trendlake.pipelines.authoring.pattern_page import pattern_page
from trendlake.pipelines.authoring.validate import compiled_quietly
from trendlake.pipelines.contracts.pattern_source import source_contract, sources_of
from trendlake.pipelines.project.dag_names import ingestion_id
from trendlake.pipelines.project.paths import PUBLISHED, Project, find_project
from trendlake.pipelines.project.profile import SPARK_POOL, SPARK_PROPERTIES, load_profile
from trendlake.pipelines.project.stores import refuse_airflow

SUBMIT = Path(str(files("trendlake.jobs"))) / "submit.py"
SPARK_CONNECTION = "spark_default"  # AIRFLOW_CONN_SPARK_DEFAULT says where Spark is
OWNER = 2_000  # characters that Airflow's database has room for; a batch's owners are many
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # where the windows start too

# A run covers its data interval, [start, end), or the range that it was triggered with.
FROM = "{{ params['from'] or data_interval_start.isoformat() }}"
TO = "{{ params['to'] or data_interval_end.isoformat() }}"


def pattern_dags(path: str, *, in_batch: bool = False) -> dict[str, DAG]:
    """The DAG of a pattern file by id; none if it is in a batch, whose DAG runs it. Raises TrendlakeError with file and
    line for an error of the file, UnsafeStoreError."""
    project = find_project()
    profile = load_profile(project)
    refuse_airflow(profile, project)
    pattern, plan = compiled_quietly(project, Path(path))
    if in_batch:
        timetable(pattern)
        return {}
    return {pattern.name: runs_dag(pattern, path, page(project, pattern, plan, path))}


def page(project: Project, pattern: Pattern, plan: AnyPlan, path: str) -> str:
    contracts = [table.contract for table in sources_of(project, pattern).every]
    return pattern_page(pattern, plan, contracts, Path(path).read_text(encoding="utf-8"))


def runs_dag(pattern: Pattern, path: str, doc_md: str) -> DAG:
    """A run for each data interval."""
    with DAG(
        dag_id=pattern.name,
        description=pattern.description.strip(),
        doc_md=doc_md,
        schedule=timetable(pattern),
        deadline=deadline(pattern),
        start_date=EPOCH,
        catchup=False,
        max_active_runs=2,
        tags=["trendlake", pattern.kind, *pattern.tables, *pattern.tags],
        default_args=defaults(pattern.owner),
        params=range_params(),
    ) as dag:
        chain(*(step_task(step, path, pattern.name) for step in STEPS))
    return dag


def range_params() -> dict[str, Param]:
    """The range that a run is triggered with, in place of its data interval."""
    texts = {
        "from": "Start of the range to run; empty: the run's data interval",
        "to": "End of the range to run, not included; empty: the run's data interval",
    }
    return {
        name: Param(None, type=["null", "string"], format="date-time", description=text) for name, text in texts.items()
    }


def ingest_dags(read: Collection[str]) -> dict[str, DAG]:
    """A DAG for each of the sources that patterns `read`. It ingests files and creates an event of the source's asset;
    none for tables that other programs write."""
    project = find_project()
    profile = load_profile(project)
    refuse_airflow(profile, project)
    contracts = project.source_contracts()
    names = [path.stem for path in contracts if path.stem in read and path.stem not in profile.sources]
    return {ingestion_id(name): ingest_dag(name, replaces=is_reference(project, name)) for name in names}


def is_reference(project: Project, source: str) -> bool:
    """Whether the source is a reference table; False where its contract is wrong, as the command will tell."""
    with suppress(TrendlakeError):
        return source_contract(project, source).is_reference
    return False


def ingest_dag(source: str, *, replaces: bool) -> DAG:
    """`replaces`: whether the files may be all rows of the table."""
    params = {"files": Param([], type="array", items={"type": "string"}, description="CSV, Parquet or JSON files")}
    asked = ""
    if replaces:
        params["replace"] = Param(False, type="boolean", description="The files are all rows of the table")
        asked = " + (['--replace'] if params['replace'] else [])"
    with DAG(
        dag_id=ingestion_id(source),
        description=f"Files into {source}, then the revision of every pattern that reads it",
        schedule=None,
        start_date=EPOCH,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,  # runs only when triggered
        tags=["trendlake", "ingest", source],
        default_args=defaults(""),
        render_template_as_native_obj=True,
        params=params,
    ) as dag:
        arguments = f"{{{{ ['ingest', '{source}']{asked} + params['files'] }}}}"
        submitted("ingest", f"trendlake ingest {source}", arguments, outlets=[source_asset(source)])
    return dag


def source_asset(source: str) -> Asset:
    """The asset of a source's table; each new version is an event."""
    name, uri = asset_of(source)
    return Asset(name=name, uri=uri)


def results_asset(pattern: str) -> Asset:
    """A pattern's results, which another pattern may read as its source."""
    return source_asset(f"{PUBLISHED}{pattern}")


def defaults(owner: str) -> dict[str, Any]:
    """The arguments that all tasks of a DAG share."""
    return {
        "owner": owner[:OWNER] or "trendlake",
        "pool": SPARK_POOL,
        "retries": 2,
        "retry_policy": RetryCrashes(),
        "retry_delay": timedelta(seconds=15),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(minutes=10),
        "on_retry_callback": tried,
        "on_failure_callback": failed,
    }


def deadline(pattern: Pattern) -> DeadlineAlert | None:
    """The alert for a run that is not done in time. Time counts from when the run was queued, so that a run of a past
    interval, or of none, can be late too."""
    if pattern.deadline is None:
        return None
    allowed = timedelta(microseconds=pattern.deadline)
    return DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, allowed, SyncCallback(late))


def timetable(pattern: Pattern) -> CronDataIntervalTimetable | None:
    """A run for each data interval [start, end) of the pattern's schedule; None without a schedule."""
    if pattern.schedule is None:
        return None
    intervals = CronDataIntervalTimetable(pattern.schedule, timezone=pattern.time_zone or "UTC")
    try:
        intervals.validate()
    except AirflowTimetableInvalid as error:
        place = pattern.document.place(("schedule",))
        raise PatternErrors([BadValueError(f"schedule: {error}", place=place)]) from None
    return intervals


def step_task(step: str, path: str, pattern: str) -> StepOperator:
    """One step of docs/architecture.md. Of the tasks that wait for Spark's pool, those of begun runs come first."""
    arguments = ["run-steps", verbatim(path), "--from", FROM, "--to", TO, "--run-id", "{{ run_id }}"]
    outlets = [results_asset(pattern)] if step == "publish" else []
    return StepOperator(step=step, outlets=outlets, weight_rule="upstream", **spark(f"trendlake {pattern}", arguments))


def submitted(task: str, name: str, arguments: Any, **options: Any) -> SparkSubmitOperator:
    """A task that is a `trendlake` command in a Spark application."""
    return SparkSubmitOperator(task_id=task, **spark(name, arguments), **options)


def spark(name: str, arguments: Any) -> dict[str, Any]:
    """The arguments of a Spark application: its name and its command."""
    return {
        "conn_id": SPARK_CONNECTION,
        "name": name,
        "application": verbatim(str(SUBMIT)),
        "application_args": arguments,
        "properties_file": verbatim(os.environ[SPARK_PROPERTIES]) if SPARK_PROPERTIES in os.environ else None,
    }


def verbatim(path: str) -> str:
    """A path where Airflow expects a template: one that means the path itself, whatever the folders are called."""
    return f"{{{{ {json.dumps(path)} }}}}" if "{" in path else path
