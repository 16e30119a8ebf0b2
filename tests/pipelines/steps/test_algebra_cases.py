"""The worked cases of kind algebra on Spark: Delta in, the pipelines' own steps, the expected rows out; and revised."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest
from delta import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pipelines.project.paths import Project, find_project
from pipelines.runs.run import Run
from pipelines.steps.revise import revise
from pipelines.steps.sequence import STEPS
from tests.conftest import CHAOS, ROOT
from tests.reference.automaton.expression import EPOCH
from tests.support import cases
from tests.support.intervals import MICROSECOND, Case, load, plain, table_of
from tests.support.worked_cases import answers, run_of, source_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A warehouse for all the cases."""
    return replace(find_project(ROOT), state=tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("case", [case for case in load() if not case.upstream], ids=lambda case: case.name)
def test_case(spark: SparkSession, lake: Project, case: Case) -> None:
    """The rows are the expected ones, each once, however the events are cut by time."""
    rows = [dict(row) for row in case.rows]
    whole = cases.Case(case.name, case.query, rows, [], generated=False)
    contract = source_of(lake, whole, table_of=table_of)
    times = table_of(rows)["event_time"].cast(pa.int64()).to_pylist()
    expected = sorted(str(sorted(row.items())) for row in case.expect)
    for cut, found_rows in answers(run_of(spark, lake, contract, case.query, times), len(times)).items():
        actual = [
            {name: (cell - EPOCH) // MICROSECOND if isinstance(cell, datetime) else cell for name, cell in row.items()}
            for row in found_rows
        ]
        assert sorted(str(sorted(_as_expected(row, case).items())) for row in actual) == expected, cut


REVISED = (
    "fold-branches-at-one-time",
    "instants-count-events",
    "null-ends-a-fold",
    "dur-as-an-upper-bound-ends-the-wait",
)
"""`make chaos` revises all."""


@pytest.mark.more_in_chaos
@pytest.mark.parametrize(
    "case",
    [case for case in load() if not case.upstream and (CHAOS or case.name in REVISED)],
    ids=lambda case: case.name,
)
def test_revised(spark: SparkSession, lake: Project, case: Case) -> None:
    """Every second event comes after the run: a revision gives the expected rows. When these events go again, another
    gives the rows of the first run."""
    table = table_of(case.rows)
    whole = cases.Case(f"{case.name}-revised", case.query, [], [], generated=False)
    contract = source_of(lake, whole, [case.rows[:0]], table_of=lambda rows: table.slice(0, 0))
    query = {**case.query, "name": case.name.replace("-", "_")}
    run = run_of(spark, lake, contract, query, table["event_time"].cast(pa.int64()).to_pylist())
    path = run.warehouse.source(contract.name)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")

    def deliver(first: int) -> None:
        some = table.take(pa.array(range(first, len(table), 2), pa.int64()))
        spark.createDataFrame(some).write.format("delta").mode("append").save(path)

    deliver(0)
    for step in ("check_source", "compute", "check_results", "publish"):
        STEPS[step](run)
    before = rows_of(run, case)
    deliver(1)
    revise(replace(run, run_id="later"))
    assert rows_of(run, case) == sorted(str(sorted(row.items())) for row in case.expect)
    late = table["event_id"].to_pylist()[1::2]
    DeltaTable.forPath(spark, path).delete(sf.col("event_id").isin(late))
    revise(replace(run, run_id="gone"))
    assert rows_of(run, case) == before


def rows_of(run: Run, case: Case) -> list[str]:
    """The published rows, as `case.expect` has them."""
    frame = run.spark.read.format("delta").load(run.warehouse.results(run.name))
    rows = plain(frame.select(*[f"`{name}`" for name in run.plan.result_schema.names]).toArrow())
    return sorted(str(sorted(_as_expected(row, case).items())) for row in rows)


def _as_expected(row: dict[str, object], case: Case) -> dict[str, object]:
    """Whole doubles as whole numbers, where the case writes them so."""
    wholes = {name for one in case.expect for name, cell in one.items() if isinstance(cell, int)}
    return {n: int(v) if n in wholes and isinstance(v, float) and v.is_integer() else v for n, v in row.items()}
