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

from pipelines.project.paths import Project, find_project
from tests.conftest import ROOT
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES, differences, to_table
from tests.support.worked_cases import answers, run_of, source_of

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


@pytest.mark.parametrize("case", [*load("matches.yaml"), *load("automaton.yaml")], ids=lambda case: case.name)
def test_case_of_another_kind(spark: SparkSession, lake: Project, case: Case) -> None:
    """The rows are the expected ones, each once, however the events are cut by time."""
    contract = source_of(lake, case)
    times = to_table(case.events)["event_time"].cast(pa.int64()).to_pylist()
    columns = list(case.expect[0])
    expected = sorted(str([row[name] for name in columns]) for row in case.expect)
    for cut, rows in answers(run_of(spark, lake, contract, case.query, times), len(times)).items():
        assert sorted(str([row[name] for name in columns]) for row in rows) == expected, cut


@pytest.mark.parametrize("case", load(), ids=lambda case: case.name)
def test_case(spark: SparkSession, lake: Project, case: Case) -> None:
    """The rows are the expected ones; and where windows overlap and an event goes to several time shards, the rows are
    those of the reference, or of the kernels over everything at once where trends are too many to enumerate."""
    contract = source_of(lake, case)
    times = to_table(case.events)["event_time"].cast(pa.int64()).to_pylist()
    for cut, rows in answers(run_of(spark, lake, contract, case.query, times), len(times)).items():
        assert unexpected(case, rows) == [], cut
    query = sliding(case)
    expected = ENGINES["kernels" if case.generated else "reference"](query, case.events)
    for cut, rows in answers(run_of(spark, lake, contract, query, times), len(times)).items():
        assert differences(expected, rows, case.query.get("group_by", ())) == [], cut


@pytest.mark.parametrize("name", ["sase-query-3-skip_till_next_match", "afa-v-pattern-k2"])
def test_order_and_commits_do_not_matter(spark: SparkSession, lake: Project, name: str) -> None:
    """The rows of a case in three orders, drawn by lot, each over as many commits as the lot says."""
    chance = random.Random(11)
    (case,) = (case for file in ("matches.yaml", "automaton.yaml") for case in load(file) if case.name == name)
    times = to_table(case.events)["event_time"].cast(pa.int64()).to_pylist()
    columns = list(case.expect[0])
    expected = sorted(str([row[column] for column in columns]) for row in case.expect)
    for number in range(3):
        rows = chance.sample(case.events, len(case.events))
        parts = sorted(chance.sample(range(1, len(rows)), chance.randint(1, 2)))
        split = replace(case, name=f"{name} {number}")
        contract = source_of(lake, split, [rows[a:b] for a, b in pairwise([0, *parts, len(rows)])])
        run = run_of(spark, lake, contract, case.query, times)
        for cut, actual in answers(run, len(times), version=len(parts)).items():
            assert sorted(str([row[column] for column in columns]) for row in actual) == expected, (number, cut)
