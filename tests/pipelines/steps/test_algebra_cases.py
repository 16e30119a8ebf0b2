"""The worked cases of kind algebra on Spark: Delta in, the pipelines' own steps, the expected rows out; and revised."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.conftest import CHAOS, ROOT
from tests.random.profile import every
from tests.reference.automaton.expression import EPOCH
from tests.support import cases
from tests.support.intervals import MICROSECOND, Case, load, plain, table_of
from tests.support.worked_cases import Answers, answers, questions_of, run_of, source_of
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A warehouse for all the cases."""
    return replace(find_project(ROOT), state=tmp_path_factory.mktemp("cases"))


ALL = [case for case in load() if not case.upstream]
CASES = every(4, ALL)


@pytest.fixture(scope="module")
def answers_of_cases(spark: SparkSession, lake: Project) -> dict[str, Answers]:
    """By the name of the case."""
    asked = [
        (cases.Case(case.name, case.query, [dict(row) for row in case.rows], [], generated=False), case.query)
        for case in CASES
    ]
    answered = answers(questions_of(spark, lake, "cases", asked, table_of))
    return dict(zip((case.name for case in CASES), answered, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(answers_of_cases: dict[str, Answers], case: Case) -> None:
    """The rows are the expected ones, each once, however the events are cut by time."""
    expected = sorted(str(sorted(row.items())) for row in case.expect)
    assert len(answers_of_cases[case.name]) == 2
    for cut, rows in answers_of_cases[case.name].items():
        actual = [
            {name: (cell - EPOCH) // MICROSECOND if isinstance(cell, datetime) else cell for name, cell in row.items()}
            for row in rows
        ]
        assert sorted(str(sorted(_as_expected(row, case).items())) for row in actual) == expected, cut


REVISED = (
    "fold-branches-at-one-time",
    "instants-count-events",
    "null-ends-a-fold",
    "dur-as-an-upper-bound-ends-the-wait",
)
"""`make chaos` revises all."""


@pytest.mark.long
@pytest.mark.more_in_chaos
@pytest.mark.parametrize("case", [case for case in ALL if CHAOS or case.name in REVISED], ids=lambda case: case.name)
def test_revised(spark: SparkSession, lake: Project, case: Case) -> None:
    """Every second event comes after the run: a revision gives the expected rows. When these events go again, another
    gives the rows of the first run."""
    table = table_of(case.rows)
    whole = cases.Case(f"{case.name}-revised", case.query, [], [], generated=False)
    first, later = (table.take(pa.array(range(half, len(table), 2), pa.int64())) for half in (0, 1))
    contract = source_of(lake, whole, table_of=lambda _: first, feed=True)
    query = {**case.query, "name": case.name.replace("-", "_")}
    run = run_of(spark, lake, contract, query, table["event_time"].cast(pa.int64()).to_pylist())
    path = run.warehouse.source(contract.name)
    for step in ("check_source", "compute", "check_results", "publish"):
        STEPS[step](run)
    before = rows_of(run, case)
    write_deltalake(path, later, mode="append")
    revise(replace(run, run_id="later"))
    assert rows_of(run, case) == sorted(str(sorted(row.items())) for row in case.expect)
    gone = ", ".join(map(repr, later["event_id"].to_pylist()))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE event_id IN ({gone})")  # delta-rs's changes are read by Spark only
    revise(replace(run, run_id="gone"))
    assert rows_of(run, case) == before


def rows_of(run: Run, case: Case) -> list[str]:
    """The published rows, as `case.expect` has them."""
    rows = plain(DeltaTable(run.warehouse.results(run.name)).to_pyarrow_table(columns=run.plan.result_schema.names))
    return sorted(str(sorted(_as_expected(row, case).items())) for row in rows)


def _as_expected(row: dict[str, object], case: Case) -> dict[str, object]:
    """Whole doubles as whole numbers, where the case writes them so."""
    wholes = {name for one in case.expect for name, cell in one.items() if isinstance(cell, int)}
    return {n: int(v) if n in wholes and isinstance(v, float) and v.is_integer() else v for n, v in row.items()}
