"""Lakes for the tests: one for each test, or one for a whole module whose tests only look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from pipelines.profile import Profile
from pipelines.project import Project, find_project
from tests.conftest import ROOT
from tests.pipeline.flights import Lake
from tests.pipeline.kills import TALLY
from tests.pipeline.promises import HISTORIES


@pytest.fixture
def lake(spark: SparkSession, project: Project) -> Lake:
    return Lake(spark, project, Profile(master="local[2]"))


@pytest.fixture(scope="module")
def shared_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    project = replace(find_project(ROOT), state=tmp_path_factory.mktemp("lake") / "state")
    return Lake(spark, project, Profile(master="local[2]"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """After the tests: the kills by place, the histories by pattern."""
    for what, told in (("kills", TALLY), ("histories", HISTORIES)):
        if told:
            terminalreporter.section(f"{told.total()} {what}")
            for place, number in sorted(told.items()):
                terminalreporter.write_line(f"{number:5d}  {place}")
