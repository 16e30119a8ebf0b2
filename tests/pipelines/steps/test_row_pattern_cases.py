"""The worked cases of kind match_recognize on Spark: Delta in, the pipelines' own steps, the expected rows out; and
revised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.conftest import CHAOS, ROOT
from tests.random.profile import every
from tests.support import cases
from tests.support.row_patterns import Case, load, only, rows_of, seconds, table_of
from tests.support.worked_cases import Answers, answers, questions_of, run_of, source_of
from trendlake.cep_core import TrendlakeError
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")]

ALL = [case for case in load() if case.expect is not None]
CASES = every(10, ALL)
"""Each has a source of its own, which Spark takes a second to read."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A warehouse for all the cases."""
    return replace(find_project(ROOT), state=tmp_path_factory.mktemp("cases"))


@pytest.fixture(scope="module")
def answers_of_cases(spark: SparkSession, lake: Project) -> dict[str, Answers]:
    """By the name of the case."""
    asked = [(_stored(case), case.query) for case in CASES]
    answered = answers(questions_of(spark, lake, "cases", asked, table_of))
    return dict(zip((case.name for case in CASES), answered, strict=True))


def _stored(case: Case, name: str = "") -> cases.Case:
    return cases.Case(name or case.name, case.query, [dict(row) for row in case.events], [], generated=False)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(answers_of_cases: dict[str, Answers], case: Case) -> None:
    """The rows are the expected ones, each once, however the events are cut by time."""
    assert len(answers_of_cases[case.name]) == 2
    for cut, rows in answers_of_cases[case.name].items():
        assert_expected([{name: seconds(cell) for name, cell in row.items()} for row in rows], case, cut)


def assert_expected(rows: Sequence[Mapping[str, Any]], case: Case, about: str) -> None:
    wanted = case.expect or []
    assert len(rows) == len(wanted), about
    if wanted:
        assert only(rows, list(wanted[0])) == only(wanted, list(wanted[0])), about


@pytest.mark.parametrize("case", [case for case in load() if case.code is not None], ids=lambda case: case.name)
def test_error(spark: SparkSession, lake: Project, case: Case) -> None:
    """An error of the rows reaches the user from the workers in its own words."""
    table = table_of(case.events)
    contract = source_of(lake, _stored(case, f"{case.name}-failing"), table_of=lambda _: table)
    query = {**case.query, "name": case.name.replace("-", "_")}
    run = run_of(spark, lake, contract, query, table["event_time"].cast(pa.int64()).to_pylist())
    STEPS["check_source"](run)
    with pytest.raises(TrendlakeError) as raised:
        STEPS["compute"](run)
    assert raised.value.code == case.code
    assert str(case.error) in str(raised.value)


REVISED = ("v-shape-one-row", "within", "skip-to-next-row", "with-unmatched-rows")


@pytest.mark.long
@pytest.mark.more_in_chaos
@pytest.mark.parametrize("case", [case for case in ALL if CHAOS or case.name in REVISED], ids=lambda case: case.name)
def test_revised(spark: SparkSession, lake: Project, case: Case) -> None:
    """Every second event comes after the run: a revision gives the expected rows. When these events go again, another
    gives the rows of the first run."""
    table = table_of(case.events)
    first, later = (table.take(pa.array(range(half, len(table), 2), pa.int64())) for half in (0, 1))
    contract = source_of(lake, _stored(case, f"{case.name}-revised"), table_of=lambda _: first, feed=True)
    query = {**case.query, "name": case.name.replace("-", "_")}
    run = run_of(spark, lake, contract, query, table["event_time"].cast(pa.int64()).to_pylist())
    path = run.warehouse.source(contract.name)
    for step in STEPS.values():
        step(run)
    before = published(run)
    write_deltalake(path, later, mode="append")
    revise(replace(run, run_id="later"))
    assert_expected(published(run), case, "later")
    gone = ", ".join(map(repr, later["event_id"].to_pylist()))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE event_id IN ({gone})")  # delta-rs's changes are read by Spark only
    revise(replace(run, run_id="gone"))
    assert published(run) == before


def published(run: Run) -> list[dict[str, Any]]:
    rows = rows_of(DeltaTable(run.warehouse.results(run.name)).to_pyarrow_table(columns=run.plan.result_schema.names))
    return only(rows, run.plan.result_schema.names)
