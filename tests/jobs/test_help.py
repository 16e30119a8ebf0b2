"""The first screen of the command's help; and another package in front of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.jobs.main import PANELS, STEPS, app, first_line

WIDTH = 80


def test_every_command_is_in_one_panel_or_a_step_of_a_run() -> None:
    named = [name for names in PANELS.values() for name in names]
    assert len(named) == len(set(named))
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert sorted([*named, *STEPS]) == sorted(name for name, command in commands.items() if not command.hidden)
    assert [name for name, command in commands.items() if command.hidden] == ["run-steps"]


def test_each_line_stands_uncut_on_a_terminal_of_80_columns() -> None:
    shown = CliRunner().invoke(app, ["--help"], terminal_width=WIDTH, env={"COLUMNS": str(WIDTH)}).output.splitlines()
    assert max(map(len, shown)) <= WIDTH
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for names in PANELS.values():
        for name in names:
            does = first_line(commands[name].help)
            assert any(line.split() == [name, *does.split()] for line in shown), name


def test_steps_are_not_on_the_first_screen_but_can_be_asked_about() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    panels = shown[shown.index("Write:") : shown.index("The steps of a run")]
    assert not [step for step in STEPS if f"\n  {step} " in panels]
    for step in STEPS:
        assert "Step" in CliRunner().invoke(app, [step, "--help"]).output


def test_folders_of_a_project_do_not_stand_in_the_way(tmp_path: Path) -> None:
    """A team has packages `jobs`, `pipelines` and `cep_core` of its own, first on Python's path."""
    for package in ("jobs", "pipelines", "cep_core"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise ImportError('this is not the one of Trendlake')")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "trendlake.command", "validate", "--project-dir", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_module_is_the_command() -> None:
    command = [sys.executable, "-m", "trendlake.command", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.startswith("trendlake ")
