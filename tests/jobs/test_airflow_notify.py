"""Who serves a project's Airflow, and what a command says to it. The rest is seen with a real one (tests/dags)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.jobs.airflow.home import free_port
from trendlake.jobs.airflow.lock import address, claimed
from trendlake.jobs.airflow.notify import IN_A_TASK, asset_of, notify_of_source
from trendlake.jobs.main import app
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import Project

HOLD = """
import sys, time
from pathlib import Path
from trendlake.jobs.airflow.lock import claimed
from trendlake.pipelines.project.paths import Project
with claimed(Project(Path(sys.argv[1]), Path(sys.argv[1]))) as file:
    file.write_text("http://localhost:1")
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path)


def test_an_address_holds_while_it_is_served(project: Project) -> None:
    assert address(project) is None
    with claimed(project) as file:
        assert address(project) is None  # it is starting
        file.write_text("http://localhost:1")
        assert address(project) == "http://localhost:1"
        with pytest.raises(ProjectError, match="runs already: http://localhost:1"), claimed(project):
            pass
        assert address(project) == "http://localhost:1"
    assert address(project) is None


def test_an_address_ends_with_its_process(project: Project) -> None:
    """A process that is killed cannot take back what it has written."""
    command = [sys.executable, "-c", HOLD, str(project.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert address(project) == "http://localhost:1"
        process.send_signal(signal.SIGKILL)
    assert address(project) is None


def test_an_airflow_that_does_not_answer(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told of, and is no failure of the command. In a task the outlet tells."""
    monkeypatch.delenv(IN_A_TASK, raising=False)
    assert not notify_of_source(project, "readings")
    assert capsys.readouterr() == ("", "")
    with claimed(project) as file:
        url = f"http://localhost:{free_port()}"
        file.write_text(url)
        assert not notify_of_source(project, "readings")
        assert f"{url} could not be notified of the new version of readings" in capsys.readouterr().err
        monkeypatch.setenv(IN_A_TASK, "ingest_readings")
        assert not notify_of_source(project, "readings")
        assert capsys.readouterr() == ("", "")


def test_assets_are_named_alike() -> None:
    assert asset_of("readings") == ("source_readings", "trendlake://sources/readings")
    assert asset_of("results/rising") == ("results_rising", "trendlake://results/rising")


def test_airflow_needs_a_project(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["airflow", "--project-dir", str(tmp_path), "dags", "list"])
    assert result.exit_code == 1
    assert "is no Trendlake project" in result.output
