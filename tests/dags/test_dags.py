"""The DAG of a pattern: what Airflow itself says of it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import FOREIGN, PARSE, AirflowCommand, AirflowCommands, rows
from trendlake.jobs.airflow.home import ROOT, AirflowHome

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

IN_TIME = "in_time"
READER = "snowballs_that_grow"
"""A pattern over the results of another."""
READS = f"""\
name: {READER}
source: results/delay_snowball
pattern: delay_snowball S+
where: ["[carrier]", S.snowballs < NEXT(S).snowballs]
return: {{n: COUNT(*)}}
within: 7 days
schedule: "@daily"
"""
BESIDE = "falling_stock"
"""A pattern over a table that other programs write, with a column of another one."""
OVER_OTHERS = f"""\
name: {BESIDE}
source: {FOREIGN}
lookup: {{flight: {{table: flights, key: {{company: carrier}}, columns: [origin]}}}}
pattern: Stock S+
where: ["[company]", S.price > NEXT(S).price, S.origin IS NOT NULL]
return: {{n: COUNT(*)}}
within: 1 day
schedule: "30 6 * * *"
"""
JOIN = "reposted"
"""The example of kind xml_join: a file of queries over documents."""
DESCRIBE = """
import json, sys
import airflow_local_settings
from airflow import settings
from sqlalchemy import event
from airflow.dag_processing.dagbag import BundleDagBag
from pathlib import Path
from trendlake_bundle import PatternsBundle
bundle = PatternsBundle(name="patterns", patterns=sys.argv[2])
bundle.initialize()
prepared = ["trendlake_dags" in sys.modules]
bundle.refresh()
prepared.append("trendlake_dags" in sys.modules)
from trendlake.pipelines.contracts.contract import _loaded
prepared.append(_loaded.cache_info().currsize)
folder = Path(sys.argv[1])
bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="patterns")
print("DAGS" + json.dumps({
    "errors": bag.import_errors,
    "prepared": [*prepared, _loaded.cache_info().misses],
    "takes_turns": event.contains(settings.engine, "savepoint", airflow_local_settings.will_write),
    "dags": {
        dag.dag_id: {
            "edges": [[task.task_id, sorted(task.downstream_task_ids)] for task in dag.topological_sort()],
            "operators": sorted({task.task_type for task in dag.tasks}),
            "retries": sorted({task.retries for task in dag.tasks}),
            "policies": sorted({type(task.retry_policy).__name__ for task in dag.tasks}),
            "backoff": all(task.retry_exponential_backoff for task in dag.tasks),
            "owner": dag.owner, "tags": sorted(dag.tags), "catchup": dag.catchup,
            "schedule": [asset.name for asset in getattr(dag.timetable, "asset_condition", None).objects]
            if getattr(dag.timetable, "asset_condition", None) else None,
            "times": [
                item.expression
                for item in getattr(getattr(dag.timetable, "timetable", None), "timetables", None)
                or getattr(getattr(dag.timetable, "timetable", None), "_timetables", [])
            ],
            "outlets": [outlet.name for task in dag.tasks for outlet in task.outlets],
            "paused": dag.is_paused_upon_creation,
            "max_active_runs": dag.max_active_runs, "description": dag.description,
            "doc_md": dag.doc_md, "params": sorted(dag.params),
            "pools": sorted({task.pool for task in dag.tasks}),
            "callbacks": sorted({
                callback.__name__
                for task in dag.tasks for callback in [*task.on_failure_callback, *task.on_retry_callback]
            }),
            "deadlines": [[alert.interval.total_seconds(), alert.callback.path] for alert in dag.deadline or []],
        }
        for dag in bag.dags.values()
    },
}))
"""

FORK = """
import os, sys
sys.argv = ["airflow", sys.argv[1]]
from airflow import settings
before = "trendlake_dags" in sys.modules
if not (child := os.fork()):
    os._exit(int("trendlake_dags" in sys.modules))
print(before, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module")
def described(home: AirflowHome, airflow: AirflowCommand) -> Iterator[dict[str, Any]]:
    """Every DAG, as Airflow's own DagBag holds it; of patterns more, one has a deadline, one reads results."""
    assert home.patterns is not None
    added = home.patterns / f"{IN_TIME}.yaml"
    text = (home.patterns / "delay_snowball.yaml").read_text().replace("name: delay_snowball", f"name: {IN_TIME}")
    added.write_text(f"{text}deadline: 2 hours\n")
    reader = home.patterns / f"{READER}.yaml"
    reader.write_text(READS)
    others = home.patterns / f"{BESIDE}.yaml"
    others.write_text(OVER_OTHERS)
    join = home.patterns / f"{JOIN}.yaml"
    join.write_text((ROOT / "examples" / "xml" / join.name).read_text())
    airflow(*PARSE)
    folder = home.home / "bundles" / "patterns" / "dags"
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE, str(folder), str(home.patterns)],
        env=home.env(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    description: dict[str, Any] = json.loads(done.stdout.split("DAGS", 1)[1])
    yield description
    for path in (added, reader, others, join):
        path.unlink()


@pytest.fixture(scope="module")
def printed(airflow_commands: AirflowCommands, described: dict[str, Any]) -> dict[str, str]:
    """What Airflow's commands print of the DAGs, by the name that the tests give them."""
    columns = "dag_id,next_dagrun_logical_date,next_dagrun_data_interval_start,next_dagrun_data_interval_end"
    days = ("--from-date", "2013-01-05", "--to-date", "2013-01-07T12:00:00")
    commands = {
        "ingest": ("tasks", "render", "ingest_flights", "ingest", "2013-01-05"),
        "compute": ("tasks", "render", "delay_snowball", "compute", "2013-01-05"),
        "pools": ("pools", "list", "-o", "json"),
        "next runs": ("dags", "list", "-o", "json", "--columns", columns),
        "backfill": ("backfill", "create", "--dry-run", "--dag-id", "delay_snowball", *days),
    }
    return dict(zip(commands, airflow_commands(*commands.values()), strict=True))


def names(home: AirflowHome) -> set[str]:
    """The patterns over flights."""
    assert home.patterns is not None
    return {path.stem for path in home.patterns.glob("*.yaml")} - {READER, BESIDE, JOIN}


@pytest.fixture
def scheduled(home: AirflowHome, described: dict[str, Any]) -> dict[str, Any]:
    """The DAGs that run patterns, by name."""
    return {name: described["dags"][name] for name in names(home)}


def test_every_pattern_is_a_dag(home: AirflowHome, described: dict[str, Any]) -> None:
    """One DAG a pattern file, two for each source that is read, the one that revises also for results and tables of
    others, and no import error."""
    assert described["errors"] == {}
    revised = {f"{source}_revise" for source in ("flights", "feeds", FOREIGN, "results_delay_snowball")}
    patterns = names(home) | {READER, BESIDE, JOIN}
    assert set(described["dags"]) == patterns | revised | {"ingest_flights", "ingest_feeds"}


def test_what_all_parse_is_loaded_before(described: dict[str, Any]) -> None:
    """By `refresh`, of which the DAG processor's copies are made, and not by `initialize`, as tasks do: what DAG files
    import, and the contracts of the sources, of which parsing reads none again."""
    imported_by_initialize, imported_by_refresh, contracts, after_parsing = described["prepared"]
    assert (imported_by_initialize, imported_by_refresh) == (False, True)
    assert contracts == after_parsing > 1


def test_its_savepoints_wait_for_their_turn(described: dict[str, Any]) -> None:
    """Airflow has taken the local settings (tests/dags/test_sqlite.py says what they are for)."""
    assert described["takes_turns"] is True


def test_a_new_version_starts_the_revisions(home: AirflowHome, described: dict[str, Any]) -> None:
    """Ingestion says that its source has a new version; every pattern that reads the source is revised then, by one
    application and with a task each. Both are switched on from the start, a pattern's own schedule is not."""
    assert described["dags"]["ingest_flights"]["outlets"] == ["source_flights"]
    assert described["dags"]["ingest_flights"]["paused"] is False
    revision = described["dags"]["flights_revise"]
    assert revision["schedule"] == ["source_flights"]
    every, *each = revision["edges"]
    assert every == ["revise-all", sorted(names(home))]
    assert sorted(each) == [[name, []] for name in sorted(names(home))]
    assert revision["operators"] == ["ReviseAll", "Revised"]
    assert revision["max_active_runs"] == 1
    assert revision["paused"] is False
    assert revision["description"] == "New versions of flights in the results of 10 patterns".replace(
        "10", str(len(names(home)))
    )
    for name in names(home):
        assert described["dags"][name]["paused"] is None  # as this Airflow has it: paused


def test_a_table_of_others_is_looked_at_by_time_too(described: dict[str, Any]) -> None:
    """Nobody may tell Airflow that it has a new version. An event of the reference table's asset starts a revision."""
    assert described["dags"]["flights_revise"]["times"] == []
    revision = described["dags"][f"{FOREIGN}_revise"]
    assert sorted(revision["schedule"]) == sorted([f"source_{FOREIGN}", "source_flights"])
    assert revision["times"] == ["30 6 * * *"]


def test_results_start_the_revisions_of_who_reads_them(described: dict[str, Any]) -> None:
    """A run's publication and a revision each make a new version of them."""
    assert described["dags"]["delay_snowball"]["outlets"] == ["results_delay_snowball"]
    assert "revised_results_delay_snowball" in described["dags"]["flights_revise"]["outlets"]
    assert described["dags"]["results_delay_snowball_revise"]["schedule"] == ["results_delay_snowball"]
    assert "Each row of the results of the pattern `delay_snowball` is an event" in described["dags"][READER]["doc_md"]


def test_a_file_of_queries_over_documents_is_one_dag(scheduled: dict[str, Any], described: dict[str, Any]) -> None:
    """With the steps of every kind; its page says templates and rules of documents, and new documents revise it."""
    join, other = described["dags"][JOIN], next(iter(scheduled.values()))
    for part in ("edges", "operators", "retries", "policies", "params", "pools", "callbacks"):
        assert join[part] == other[part]
    assert join["outlets"] == [f"results_{JOIN}"]
    assert join["tags"] == ["example", "feeds", "mmqjp", "trendlake", "xml_join"]
    for part in ("same_title_in_channel:", "template", "| `document` | string |"):
        assert part in join["doc_md"]
    assert described["dags"]["ingest_feeds"]["outlets"] == ["source_feeds"]
    assert described["dags"]["feeds_revise"]["schedule"] == ["source_feeds"]


@pytest.mark.long
def test_what_is_ingested_reaches_the_command(printed: dict[str, str]) -> None:
    """Without files a source brings its own data."""
    assert "['ingest', 'flights']" in printed["ingest"]


def test_the_steps_are_visible(scheduled: dict[str, Any]) -> None:
    """check source >> compute >> check results >> publish >> report, with one Spark application for all."""
    steps = ["check_source", "compute", "check_results", "publish", "report"]
    chained = [[step, follower] for step, follower in zip(steps, [*([s] for s in steps[1:]), []], strict=True)]
    for dag in scheduled.values():
        assert dag["edges"] == chained
        assert dag["operators"] == ["StepOperator"]


def test_a_dag_says_what_its_pattern_says(home: AirflowHome, scheduled: dict[str, Any]) -> None:
    """Owner, source and text come from the YAML; retries back off; nothing is caught up by itself."""
    assert home.patterns is not None
    for name, dag in scheduled.items():
        text = (home.patterns / f"{name}.yaml").read_text()
        for part in (text, "  F#0 -> F#0: ", r"| `tailnum` | string | matches ^N\[0-9A-Z\]{2,5}$ |"):
            assert part in dag["doc_md"]  # the pattern, its automaton, its source's contract
        assert f"owner: {dag['owner']}" in text
        assert {"trendlake", "flights"} <= set(dag["tags"])
        assert dag["retries"] == [2]
        assert dag["backoff"]
        assert dag["catchup"] is False
        assert dag["max_active_runs"] >= 1
        assert dag["params"] == ["from", "to"]
        assert bool(dag["deadlines"]) == (name == IN_TIME)


@pytest.mark.long
def test_every_task_waits_for_spark_and_tells_why_it_failed(
    home: AirflowHome, printed: dict[str, str], described: dict[str, Any]
) -> None:
    """The pool of Spark applications has as many slots as the profile says."""
    for dag in described["dags"].values():
        assert dag["pools"] == ["spark"]
        assert dag["callbacks"] == ["failed", "tried"]
    (pool,) = (row for row in rows(printed["pools"]) if row["pool"] == "spark")
    assert int(pool["slots"]) == home.profile.limits.steps


def test_a_deadline_is_a_deadline_of_the_runs(described: dict[str, Any]) -> None:
    """It counts from when a run is queued; revisions have none."""
    assert described["dags"][IN_TIME]["deadlines"] == [[7200.0, "trendlake_alerts.late"]]
    assert described["dags"]["flights_revise"]["deadlines"] == []


def test_a_daily_run_covers_its_day(printed: dict[str, str]) -> None:
    """The data interval is half open, [D, D+1), and the logical date is its start, not the time of firing."""
    details = rows(printed["next runs"])[0]
    start = datetime.fromisoformat(details["next_dagrun_data_interval_start"])
    assert datetime.fromisoformat(details["next_dagrun_logical_date"]) == start
    assert datetime.fromisoformat(details["next_dagrun_data_interval_end"]) - start == timedelta(days=1)


def test_a_backfill_has_a_run_for_each_day(printed: dict[str, str]) -> None:
    """From the 5th to the 7th are three daily runs, each from 04:00 in New York."""
    days = [day for day in range(1, 31) if f"| 2013-01-{day:02d} 09:00:00+00:00" in printed["backfill"]]
    assert days == [5, 6, 7]


def test_the_interval_reaches_the_command(printed: dict[str, str]) -> None:
    """A step starts `trendlake run-steps PATTERN --from D --to D+1 --run-id ID`, and adds which steps."""
    (line,) = (line for line in printed["compute"].splitlines() if line.startswith("['run-steps'"))
    step, pattern, *options = ast.literal_eval(line)
    assert step == "run-steps"
    assert Path(pattern).name == "delay_snowball.yaml"
    assert options[:5] == ["--from", "2013-01-03T09:00:00+00:00", "--to", "2013-01-04T09:00:00+00:00", "--run-id"]


@pytest.mark.long
@pytest.mark.parametrize(("component", "there"), [("scheduler", 1), ("dag-processor", 0)])
def test_a_task_finds_its_modules_imported(home: AirflowHome, component: str, there: int) -> None:
    """It is a fork of the scheduler. Other processes import what they need."""
    command = [sys.executable, "-c", FORK, component]
    done = subprocess.run(command, env=home.env(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"False {there}"
