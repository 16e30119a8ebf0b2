"""A real Airflow for tests: its own home on SQLite, its own ports. It runs in processes of its own only."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.airflow.home import ROOT, AirflowHome, free_port
from pipelines.project.paths import Project, find_project
from pipelines.project.profile import load_profile
from pipelines.spark.jars import jars_folder
from tests.support.lineage_events import LINEAGE

AirflowCommand = Callable[..., str]
Rows = list[dict[str, Any]]
FOREIGN = "stock"
"""The source whose table other programs write."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowHome]:
    """An Airflow home that serves a copy of the project's patterns; schedules start nothing. Lineage goes to a file."""
    own = find_project(ROOT)
    folder = tmp_path_factory.mktemp("airflow")
    patterns = folder / "patterns"
    shutil.copytree(own.patterns, patterns)
    project = Project(folder / "project", folder / "state")
    shutil.copytree(own.root / "conf", project.root / "conf")
    project.contracts.symlink_to(own.contracts)
    with (project.root / "conf" / "profiles" / "local.yaml").open("a") as profile:
        profile.write(f"lineage: {LINEAGE.model_dump_json()}\nsources: {{{FOREIGN}: /their/table}}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLAKE_JARS", str(jars_folder(own)))
        home = AirflowHome(project, load_profile(project, "local"), free_port(), patterns, scheduled=False)
        home.prepare(home.env())
        yield home


@pytest.fixture(scope="session")
def airflow(home: AirflowHome) -> AirflowCommand:
    """Runs an airflow command in that home and returns what it printed."""
    env = home.env()

    def run(*arguments: str) -> str:
        done = subprocess.run(
            home.airflow(*arguments),
            env=env,
            cwd=home.project.state,
            capture_output=True,
            text=True,
            check=False,
        )
        # `list-import-errors` answers 1 when there are some
        assert done.returncode == 0 or "list-import-errors" in arguments, done.stderr
        return done.stdout

    return run


@pytest.fixture
def patterns(home: AirflowHome, airflow: AirflowCommand) -> Iterator[Path]:
    """The folder of pattern files; what a test adds to it is removed again."""
    assert home.patterns is not None
    before = set(home.patterns.iterdir())
    yield home.patterns
    for added in set(home.patterns.iterdir()) - before:
        added.unlink()


def parse(airflow: AirflowCommand) -> None:
    """Has Airflow's DAG processor look at every file once."""
    airflow("dag-processor", "--num-runs", "1")


def rows(printed: str) -> Rows:
    """The table that `airflow ... -o json` printed, which may follow other lines."""
    start = printed.find("[{")
    return json.loads(printed[start:]) if start >= 0 else []
