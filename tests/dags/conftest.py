"""A real Airflow for tests: its own home on SQLite, its own ports. It runs in processes of its own only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.lineage_events import LINEAGE
from trendlake.jobs.airflow.home import ROOT, AirflowHome, free_port
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import load_profile
from trendlake.pipelines.spark.jars import jars_folder

AirflowCommand = Callable[..., str]
AirflowCommands = Callable[..., list[str]]
Rows = list[dict[str, Any]]
SEVERAL = """
import json, sys
from airflow.__main__ import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        if end.code and "list-import-errors" not in words:  # which answers 1 when there are some
            raise
    print(chr(30), flush=True)
"""
"""Runs commands one after another: Airflow takes longer to import than most of them take."""
PARSE = ("dag-processor", "--num-runs", "1")
"""Has Airflow's DAG processor look at every file once."""
ODD_FOLDER = "it's a\\xy {{ 7 * 7 }}"
FOREIGN = "stock"
"""The source whose table other programs write."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowHome]:
    """An Airflow home that serves a copy of the project's patterns, below a folder with an odd name; schedules start
    nothing. Lineage goes to a file."""
    own = find_project(ROOT)
    folder = tmp_path_factory.mktemp("airflow")
    patterns = folder / ODD_FOLDER / "patterns"
    shutil.copytree(own.patterns, patterns)
    project = Project(folder / ODD_FOLDER / "project", folder / "state")
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
def airflow_commands(home: AirflowHome) -> AirflowCommands:
    """Runs airflow commands in that home, in one process, and returns what each printed."""
    env = home.env()

    def run(*commands: Sequence[str]) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", SEVERAL, json.dumps(commands)],
            env=env,
            cwd=home.project.state,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        *printed, _ = done.stdout.split(chr(30))
        return printed

    return run


@pytest.fixture(scope="session")
def airflow(airflow_commands: AirflowCommands) -> AirflowCommand:
    """Runs an airflow command in that home and returns what it printed."""
    return lambda *arguments: airflow_commands(arguments)[0]


@pytest.fixture
def patterns(home: AirflowHome) -> Iterator[Path]:
    """The folder of pattern files; what a test adds to it is removed again."""
    assert home.patterns is not None
    before = set(home.patterns.iterdir())
    yield home.patterns
    for added in set(home.patterns.iterdir()) - before:
        shutil.rmtree(added) if added.is_dir() and not added.is_symlink() else added.unlink()


def rows(printed: str) -> Rows:
    """The table that `airflow ... -o json` printed, which may follow other lines."""
    start = printed.find("[{")
    return json.loads(printed[start:]) if start >= 0 else []
