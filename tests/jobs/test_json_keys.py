"""The golden keys of `--json` documents. tests/end_to_end/test_json.py runs all commands; these need no Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.golden.documents import keys, stored
from tests.support.own_source import FALLING, pair_of_a_batch, start
from trendlake.jobs.main import app


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the source `trades`, a pattern over it and a test of the pattern."""
    folder = tmp_path_factory.mktemp("mine")
    rows = "".join(f"{number},2026-01-05T09:00:{number:02d},A,{60 - number}\n" for number in range(10))
    start(folder, folder / "trades.csv", "id,at,company,price\n" + rows)
    patterns = folder / "conf" / "patterns"
    (patterns / "falling.yaml").write_text(FALLING)
    pair_of_a_batch(patterns)
    (patterns / "tests").mkdir(exist_ok=True)
    (patterns / "tests" / "falling.yaml").write_text("- name: no events\n  events: []\n  expect: []\n")
    return folder


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("test", [["falling"]]),
        ("explain", [["falling"], ["first_of_two"]]),
        ("try", [["falling", "--events", "trades.csv"]]),
        ("new pattern", [["rising", "--kind", "trends"], ["sessions", "--like", "sessions"]]),
        ("docs", [[], ["tutorial"]]),
    ],
)
def test_documents_without_spark(
    project: Path, monkeypatch: pytest.MonkeyPatch, command: str, runs: list[list[str]]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("TRENDLAKE_PROJECT", str(project))
    documents = []
    for arguments in runs:
        result = CliRunner().invoke(app, [*command.split(), *arguments, "--json"])
        assert result.exit_code == 0, result.output
        documents.append(json.loads(result.stdout))
    assert keys(documents) == stored()[command]


def test_the_document_of_an_error(project: Path) -> None:
    result = CliRunner().invoke(app, ["show", "nothing", "--project-dir", str(project), "--json"])
    assert result.exit_code == 1
    assert keys([json.loads(result.stdout)]) == stored()["error"]


def test_keys_are_paths() -> None:
    """Keys of the user's own, such as columns, are not part of the format."""
    documents = [{"a": [{"b": 1}, {"c": None}]}, {"rows": [{"price": 1}]}]
    assert keys(documents) == ["a", "a[].b", "a[].c", "rows"]
