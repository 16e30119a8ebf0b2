"""Which project a command is about, and which state folder is its."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import find_project


def project_in(folder: Path) -> Path:
    for part in ("conf", "data_contracts"):
        (folder / part).mkdir(parents=True)
    return folder.resolve()


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project around the working directory, with its state folder moved."""
    folder = project_in(tmp_path / "mine")
    monkeypatch.chdir(folder / "conf")
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "moved"))
    return folder


def test_a_moved_state_folder_is_that_of_the_project_around(mine: Path, tmp_path: Path) -> None:
    assert find_project().root == mine
    assert find_project().state == tmp_path / "moved"
    assert find_project(mine).state == tmp_path / "moved"


def test_another_project_keeps_its_own_state(mine: Path, tmp_path: Path) -> None:
    """`make` moves the state folder of its clone: a command about another project must not write there."""
    other = project_in(tmp_path / "other")
    assert find_project(other).state == other / ".trendlake"


def test_the_project_that_the_environment_names(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = project_in(tmp_path / "named")
    monkeypatch.setenv("TRENDLAKE_PROJECT", str(named))
    assert (find_project().root, find_project().state) == (named, tmp_path / "moved")
    assert find_project(mine).state == mine / ".trendlake"


def test_outside_of_any_project_the_moved_folder_is_of_the_one_given(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_project(mine).state == tmp_path / "moved"
    with pytest.raises(ProjectError, match="no project at or above"):
        find_project()


def test_a_folder_that_is_no_project(mine: Path, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="holds no folder conf/"):
        find_project(tmp_path)
