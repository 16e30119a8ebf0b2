"""The worked cases of calendar windows on Spark: Delta in, the pipelines' own steps, the expected rows out."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.cep_core.trends.test_calendar_cases import CONTRADICTED, cases
from tests.conftest import ROOT
from tests.random.profile import every
from tests.support.cases import Case, unexpected
from tests.support.worked_cases import Answers, answers, questions_of
from trendlake.cep_core import PatternWarning
from trendlake.pipelines.project.paths import find_project

pytestmark = pytest.mark.spark

CASES = every(10, [case for case in cases() if case.name != CONTRADICTED])
"""Each has a source of its own."""


@pytest.fixture(scope="module")
def answers_of_cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """By the name of the case, by how the events were cut by time."""
    lake = replace(find_project(ROOT), state=tmp_path_factory.mktemp("cases"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)  # weeks without a time zone
        answered = answers(questions_of(spark, lake, "calendar", [(case, case.query) for case in CASES]))
    return dict(zip((case.name for case in CASES), answered, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(answers_of_cases: dict[str, Answers], case: Case) -> None:
    """The rows are the expected ones, however the events are cut."""
    assert answers_of_cases[case.name]
    for cut, rows in answers_of_cases[case.name].items():
        assert unexpected(case, rows) == [], cut
