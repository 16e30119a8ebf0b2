"""The worked cases of every kind on Spark: Delta in, the pipelines' own steps, the expected rows out."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.random.profile import every
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES, differences, to_table
from tests.support.worked_cases import Answers, Question, answers, questions_of, run_of, source_of
from trendlake.pipelines.project.paths import Project, find_project

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A warehouse for all the cases."""
    return replace(find_project(ROOT), state=tmp_path_factory.mktemp("cases"))


def sliding(case: Case) -> Mapping[str, Any]:
    """The query over windows that overlap: a third of `within` apart."""
    amount, unit = str(case.query["within"]).split()
    seconds = int(amount) * {"seconds": 1, "hour": 3600}[unit]
    return {**case.query, "slide": f"{-(-seconds // 3)} seconds"}


TRENDS = every(4, load())
ALL_OTHERS = [*load("matches.yaml"), *load("automaton.yaml")]
OTHERS = every(3, ALL_OTHERS)


@pytest.fixture(scope="module")
def answers_of_others(spark: SparkSession, lake: Project) -> dict[str, Answers]:
    """By the name of the case."""
    answered = answers(questions_of(spark, lake, "others", [(case, case.query) for case in OTHERS]))
    return dict(zip((case.name for case in OTHERS), answered, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.name)
def test_case_of_another_kind(answers_of_others: dict[str, Answers], case: Case) -> None:
    """The rows are the expected ones, each once, however the events are cut by time."""
    columns = list(case.expect[0])
    expected = sorted(str([row[name] for name in columns]) for row in case.expect)
    assert len(answers_of_others[case.name]) == 2
    for cut, rows in answers_of_others[case.name].items():
        assert sorted(str([row[name] for name in columns]) for row in rows) == expected, cut


@pytest.fixture(scope="module")
def answers_of_trends(spark: SparkSession, lake: Project) -> dict[str, list[Answers]]:
    """By the name of the case: to its own query, and to the one over windows that overlap."""
    asked = [(case, query) for case in TRENDS for query in (case.query, sliding(case))]
    answered = answers(questions_of(spark, lake, "trends", asked))
    return {case.name: answered[2 * number : 2 * number + 2] for number, case in enumerate(TRENDS)}


@pytest.mark.long
@pytest.mark.parametrize("case", TRENDS, ids=lambda case: case.name)
def test_case(answers_of_trends: dict[str, list[Answers]], case: Case) -> None:
    """The rows are the expected ones; and where windows overlap and an event goes to several time shards, the rows are
    those of the reference, or of the kernels over everything at once where trends are too many to enumerate."""
    own, overlapping = answers_of_trends[case.name]
    assert len(own) == len(overlapping) == 2
    for cut, rows in own.items():
        assert unexpected(case, rows) == [], cut
    expected = ENGINES["kernels" if case.generated else "reference"](sliding(case), case.events)
    for cut, rows in overlapping.items():
        assert differences(expected, rows, case.query.get("group_by", ())) == [], cut


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["sase-query-3-skip_till_next_match", pytest.param("afa-v-pattern-k2", marks=pytest.mark.repeats)]
)
def test_order_and_commits_do_not_matter(spark: SparkSession, lake: Project, name: str) -> None:
    """The rows of a case in three orders, drawn by lot, each over as many commits as the lot says."""
    chance = random.Random(11)
    (case,) = (case for case in ALL_OTHERS if case.name == name)
    columns = list(case.expect[0])
    expected = sorted(str([row[column] for column in columns]) for row in case.expect)
    times, asked = to_table(case.events)["event_time"].cast(pa.int64()).to_pylist(), []
    for number in range(3):
        rows = chance.sample(case.events, len(case.events))
        parts = sorted(chance.sample(range(1, len(rows)), chance.randint(1, 2)))
        split = replace(case, name=f"{name} {number}")
        contract = source_of(lake, split, [rows[a:b] for a, b in pairwise([0, *parts, len(rows)])])
        asked.append(Question(run_of(spark, lake, contract, case.query, times), len(times), len(parts)))
    for number, answer in enumerate(answers(asked)):
        for cut, actual in answer.items():
            assert sorted(str([row[column] for column in columns]) for row in actual) == expected, (number, cut)
