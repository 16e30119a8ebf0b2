"""The Airflow DAG of a source that revises the results over it: one Spark application for all patterns, a task for
each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, AssetAlias, AssetAny, AssetOrTimeSchedule, MultipleCronTriggerTimetable
from airflow.sdk.definitions.context import Context
from airflow.sdk.execution_time.context import NEVER_EXPIRE
from trendlake_alerts import MembersFailedError
from trendlake_batches import owners, tags
from trendlake_dags import EPOCH, defaults, source_asset, spark
from trendlake_steps import APPLICATION, SEEN, StepOperator

from trendlake.cep_core import Pattern
from trendlake.cep_core.load import read_pattern
from trendlake.jobs.actions.revise import REVISE_ALL
from trendlake.jobs.airflow.notify import asset_of
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.project.dag_names import source_revision_id
from trendlake.pipelines.project.paths import PUBLISHED, find_project
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.project.stores import refuse_airflow

EACH_HOUR = ("@hourly", "UTC")


def revision_dags(source: str, paths: list[str]) -> dict[str, DAG]:
    """The DAG of a source by id. `paths`: the files of the patterns that it revises. Raises UnsafeStoreError."""
    project = find_project()
    profile = load_profile(project)
    refuse_airflow(profile, project)
    read = {path: read_pattern(Path(path))[0] for path in paths}
    patterns = {path: pattern for path, pattern in read.items() if pattern is not None}
    if not patterns:
        return {}
    tables = sorted({table for pattern in patterns.values() for table in pattern.tables_read})
    foreign = [pattern for pattern in patterns.values() if set(pattern.tables_read) & set(profile.sources)]
    with DAG(
        dag_id=source_revision_id(source),
        description=f"New versions of {', '.join(tables)} in the results of {plural(len(patterns), 'pattern')}",
        schedule=on_new_versions(tables, foreign),
        start_date=EPOCH,
        catchup=False,
        max_active_runs=1,  # a second run would have nothing to do
        is_paused_upon_creation=False,  # it changes published results only
        tags=["revise", *(tag for tag in tags(patterns) if tag != "batch")],
        default_args=defaults(owners(patterns)),
    ) as dag:
        # A run started by an asset has no data interval and no logical date, and needs neither.
        # A pattern without published results has nothing to revise, which is no failure.
        common = spark(f"trendlake {source} revise", ["revise", "--if-published", "--run-id", "{{ run_id }}"])
        every = ReviseAll(paths=list(patterns), **common)
        for path, pattern in patterns.items():
            every >> Revised(pattern=pattern.name, path=path, owner=defaults(pattern.owner)["owner"], **common)
    return {dag.dag_id: dag}


def on_new_versions(tables: list[str], foreign: list[Pattern]) -> Any:
    """The schedule of a revision: an event of any of the `tables`, be it a reference table. Other programs may write a
    table without an event for Airflow: there is a run at each time of the schedules of patterns over such tables, the
    `foreign` ones, too; each hour, where these are of several time zones."""
    events = AssetAny(*map(source_asset, tables))
    times = sorted({(one.schedule, one.time_zone or "UTC") for one in foreign if one.schedule is not None})
    if not times:
        return events
    if len({zone for _, zone in times}) > 1:
        times = [EACH_HOUR]
    timetable = MultipleCronTriggerTimetable(*(cron for cron, _ in times), timezone=times[0][1])
    return AssetOrTimeSchedule(timetable=timetable, assets=events)


class ReviseAll(StepOperator):
    """Revises all patterns, the files `paths`, in one application. It succeeds where the application ends by itself:
    the tasks of the patterns fail, whose results could not be revised."""

    order = (REVISE_ALL,)

    def __init__(self, *, paths: list[str], **options: Any) -> None:
        super().__init__(step=REVISE_ALL, **options)
        self.paths = tuple(paths)

    def execute(self, context: Context) -> None:
        self._start(context, self.paths)


class Revised(StepOperator):
    """The task of one pattern. It fails as the pattern did in the application for all; tried again, or where that has
    not ended by itself, it revises the pattern in an application of its own. It creates the event of results that have
    a new version, and none of others: their readers have nothing to do."""

    order = (REVISE_ALL,)

    def __init__(self, *, pattern: str, path: str, **options: Any) -> None:
        self.results = AssetAlias(f"revised_results_{pattern}")
        super().__init__(step=REVISE_ALL, task_id=pattern, outlets=[self.results], trigger_rule="all_done", **options)
        self.pattern, self.file = pattern, path

    def execute(self, context: Context) -> None:
        memory = context["task_state_store"]
        facts: dict[str, Any] | None = context["ti"].xcom_pull(task_ids=REVISE_ALL, key=APPLICATION)
        if facts is None or memory.get(SEEN) == facts["id"]:
            facts = self._start(context, [self.file])
        else:
            memory.set(SEEN, facts["id"], retention=NEVER_EXPIRE)
            self.log.info("done by the application of %s", REVISE_ALL)
        for failure in facts["failed"]:
            if failure["pattern"] == self.pattern:
                raise MembersFailedError(failure["reason"], mistake=failure["mistake"])
        if self.pattern in facts["changed"]:
            name, uri = asset_of(f"{PUBLISHED}{self.pattern}")
            context["outlet_events"][self.results].add(Asset(name=name, uri=uri))
