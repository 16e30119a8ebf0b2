"""A pattern whose events last is tried on whole windows, with all events in them, also those that end later."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.lasting_events import SECOND, table_of
from tests.support.worked_cases import contract_of
from trendlake.cep_core import AnyPlan, compile_query, load_pattern, run_plan
from trendlake.pipelines.authoring.trial import sample
from trendlake.pipelines.authoring.trial_rows import HeldRows
from trendlake.pipelines.authoring.trial_tables import TrialTables
from trendlake.pipelines.contracts.sources import SOURCE, Sources
from trendlake.pipelines.errors import SampleTooLargeError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.rules.split import split
from trendlake.pipelines.runs.run import Run

QUERY = {
    "kind": "trends",
    "pattern": "S",
    "interval_start": "start",
    "return": {"lasted": "SUM(S.duration)"},
    "within": "20 seconds",
    "slide": "10 seconds",
}


class Held(HeldRows):
    where, version = "memory", None

    def watermark(self, near: tuple[int, int] | None) -> int:
        raise AssertionError("the pattern does not wait")


def without_java() -> SparkSession:
    raise AssertionError("Java is not needed")


@pytest.mark.parametrize("seed", range(20))
def test_the_rows_are_those_of_all_events(seed: int) -> None:
    chance = random.Random(seed)
    rows = []
    for n in range(12):
        end = chance.randrange(200)
        start = chance.choice([None, end, end - chance.randrange(70)])
        rows.append({"id": f"e{n}", "type": "S", "start": start, "time": end})
    table = table_of(rows)
    contract = contract_of("signals", table)
    plan = compile_query(QUERY, contract.event_schema())
    lake, project = Lake(Warehouse("/nowhere"), without_java), Project(Path("/nowhere"), Path("/nowhere"))
    run = Run(lake, project, Profile(), load_pattern(QUERY), Sources.of(contract), plan, "try", 0, 1)
    source = TrialTables(run, {SOURCE: Held(table, split(table, contract), contract, ["start"])})
    every = {str(row) for row in run_plan(plan, table).to_pylist()}
    whole = sample(plan, source, 100)
    assert {str(row) for row in whole.rows.to_pylist()} == every
    assert (whole.taken, whole.good) == (12, 12)
    for most in (1, 3, 6):
        try:
            newest = sample(plan, source, most)
        except SampleTooLargeError:
            continue
        low, high = plan.windows.span(newest.windows)
        begins = [row["time"] if row["start"] is None else row["start"] for row in rows]
        near = zip(rows, begins, strict=True)
        assert newest.taken <= most
        assert newest.taken == sum(row["time"] * SECOND >= low and begin * SECOND < high for row, begin in near)
        assert {str(row) for row in newest.rows.to_pylist()} == of(plan, table, newest.windows)
    some = sample(plan, source, 100, (50 * SECOND, 80 * SECOND))
    assert {str(row) for row in some.rows.to_pylist()} == of(plan, table, some.windows)


def of(plan: AnyPlan, table: pa.Table, windows: range) -> set[str]:
    return {str(row) for row in run_plan(plan, table, windows).to_pylist()}
