"""The main job on real input: a year of flights, through Airflow, Spark and Delta, to trend tables.

`make demo` runs it. It ingests the flights, starts an Airflow, runs the DAG of each demo pattern over the
year, prints each step as it happens, stops that Airflow, and prints the results and where they are stored.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from trendlake.cep_core import TrendlakeError
from trendlake.jobs.actions.show import Shown, print_results
from trendlake.jobs.airflow.api import AirflowApi, AirflowApiError
from trendlake.jobs.airflow.home import AirflowHome, AirflowHomeError, Processes, free_port, own_home, stop_on_signals
from trendlake.jobs.airflow.lock import claimed
from trendlake.jobs.airflow.login import USER, password_of
from trendlake.jobs.terminal.workspace import Place, session
from trendlake.pipelines.redaction import redacted

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake

PATTERNS = ("delay_snowball", "recovery_without_cancellation")
RANGE = {"from": "2013-01-01T00:00:00Z", "to": "2014-01-02T00:00:00Z"}  # UTC: the last local evening of 2013 is in 2014
TROUBLE = {"up_for_retry", "failed", "upstream_failed"}
RUN_PREFIX = "demo_"
PROFILE = "demo"
"""The profile that does every step on Spark."""
LOG_LINES = 30
SHOWN = 8  # result rows of each pattern
JAVA_CHATTER = "WARNING: Using incubator modules"
DAGS_SECONDS = 90.0
RUN_SECONDS = 1800.0
POLL_SECONDS = 0.5

console = Console(highlight=False)


class DemoError(Exception):
    """The demo cannot continue; the message says why."""


@dataclass
class Watch:
    """Follows runs of DAGs and prints each change of a task's state once."""

    api: AirflowApi
    run_id: str
    began: float = field(default_factory=time.monotonic)
    seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def until_done(self, dag_ids: tuple[str, ...]) -> None:
        """Raises DemoError when a run fails or takes too long."""
        open_runs = list(dag_ids)
        with console.status("waiting for the first step") as status:
            while open_runs:
                if time.monotonic() - self.began > RUN_SECONDS:
                    raise DemoError(f"the runs are not done after {RUN_SECONDS:.0f} s")
                for dag_id in tuple(open_runs):
                    self.print_changes(dag_id)
                    state = self.api.run_state(dag_id, self.run_id)
                    if state == "failed":
                        raise DemoError(f"Airflow's run of {dag_id} failed")
                    if state == "success":
                        open_runs.remove(dag_id)
                running = [f"{dag} {task}" for (dag, task), (state, _) in self.seen.items() if state == "running"]
                status.update(f"{self.elapsed()}  {', '.join(running) or 'Airflow schedules'}")
                time.sleep(POLL_SECONDS)

    def print_changes(self, dag_id: str) -> None:
        for task in self.api.tasks(dag_id, self.run_id):
            now = (task["state"] or "", task["try_number"])
            if not task["state"] or self.seen.get((dag_id, task["task_id"])) == now:
                continue
            self.seen[dag_id, task["task_id"]] = now
            self.print_change(dag_id, task["task_id"], *now, task["duration"])

    def print_change(self, dag_id: str, task_id: str, state: str, attempt: int, seconds: float | None) -> None:
        style = {"success": "green", "running": "cyan"}.get(state, "red" if state in TROUBLE else "dim")
        took = f"  {seconds:.0f} s" if state == "success" and seconds is not None else ""
        console.print(f"  {self.elapsed()}  {dag_id:<30} {task_id:<14} [{style}]{state}[/]{took}", soft_wrap=True)
        if state in ("up_for_retry", "failed"):
            lines = self.api.log(dag_id, self.run_id, task_id, attempt)
            text = "\n".join(f"      {line}" for line in lines[-LOG_LINES:])
            console.print(text, style="red", markup=False, soft_wrap=True)

    def elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        return f"{minutes:02d}:{seconds:02d}"


def step(number: int, text: str) -> None:
    console.print(f"\n[bold]{number}/3  {text}[/]", soft_wrap=True)


def trendlake(home: AirflowHome, *arguments: str) -> None:
    """Runs a `trendlake` command, its output passing through. Raises DemoError when it fails."""
    command = [sys.executable, "-m", "trendlake.jobs.main", *arguments]
    with subprocess.Popen(
        command, env=home.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            if not line.startswith(JAVA_CHATTER):
                console.print(f"  {line.rstrip()}", markup=False, soft_wrap=True)
    if process.returncode:
        raise DemoError(f"trendlake {' '.join(arguments)} ended with exit code {process.returncode}")


def wait_for_dags(api: AirflowApi, wanted: tuple[str, ...]) -> None:
    """Until Airflow has parsed the patterns. Raises DemoError with its import errors, if any."""
    deadline = time.monotonic() + DAGS_SECONDS
    while not set(wanted) <= api.dag_ids():
        if time.monotonic() > deadline:
            errors = "\n".join(f"{error['filename']}\n{error['stack_trace']}" for error in api.import_errors())
            raise DemoError(f"Airflow does not show the DAGs {', '.join(wanted)}\n{errors}")
        time.sleep(POLL_SECONDS)


def run_dags(home: AirflowHome, processes: Processes, run_id: str) -> None:
    home.wait_until_up(processes)
    password = password_of(home.project)
    api = AirflowApi(home.url, password)
    wait_for_dags(api, PATTERNS)
    console.print(f"  Airflow's page, while this runs: {home.url}  (user {USER}, password {escape(password)})")
    watch = Watch(api, run_id)
    for dag_id in PATTERNS:
        for run in api.runs(dag_id):  # a run of an interrupted demo would continue next to this one
            if run["state"] in ("queued", "running") and run["dag_run_id"].startswith(RUN_PREFIX):
                api.give_up(dag_id, run["dag_run_id"])
        api.pause(dag_id, False)
        api.trigger(dag_id, run_id, RANGE)
    try:
        watch.until_done(PATTERNS)
    finally:
        for dag_id in PATTERNS:  # `make airflow` later starts nothing by itself
            api.pause(dag_id, True)


def print_roads(place: Place, lake: Lake, run_id: str) -> None:
    """Where each step of the run has worked, as its record tells."""
    from trendlake.pipelines.lake.road import road_of
    from trendlake.pipelines.runs.record import pattern_records

    names = ("pattern", "stage", "record_number", "road", "road_reason")
    records = pattern_records(lake, PATTERNS, names, [run_id])
    for record in sorted(records, key=lambda record: (record["pattern"], record["record_number"])):
        console.print(
            f"  {record['pattern']:<30} {record['stage']:<14} {road_of(record)}", markup=False, soft_wrap=True
        )


def show_results(home: AirflowHome, run_id: str) -> None:
    os.environ.update(home.env())
    place = Place(home.project, home.profile)
    with session(place, "trendlake show") as lake:
        print_roads(place, lake, run_id)
        for pattern in PATTERNS:
            print_results(place, lake, pattern, Shown(SHOWN))
    warehouse = home.profile.warehouse_of(home.project)
    reports = home.project.state / "reports"
    report_paths = [str(path) for path in sorted(reports.glob("*/runs/*.html")) if run_id in str(path)]
    places = [
        *(("results", f"{warehouse}/results/{pattern}") for pattern in PATTERNS),
        ("run record", f"{warehouse}/trendlake_runs   (this run: {run_id}; see also .venv/bin/trendlake runs)"),
        *(("report", path) for path in report_paths),
        ("site", f"{reports / 'index.html'}   (all patterns; a browser opens it from the disk)"),
        ("Airflow", "`make airflow` starts it again, with these runs in it, and prints its page's address"),
    ]
    console.print("\n[bold]Where the results are[/]")
    for what, where in places:
        console.print(f"  {what:<11} {where}", markup=False, soft_wrap=True)


def demo() -> None:
    began = time.monotonic()
    os.environ.setdefault("TRENDLAKE_PROFILE", PROFILE)
    home = own_home(free_port(), scheduled=False)
    run_id = f"{RUN_PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%S}"
    with claimed(home.project), home.running() as processes:  # comes up while the flights are read
        step(1, "Read 336,776 flights of 2013 into a Delta table, through their data contract")
        trendlake(home, "ingest", "flights")
        step(2, "Airflow runs the DAG of each pattern over the year, every step on Spark")
        run_dags(home, processes, run_id)
    step(3, "The busiest results")
    show_results(home, run_id)
    console.print(f"\n[green]done[/] in {time.monotonic() - began:.0f} s")


def main() -> int:
    stop_on_signals()
    try:
        demo()
    except (DemoError, AirflowHomeError, AirflowApiError, TrendlakeError) as error:
        console.print(f"\n[bold red]The demo stopped:[/] {escape(redacted(str(error)))}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\nstopped; Airflow too")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
