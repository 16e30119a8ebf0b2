"""Airflow on one machine: its settings in one place, its processes started and stopped together."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from trendlake.jobs.airflow.login import USER, new_password, passwords_file
from trendlake.jobs.airflow.spark_settings import PROPERTIES, write_spark_settings
from trendlake.pipelines.errors import DiskFullError
from trendlake.pipelines.project.lineage_settings import Lineage
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import SPARK_POOL, SPARK_PROPERTIES, Profile, load_profile
from trendlake.pipelines.project.shipped import shipped
from trendlake.pipelines.project.stores import refuse_airflow

ROOT = Path(str(files("trendlake"))).resolve().parent
"""The folder from which Python imports this package: site-packages, or the clone."""
DAGS = shipped("dags")
LOCAL_SETTINGS = DAGS / "settings"
COMPONENTS = ("api-server", "scheduler", "dag-processor")
USUAL_PORT = 8080
STOP_SECONDS = 20.0
START_SECONDS = 120.0
LOCKED_SECONDS = 60

Processes = dict[str, subprocess.Popen[bytes]]


class AirflowHomeError(Exception):
    """An Airflow process or command failed; the message has the end of its log."""


def free_port(preferred: int = 0) -> int:
    """`preferred` if that port is free, else another free port."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AirflowHomeError("no free port on localhost")


def tail(path: Path, lines: int = 25) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.is_file() else ""


@dataclass(frozen=True)
class AirflowHome:
    """A project's Airflow: its folder, settings and processes.

    `patterns` is the folder of pattern files, by default the project's. With `scheduled` False, schedules start no
    runs; only triggered runs start.
    """

    project: Project
    profile: Profile
    port: int = USUAL_PORT
    patterns: Path | None = None
    scheduled: bool = True

    @property
    def home(self) -> Path:
        return self.project.state / "airflow"

    @property
    def database(self) -> Path:
        return self.home / "airflow.db"

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def env(self) -> dict[str, str]:
        """The environment of every Airflow process, and of the Spark steps that it starts."""
        bundle = {
            "name": "patterns",
            "classpath": "trendlake_bundle.PatternsBundle",
            "kwargs": {"patterns": str(self.patterns or self.project.patterns), "refresh_interval": 5},
        }
        spark = {"conn_type": "spark", "host": self.profile.master or "local[*]", "extra": {"deploy-mode": "client"}}
        settings = {
            "CORE__EXECUTOR": "LocalExecutor",
            # the pool limits the steps; one slot more is always free for alerts about late runs
            "CORE__PARALLELISM": str(self.profile.limits.steps + 1),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS": "False",  # an error of a pattern file needs its place only
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords_file(self.project)),
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "API__HOST": "127.0.0.1",
            "API__PORT": str(self.port),
            "API__BASE_URL": self.url,
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),  # shared by the processes of one start
            # how long to wait for SQLite's lock: 5 s, the default, are too few while Spark has the processors
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.database}?timeout={LOCKED_SECONDS}",
            "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
            "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(self.home / "bundles"),
            "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "5",
            "DAG_PROCESSOR__PARSING_PROCESSES": "1",
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",  # a changed file is parsed at once all the same
            "SCHEDULER__USE_JOB_SCHEDULE": str(self.scheduled),
            "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",  # between two tasks of a run, each of which may take less
            "LOGGING__WORKER_LOG_SERVER_PORT": str(free_port(8793)),
            "USAGE_DATA_COLLECTION__ENABLED": "False",
        }
        lineage = self.profile.lineage_of(self.project)
        settings |= {"OPENLINEAGE__DISABLED": "True"} if lineage is None else lineage_settings(lineage)
        venv_bin = Path(sys.executable).parent
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name.startswith("AIRFLOW_CONN_") or not name.startswith(("AIRFLOW_", "SPARK_CONF_DIR"))
        }
        own = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
            "TRENDLAKE_PROJECT": str(self.project.root),
            "TRENDLAKE_STATE": str(self.project.state),
            "PATH": os.pathsep.join([str(venv_bin), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(map(str, (DAGS, LOCAL_SETTINGS, ROOT))),  # the code that this process runs
            "PYSPARK_PYTHON": sys.executable,
            SPARK_PROPERTIES: str(self.home / "spark" / PROPERTIES),
        }
        if lineage is not None:
            # an address of the working directory's code may hold a password
            own["OPENLINEAGE__FACETS__SOURCE_CODE_LOCATION__DISABLED"] = "true"
        if not self.profile.on_cluster:
            own["SPARK_LOCAL_IP"] = "127.0.0.1"
        return {**inherited, **{f"AIRFLOW__{name}": value for name, value in settings.items()}, **own}

    def airflow(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *arguments]

    def log(self, component: str) -> Path:
        return self.home / "logs" / f"{component}.log"

    def prepare(self, env: dict[str, str]) -> None:
        """Creates or migrates the database, Spark's settings and the pool of the steps."""
        self.project.make_state()
        self.log("x").parent.mkdir(parents=True, exist_ok=True)
        write_spark_settings(Path(env[SPARK_PROPERTIES]).parent, self.project, self.profile)
        if lineage := self.profile.lineage_of(self.project):
            lineage.make_folder()
        self._set_up(env, "migrate", "db", "migrate")
        with closing(sqlite3.connect(self.database, timeout=LOCKED_SECONDS)) as database:
            # stored in the file: readers do not block writers, and a commit waits for the disk once
            database.execute("PRAGMA journal_mode=WAL")
            slots = database.execute("SELECT slots FROM slot_pool WHERE pool = ?", (SPARK_POOL,)).fetchone()
        if slots != (self.profile.limits.steps,):
            steps = str(self.profile.limits.steps)
            self._set_up(env, "pool", "pools", "set", SPARK_POOL, steps, "Spark applications at a time")

    def _set_up(self, env: dict[str, str], name: str, *arguments: str) -> None:
        """Runs an airflow command with its output in the log `name`. Raises AirflowHomeError if it fails, DiskFullError
        where that is the reason."""
        with self.log(name).open("w") as log:
            done = subprocess.run(
                self.airflow(*arguments), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        if done.returncode and not os.statvfs(self.home).f_bavail:  # its log is empty then
            hint = "free some space, then run the same command again"
            raise DiskFullError(f"airflow {' '.join(arguments)} failed: the disk of {self.home} is full", hint=hint)
        if done.returncode:
            raise AirflowHomeError(f"airflow {' '.join(arguments)} failed\n{tail(self.log(name))}")

    @contextmanager
    def running(self) -> Iterator[Processes]:
        """Starts Airflow's processes with a new login password, without waiting for them; stops them on exit."""
        env = self.env()
        self.prepare(env)
        new_password(self.project)
        processes: Processes = {}
        with ExitStack() as stack:
            for component in COMPONENTS:
                log = stack.enter_context(self.log(component).open("w"))
                process = subprocess.Popen(
                    self.airflow(component),
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is ours to handle
                )
                stack.callback(stop, process)
                processes[component] = process
            yield processes

    def wait_until_up(self, processes: Processes) -> None:
        """Waits until the page answers and the scheduler and the DAG processor are healthy. Raises AirflowHomeError."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for component, process in processes.items():
                if process.poll() is not None:
                    raise AirflowHomeError(f"Airflow's {component} ended\n{tail(self.log(component))}")
            try:
                with urllib.request.urlopen(f"{self.url}/api/v2/monitor/health", timeout=5) as answer:
                    health = json.load(answer)
                if all(health[part]["status"] == "healthy" for part in ("scheduler", "dag_processor")):
                    return
            except (urllib.error.URLError, OSError, KeyError, ValueError):
                pass
            time.sleep(0.5)
        logs = "\n\n".join(f"== {self.log(part)}\n{tail(self.log(part))}" for part in COMPONENTS)
        raise AirflowHomeError(f"Airflow is not up after {START_SECONDS:.0f} s\n{logs}")


def lineage_settings(lineage: Lineage) -> dict[str, str]:
    """Settings that send Airflow's lineage events to the steps' transport, and pass the task run to each step."""
    return {
        "OPENLINEAGE__TRANSPORT": json.dumps(lineage.transport.client()),
        "OPENLINEAGE__NAMESPACE": lineage.airflow_namespace,
        "OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO": "True",
    }


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stops a process of ours and its children: terminates them, and kills those that do not end."""
    family: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        family = [*parent.children(recursive=True), parent]
    for member in family:
        quietly(member.terminate)
    _, alive = psutil.wait_procs(family, timeout=STOP_SECONDS)
    for member in alive:
        quietly(member.kill)
    process.wait(timeout=STOP_SECONDS)


def quietly(act: Callable[[], object]) -> None:
    with suppress(psutil.NoSuchProcess):
        act()


def stop_on_signals() -> None:
    """Turns SIGINT, SIGTERM and SIGHUP into KeyboardInterrupt, so that context managers stop child processes."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)  # a background process inherits that SIGINT is ignored
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)


def own_home(port: int = USUAL_PORT, *, scheduled: bool = True) -> AirflowHome:
    """The Airflow of this project. Raises ProjectError, ProfileError, UnsafeStoreError."""
    project = find_project(os.environ.get("TRENDLAKE_PROJECT", ROOT))
    profile = load_profile(project)
    refuse_airflow(profile, project)
    return AirflowHome(project, profile, port, scheduled=scheduled)
