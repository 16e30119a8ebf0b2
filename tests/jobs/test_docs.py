"""`trendlake docs`: every page of docs can be found and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.jobs.main import app

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def test_all_pages_are_listed() -> None:
    """Each once, by a name that no other has, the tutorial first."""
    listed = CliRunner().invoke(app, ["docs"]).stdout.splitlines()
    names = [line.split()[0] for line in listed]
    assert sorted(names) == sorted(path.stem for path in PAGES)
    assert len(set(names)) == len(names)
    assert names[0] == "tutorial"
    pages = json.loads(CliRunner().invoke(app, ["docs", "--json"]).stdout)["pages"]
    assert [page["page"] for page in pages] == names
    assert all(page["title"] for page in pages)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_its_text(path: Path) -> None:
    assert CliRunner().invoke(app, ["docs", path.stem]).stdout == path.read_text()
    assert json.loads(CliRunner().invoke(app, ["docs", path.stem, "--json"]).stdout)["text"] == path.read_text()


def test_a_name_there_is_not() -> None:
    ended = CliRunner().invoke(app, ["docs", "tutorail"])
    assert ended.exit_code == 1
    assert "did you mean 'tutorial'?" in ended.stderr
