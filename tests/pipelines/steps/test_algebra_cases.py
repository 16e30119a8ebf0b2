"""The worked cases of kind algebra on Spark: Delta in, the pipelines' own steps, the expected rows out."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipelines.project.paths import Project, find_project
from tests.conftest import ROOT
from tests.reference.automaton.expression import EPOCH
from tests.support import cases
from tests.support.intervals import MICROSECOND, Case, load, table_of
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
    contract = source_of(spark, lake, whole, table_of=table_of)
    times = table_of(rows)["event_time"].cast(pa.int64()).to_pylist()
    expected = sorted(str(sorted(row.items())) for row in case.expect)
    for cut, found_rows in answers(run_of(spark, lake, contract, case.query, times), len(times)).items():
        actual = [
            {name: (cell - EPOCH) // MICROSECOND if isinstance(cell, datetime) else cell for name, cell in row.items()}
            for row in found_rows
        ]
        assert sorted(str(sorted(_as_expected(row, case).items())) for row in actual) == expected, cut


def _as_expected(row: dict[str, object], case: Case) -> dict[str, object]:
    """Whole doubles as whole numbers, where the case writes them so."""
    wholes = {name for one in case.expect for name, cell in one.items() if isinstance(cell, int)}
    return {n: int(v) if n in wholes and isinstance(v, float) and v.is_integer() else v for n, v in row.items()}
