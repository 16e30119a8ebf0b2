"""Turns a pattern file into an Airflow DAG: the pattern says what to run, the `trendlake` command how."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain
from airflow.sdk.exceptions import AirflowTimetableInvalid

from cep_core import Pattern, PatternErrors
from cep_core.errors import BadValueError
from pipelines.project import find_project
from pipelines.validate import check_pattern

SUBMIT = Path(__file__).resolve().parents[1] / "jobs" / "submit.py"
SPARK_CONNECTION = "spark_default"  # AIRFLOW_CONN_SPARK_DEFAULT says where Spark is
STEPS = ("check_source", "compute", "check_results", "publish", "report")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # where the windows start too

# A run covers its data interval, [start, end), unless it was started with a range of its own.
FROM = "{{ params['from'] or data_interval_start.isoformat() }}"
TO = "{{ params['to'] or data_interval_end.isoformat() }}"


def pattern_dag(path: str) -> DAG:
    """The DAG of a pattern file. Raises TrendlakeError, with file and line, where it is wrong."""
    pattern = check_pattern(find_project(), Path(path))
    with DAG(
        dag_id=pattern.name,
        description=pattern.description.strip(),
        doc_md=f"{pattern.description}\n\n```yaml\n{Path(path).read_text()}\n```\n",
        schedule=timetable(pattern),
        start_date=EPOCH,
        catchup=False,
        max_active_runs=2,
        tags=["trendlake", pattern.kind, str(pattern.source), *pattern.tags],
        default_args={
            "owner": pattern.owner or "trendlake",
            "retries": 2,
            "retry_delay": timedelta(seconds=15),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(minutes=10),
        },
        params={
            name: Param(None, type=["null", "string"], format="date-time", description=text)
            for name, text in (
                ("from", "Start of the range to run; empty: the run's data interval"),
                ("to", "End of the range to run, not included; empty: the run's data interval"),
            )
        },
    ) as dag:
        chain(*(step_task(step, path) for step in STEPS))
    return dag


def timetable(pattern: Pattern) -> CronDataIntervalTimetable | None:
    """A run per data interval [start, end) of the pattern's schedule; None: only when asked for."""
    if pattern.schedule is None:
        return None
    intervals = CronDataIntervalTimetable(pattern.schedule, timezone="UTC")
    try:
        intervals.validate()
    except AirflowTimetableInvalid as error:
        place = pattern.document.place(("schedule",))
        raise PatternErrors([BadValueError(f"schedule: {error}", place=place)]) from None
    return intervals


def step_task(step: str, path: str) -> SparkSubmitOperator:
    """One step of docs/architecture.md, as a Spark application."""
    return SparkSubmitOperator(
        task_id=step,
        conn_id=SPARK_CONNECTION,
        name=f"trendlake {Path(path).stem} {step}",
        application=str(SUBMIT),
        application_args=[
            step.replace("_", "-"),
            path,
            "--from",
            FROM,
            "--to",
            TO,
            "--run-id",
            "{{ run_id }}",
        ],
    )
