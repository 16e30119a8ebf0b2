"""Files that are no patterns: hidden ones are passed over, others are errors of their own, and no other file is
touched by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.odd_entries import MARK, hidden, make, odd, unreadable
from tests.support.own_source import FALLING, output_of, start
from trendlake.jobs.main import app
from trendlake.pipelines.authoring.pattern_tests import folder_of_tests
from trendlake.pipelines.project.paths import Project, files_of, find_project, odd_entries
from trendlake.pipelines.project.selection import Patterns

ROWS = "id,at,company,price\nt1,2026-01-05T09:00:00Z,A,10\nt2,2026-01-05T09:00:01Z,A,9.5\n"
GOOD = FALLING.replace("name: falling", "name: good") + "tags: [wanted]\n"
TESTS = "- {name: none, events: [], expect: []}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project below a folder with quotes and a backslash, with odd entries beside the pattern `good`, the contract
    `trades` and the tests of `good`."""
    folder = tmp_path_factory.mktemp("odd") / 'it\'s a\\xy "{{ 7 * 7 }}"'
    folder.mkdir()
    start(folder, folder / "trades.csv", ROWS)
    project = Project(folder, folder / ".trendlake")
    (project.patterns / "good.yaml").write_text(GOOD)
    contract = (project.contracts / "trades.yaml").read_text()
    folder_of_tests(project).mkdir(exist_ok=True)
    (folder_of_tests(project) / "good.yaml").write_text(TESTS)
    for place, text in ((project.patterns, GOOD), (project.contracts, contract), (folder_of_tests(project), TESTS)):
        make(place, odd(text) | hidden(text))
    return project


def documents(project: Project, *arguments: object, code: int) -> dict[str, Any]:
    words = [*arguments, "--project-dir", project.root, "--json"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_there_are_more_than_forty() -> None:
    assert len(odd("")) + len(hidden("")) + len(unreadable()) > 40


def test_only_patterns_are_files(project: Project) -> None:
    """Each odd entry is named once, on one line that any terminal shows; hidden ones are not."""
    assert [path.name for path in project.pattern_files()] == ["good.yaml"]
    assert [path.stem for path in project.source_contracts()] == ["trades"]
    entries = odd_entries(project.patterns, project.root)
    assert {path.name for path, _ in entries} == set(odd(""))
    for _, error in entries:
        assert error.message.isprintable()
        assert error.hint


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder.yaml", "it is a folder"),
        ("pipe.yaml", "it is no file"),
        ("nowhere.yaml", "a link that leads nowhere"),
        ("loop.yaml", "a link that leads nowhere"),
        ("passwords.yaml", "a link out of the project"),
        ("Upper.yaml", "a lower case letter, then those, digits and _"),
        ("other.yml", "then .yaml"),
    ],
)
def test_an_odd_entry_is_told_in_words(project: Project, name: str, why: str) -> None:
    error = {path.name: error for path, error in odd_entries(project.patterns, project.root)}[name]
    assert why in error.message


def test_validate_reports_all_and_stops_at_none(project: Project) -> None:
    files = documents(project, "validate", code=1)["files"]
    good = [Path(item["file"]).name for item in files if item["good"]]
    assert {"good.yaml", "trades.yaml"} <= set(good)
    assert sum(not item["good"] for item in files) == 2 * len(odd(""))
    assert all("is not read" in item["error"] for item in files if not item["good"])


def test_selectors_select_good_ones(project: Project) -> None:
    """Also where all patterns have to be read."""
    assert Patterns(project).select(["tag:wanted"]) == ["good"]
    assert Patterns(project).select(["*"]) == ["good"]
    assert [item["pattern"] for item in documents(project, "ls", code=0)["patterns"]] == ["good"]


def test_tests_run(project: Project) -> None:
    """Odd entries among the tests are errors: a test that nobody runs would be no test."""
    assert documents(project, "test", code=1)["passed"] == 1
    assert documents(project, "test", "good", code=0)["passed"] == 1


@pytest.mark.parametrize("name", ["passwords.yaml", ".#good.yaml", "folder.yaml", "Upper.yaml", "two\nlines.yaml"])
def test_an_odd_entry_that_a_command_names_is_an_error(project: Project, name: str) -> None:
    for command in ("validate", "explain"):
        out = output_of(command, project.patterns / name, "--project-dir", project.root, code=1)
        assert "Traceback" not in out
        assert "root:" not in out


def test_files_with_a_good_name_and_no_good_text(project: Project, tmp_path: Path) -> None:
    """Each is an error with its place; of one that is too long no more is read than is needed to say so."""
    other = Project(tmp_path, tmp_path / "state")
    other.patterns.mkdir(parents=True)
    make(other.patterns, unreadable())
    assert other.renamed("good") is None
    for path in files_of(other.patterns, tmp_path):
        assert "Traceback" not in output_of("validate", path, "--project-dir", project.root, code=1)


def test_no_name_was_run(project: Project) -> None:
    assert not (Path.cwd() / MARK).exists()
    assert find_project(project.root).root == project.root.resolve()
