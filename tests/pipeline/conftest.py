"""Lakes for the tests: one for each test, or one for a whole module whose tests only look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from pipelines.project.paths import Project, find_project
from pipelines.project.profile import Profile
from tests.conftest import ROOT
from tests.lineage_events import LINEAGE
from tests.pipeline.flights import Lake, all_steps, flight, renamed, snowball
from tests.pipeline.kills import TALLY
from tests.pipeline.promises import HISTORIES, REVISIONS


@pytest.fixture
def lake(spark: SparkSession, project: Project) -> Lake:
    return Lake(spark, project, Profile(master="local[2]"))


@pytest.fixture(scope="module")
def shared_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    project = replace(find_project(ROOT), state=tmp_path_factory.mktemp("lake") / "state")
    return Lake(spark, project, Profile(master="local[2]"))


@pytest.fixture(scope="session")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Day 1 as run `one`; day 2, with a row that breaks the contract, as `two`; day 2 again as `late`, after a flight
    that came late. Lineage goes to a file."""
    project = replace(find_project(ROOT), state=tmp_path_factory.mktemp("report"))
    lake = Lake(spark, project, Profile(master="local[2]", lineage=LINEAGE))
    broken = flight(500, "2013-03-02T12:00:00", carrier="<b>&", tailnum="N9XX")
    lake.deliver([*snowball(1, 5), *snowball(2, 3), *snowball(2, 12, "EV"), *snowball(2, 6, "B6"), broken])
    all_steps(lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "one"))
    second = lake.run(lake.pattern(), "2013-03-02", "2013-03-03", "two")
    all_steps(second)
    lake.deliver([flight(999, "2013-03-02T20:00:00", tailnum="N1UA", dep_delay=50.0)], feed="late")
    all_steps(renamed(second, "late"))
    return lake


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """After the tests: the kills by place, the histories by pattern."""
    for what, told in (("kills", TALLY), ("histories", HISTORIES), ("revisions", REVISIONS)):
        if told:
            terminalreporter.section(f"{told.total()} {what}")
            for place, number in sorted(told.items()):
                terminalreporter.write_line(f"{number:5d}  {place}")
