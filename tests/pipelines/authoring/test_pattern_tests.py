"""Tests of patterns in YAML: what holds, how a difference and a mistake of the file are told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.cep_core.errors import PatternErrors
from trendlake.cep_core.events.schema import EventSchema
from trendlake.jobs.main import app
from trendlake.pipelines.authoring.pattern_tests import differences, files_of_tests, run_tests, table_of
from trendlake.pipelines.project.paths import Project, find_project


@pytest.fixture
def mine(tmp_path: Path) -> Project:
    """This project's patterns and contracts, in a folder where tests may be written."""
    for folder in ("conf", "data_contracts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return find_project(tmp_path)


def write(project: Project, text: str) -> Path:
    file = project.patterns / "tests" / "delay_snowball.yaml"
    file.write_text(text)
    return file


def test_every_pattern_of_the_project_has_tests_that_hold() -> None:
    project = find_project(ROOT)
    files = files_of_tests(project)
    assert [file.stem for file in files] == [file.stem for file in project.pattern_files()]
    verdicts = [verdict for file in files for verdict in run_tests(project, file)]
    assert verdicts
    assert not [line for verdict in verdicts for line in verdict.differences]


def test_a_difference_names_both_rows(mine: Project) -> None:
    file = write(
        mine,
        "- name: two\n  events:\n"
        "    - {event_time: 2013-03-01T12:00:00Z, event_type: Flight, carrier: UA, tailnum: N1, dep_delay: 5}\n"
        "  expect:\n    - {carrier: UA, snowballs: 2}\n",
    )
    (verdict,) = run_tests(mine, file)
    assert verdict.differences[0] == "missing    {carrier: UA, snowballs: 2}"
    assert verdict.differences[1].startswith("unexpected {snowballs: 1, ")
    result = CliRunner().invoke(app, ["test", "delay_snowball", "--project-dir", str(mine.root)])
    assert result.exit_code == 1
    assert "failed delay_snowball: two" in result.output
    assert "0 passed, 1 failed" in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {name: a, events: [{tailnun: N1}], expect: []}", "the source has no column 'tailnun'"),
        ("- {name: a, events: [], expect: [{snowbals: 1}]}", "did you mean 'snowballs'?"),
        ("- {name: a, event: [], expect: []}", "unknown key 'event'"),
        ("- {name: a, events: [{tailnum: N1}], expect: []}", "the event has no event_time"),
        (
            "- {name: a, events: [{event_time: 2013-03-01T12:00:00Z, dep_delay: late}], expect: []}",
            "dep_delay: expected double, found 'late'",
        ),
        ("- {name: a, events: [{event_time: soon}], expect: []}", "event_time: expected timestamp, found 'soon'"),
        ("name: a", "a file of tests is a list"),
    ],
)
def test_a_mistake_of_the_file_has_a_place(mine: Project, text: str, message: str) -> None:
    with pytest.raises(PatternErrors) as failure:
        list(run_tests(mine, write(mine, text + "\n")))
    assert message in str(failure.value)
    assert "delay_snowball.yaml:1:" in str(failure.value)


def test_a_row_that_says_little_takes_no_other_rows_place() -> None:
    """The first expected row fits both, the second only one: each finds its own."""
    actual = [{"a": 1, "b": 1}, {"a": 1, "b": 2}]
    assert differences([{"a": 1}, {"a": 1, "b": 1}], actual) == []
    assert differences([{"a": 1}, {"a": 1}, {"a": 1}], actual) == ["missing    {a: 1}"]


@pytest.mark.long
def test_pytest_runs_them_too(mine: Project) -> None:
    """By the plugin: one test of pytest each, and a failure of one says why."""
    file = mine.patterns / "tests" / "delay_snowball.yaml"
    file.write_text(file.read_text().replace("snowballs: 7", "snowballs: 8"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "trendlake.pytest_plugin", str(file.parent)],
        cwd=mine.root,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 1
    assert "1 failed, 6 passed" in done.stdout
    assert "missing    {carrier: UA" in done.stdout


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("string", [None, "x", None], ["event 000001", "x", "event 000003"]),
        ("bigint", [None, 7, None], [8, 7, 10]),
        ("bigint", [None, None, None], [1, 2, 3]),
    ],
)
def test_an_event_without_an_id_is_named_by_its_place(kind: str, given: list[Any], wanted: list[Any]) -> None:
    schema = EventSchema({"event_id": kind, "event_time": "timestamp", "event_type": "string"})
    events = [{} if name is None else {"event_id": name} for name in given]
    assert table_of(events, schema).column("event_id").to_pylist() == wanted
