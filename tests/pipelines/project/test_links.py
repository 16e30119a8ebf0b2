"""A file of the project that is a link out of it is not read: errors quote lines, and pages show patterns."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.authoring.pattern_tests import files_of_tests, run_tests
from trendlake.pipelines.authoring.validate import check_files
from trendlake.pipelines.project.paths import Project

SECRET = "root:$6$not-for-analysts:19000:0:99999:7:::"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of this project's patterns and contracts, beside a file that is nobody's business."""
    root = tmp_path / "project"
    for part in ("conf", "data_contracts"):
        shutil.copytree(ROOT / part, root / part)
    (tmp_path / "shadow").write_text(f"{SECRET}\n")
    return Project(root, root / ".trendlake")


def said(project: Project, path: Path) -> str:
    ((_, error, _),) = check_files(project, [path])
    return str(error)


@pytest.mark.parametrize("folder", ["conf/patterns", "data_contracts"])
def test_a_link_out_of_the_project_is_refused_unread(project: Project, folder: str, tmp_path: Path) -> None:
    link = project.root / folder / "stolen.yaml"
    link.symlink_to(tmp_path / "shadow")
    answer = said(project, link)
    assert "is a link out of the project" in answer
    assert SECRET not in answer
    find = project.pattern_path if folder == "conf/patterns" else project.contract_path
    with pytest.raises(TrendlakeError, match="is a link out of the project"):
        find("stolen")
    # the others are checked all the same
    assert len(list(check_files(project, []))) > 5


def test_links_by_a_relative_path_and_of_links_too(project: Project, tmp_path: Path) -> None:
    first, second = project.patterns / "first.yaml", project.patterns / "second.yaml"
    first.symlink_to("../../../shadow")
    second.symlink_to("first.yaml")
    for link in (first, second):
        assert "is a link out of the project" in said(project, link)


def test_tests_of_patterns_too(project: Project, tmp_path: Path) -> None:
    file = files_of_tests(project)[0]
    file.unlink()
    file.symlink_to(tmp_path / "shadow")
    with pytest.raises(TrendlakeError, match="is a link out of the project"):
        list(run_tests(project, file))


def test_links_within_the_project_are_read(project: Project, tmp_path: Path) -> None:
    """As those by which Kubernetes mounts a folder of files; and whole folders may lie elsewhere."""
    (pattern,) = project.patterns.glob("delay_snowball.yaml")
    hidden = project.patterns / "..data"
    hidden.mkdir()
    pattern.rename(hidden / pattern.name)
    pattern.symlink_to(Path("..data") / pattern.name)
    assert said(project, pattern) == "None"
    elsewhere = tmp_path / "contracts"
    project.contracts.rename(elsewhere)
    project.contracts.symlink_to(elsewhere)
    assert said(project, pattern) == "None"
    assert said(project, project.contracts / "flights.yaml") == "None"
