"""Lakes for the tests: one for each test, or one for a whole module whose tests only look.

Every run of the tests loads this file, so what needs Spark is imported where a lake is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.flights import Flights
    from trendlake.pipelines.project.paths import Project


@pytest.fixture
def lake(spark: SparkSession, project: Project) -> Flights:
    from tests.support.flights import Flights
    from trendlake.pipelines.project.profile import Profile

    return Flights(spark, project, Profile(master="local[2]"))


@pytest.fixture(scope="module")
def shared_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Flights:
    from tests.support.flights import Flights
    from trendlake.pipelines.project.paths import find_project
    from trendlake.pipelines.project.profile import Profile

    project = replace(find_project(ROOT), state=tmp_path_factory.mktemp("lake") / "state")
    return Flights(spark, project, Profile(master="local[2]"))


@pytest.fixture(scope="session")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Flights:
    """Day 1 as run `one`; day 2, with a row that breaks the contract, as `two`; day 2 again as `late`, after a flight
    that came late. Lineage goes to a file."""
    from tests.support.flights import Flights, all_steps, flight, renamed, snowball
    from tests.support.lineage_events import LINEAGE
    from trendlake.pipelines.project.paths import find_project
    from trendlake.pipelines.project.profile import Profile

    project = replace(find_project(ROOT), state=tmp_path_factory.mktemp("report"))
    lake = Flights(spark, project, Profile(master="local[2]", lineage=LINEAGE))
    broken = flight(500, "2013-03-02T12:00:00", carrier="<b>&", tailnum="N9XX")
    lake.deliver([*snowball(1, 5), *snowball(2, 3), *snowball(2, 12, "EV"), *snowball(2, 6, "B6"), broken])
    all_steps(lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "one"))
    second = lake.run(lake.pattern(), "2013-03-02", "2013-03-03", "two")
    all_steps(second)
    lake.deliver([flight(999, "2013-03-02T20:00:00", tailnum="N1UA", dep_delay=50.0)], feed="late")
    all_steps(renamed(second, "late"))
    return lake
