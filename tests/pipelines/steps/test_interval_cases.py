"""The worked cases of events with intervals on Spark: Delta in, the pipelines' own steps, the expected rows out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.random.profile import every
from tests.support.cases import Case, load
from tests.support.lasting_events import as_expected, table_of
from tests.support.worked_cases import Answers, answers, questions_of
from trendlake.pipelines.project.paths import find_project

pytestmark = pytest.mark.spark

CASES = every(3, [case for case in load("intervals.yaml") if case.error is None])


@pytest.fixture(scope="module")
def answers_of_cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """By the name of the case, by how the events were cut by time. Cases share sources, so that a run reads the events
    of later ones too."""
    lake = replace(find_project(ROOT), state=tmp_path_factory.mktemp("cases"))
    answered = answers(questions_of(spark, lake, "intervals", [(case, case.query) for case in CASES], table_of))
    return dict(zip((case.name for case in CASES), answered, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(answers_of_cases: dict[str, Answers], case: Case) -> None:
    """The rows are the expected ones, however the events are cut."""
    assert len(answers_of_cases[case.name]) == 2
    for cut, rows in answers_of_cases[case.name].items():
        assert as_expected(case, rows) == sorted(map(str, case.expect)), cut
