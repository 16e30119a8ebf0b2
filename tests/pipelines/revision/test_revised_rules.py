"""A late row is revised in this process by the rules that Spark's workers evaluate: rows that were good stay good, and
no rule makes `revise` fail."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import ROOT, SETTINGS
from tests.support import plain_writer
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree
from tests.support.signals import CONTRACT, DAY_US, START_US, Signals, signals
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

PATTERN = """\
kind: trends
origin: 2026-01-01T00:00:00Z
pattern: A a+
return: {n: COUNT(*)}
group_by: [place]
within: 1 day
"""
REMARK = "      - {name: remark, logicalType: string}\n"
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "sums of decimals": (
        "".join(f"      - {{name: {name}, logicalType: number, physicalType: 'decimal(10,2)'}}\n" for name in "abc"),
        "a + b = c",
        {name: Decimal(text) for name, text in zip("abc", ("0.10", "0.20", "0.30"), strict=True)},
        {name: Decimal(text) for name, text in zip("abc", ("1.00", "1.00", "2.00"), strict=True)},
    ),
    "numbers that are large for their type": (
        "      - {name: v, logicalType: integer, physicalType: tinyint, logicalTypeOptions: {multipleOf: 300}}\n"
        "      - {name: k, logicalType: integer, physicalType: bigint}\n"
        "      - {name: x, logicalType: number, physicalType: double}\n",
        "k < x OR x IS NULL",
        {"v": 0, "k": 9007199254740992, "x": None},
        {"v": 0, "k": 1, "x": 1.5},
    ),
}


def contract(more: str = "") -> str:
    """That of the signals up to the column `remark`, with what comes after it."""
    return CONTRACT.partition(REMARK)[0] + REMARK + more + "slaProperties" + CONTRACT.partition("slaProperties")[2]


FRESH = """\
import json, sys
from pathlib import Path
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.spark.session import start_session
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.runs.run import prepare

folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
project, profile = Project(folder, folder / "state"), Profile(master="local[2]", spark=settings)
lake = Lake.of(start_session(project, profile), Warehouse.of(profile, project))
run = prepare(lake, project, profile, str(folder / "watched.yaml"), "late", 0, 1)
record = revise(run)
print(json.dumps([record.staged_version, record.rows_updated, [check.observed for check in record.checks]]))
print(json.dumps("great_expectations" in sys.modules))
"""


@pytest.mark.long
def test_a_small_revision_does_without_great_expectations(spark: SparkSession, tmp_path: Path) -> None:
    """To import it takes longer than all else that the revision does."""
    lake = signals(spark, tmp_path / "project", PATTERN, contract())
    insert(lake, 1, {})
    all_steps(lake.run(0, 3, "first"))
    insert(lake, 2, {})
    settings = json.dumps({key: value for key, value in SETTINGS.items() if not key.startswith("spark.driver.extra")})
    command = [sys.executable, "-c", FRESH, str(tmp_path / "project"), settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    revised, imported = map(json.loads, done.stdout.splitlines()[-2:])
    assert revised[:2] == [None, 1]
    assert revised[2][0].endswith("1 window touched")
    assert "none of 1 row breaks it" in revised[2]
    assert imported is False


def insert(lake: Signals, hour: int, values: dict[str, Any]) -> None:
    """A row, with these values in the columns that the signals have not."""
    time = START_US + DAY_US + hour * DAY_US // 24
    row = {"event_id": f"e{hour}", "event_time": time, "event_type": "A", "place": "straße", "price": 1, "remark": ""}
    schema = pa.schema(DeltaTable(lake.source).schema().to_arrow())
    plain_writer.append(lake.spark, lake.source, pa.Table.from_pylist([row | values], schema))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_late_row_drops_no_good_one(spark: SparkSession, tmp_path: Path, case: str) -> None:
    columns, condition, values, late = CASES[case]
    rule = f"    quality: [{{name: whole, type: custom, engine: trendlake, implementation: '{condition}'}}]\n"
    lake = signals(spark, tmp_path / "project", PATTERN, contract(columns + rule))
    for hour in range(3):
        insert(lake, hour, values)
    run = lake.run(0, 3, "first")
    all_steps(run)
    insert(lake, 3, late)
    record = revise(renamed(run, "late"))
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (0, 1, 0)
    agree(lake, run)
    assert DeltaTable(lake.warehouse.results(run.name)).to_pyarrow_table()["n"].to_pylist() == [2**4 - 1]
