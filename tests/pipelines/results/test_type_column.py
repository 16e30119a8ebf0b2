"""A column whose name is `event_type` in other letters means the same on every road: in this process, in workers, as
Spark reads it, and in a revision. Next to a constant type it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.signals import CONTRACT, IN_DRIVER, IN_WORKERS, START_US, Signals, signals
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import ContractErrors
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

ROADS = {"in this process": IN_DRIVER, "files in workers": IN_WORKERS, "by Spark": IN_WORKERS}
HOUR_US = 3_600_000_000
START = CONTRACT.index("      - name: event_type")
END = CONTRACT.index("      - {name: place")
OF_ROLE = CONTRACT.replace("name: event_type\n", "name: EVENT_TYPE\n")
CONSTANT = (CONTRACT[:START] + CONTRACT[END:]).replace(
    "customProperties: [{property: quarantineTolerance",
    "customProperties: [{property: eventType, value: A}, {property: quarantineTolerance",
)
BOTH = CONSTANT.replace("- {name: place,", "- {name: EVENT_TYPE, logicalType: string}\n      - {name: place,")
ROLE_PATTERN = """\
pattern: A S+
where: ["S.EVENT_TYPE = 'A'"]
return: {n: COUNT(*)}
group_by: [EVENT_TYPE, place]
select: contiguous
within: 1 day
"""
PLAIN_PATTERN = ROLE_PATTERN.replace("where: [\"S.EVENT_TYPE = 'A'\"]\n", "").replace("EVENT_TYPE, ", "")


def event(number: int, kind: str) -> dict[str, Any]:
    return {
        "event_id": f"e{number}",
        "event_time": START_US + number * HOUR_US,
        "event_type": kind,
        "place": "n",
        "price": 1,
        "remark": "",
    }


def published(lake: Signals) -> list[int]:
    """The counts after a run of a day, and after a revision by a late event."""
    lake.insert_by_spark([event(1, "A"), event(2, "A"), event(3, "B"), event(4, "A")])
    run = lake.run(0, 1, "run")
    all_steps(run)
    first = counts(lake, run.name)
    lake.insert_by_spark([event(5, "A")])
    revise(renamed(run, "late"))
    return [*first, *counts(lake, run.name)]


def counts(lake: Signals, name: str) -> list[int]:
    return [int(number) for number in DeltaTable(lake.warehouse.results(name)).to_pyarrow_table()["n"].to_pylist()]


@pytest.mark.long
@pytest.mark.parametrize(
    "road", ["in this process", "files in workers", pytest.param("by Spark", marks=pytest.mark.repeats)]
)
def test_a_column_of_the_role(spark: SparkSession, tmp_path: Path, road: str) -> None:
    """Trends of e1 and e2, and e4, of one type next to each other; with e5, which comes late, also of e4 and e5."""
    lake = signals(spark, tmp_path / "p", ROLE_PATTERN, OF_ROLE, ROADS[road])
    read_so(lake, road)
    assert published(lake) == [4, 6]


@pytest.mark.parametrize("road", ["in this process", pytest.param("by Spark", marks=pytest.mark.repeats)])
def test_a_column_that_the_contract_leaves_out(spark: SparkSession, tmp_path: Path, road: str) -> None:
    """All events are of the constant type, whatever the table has in such a column."""
    lake = signals(spark, tmp_path / "p", PLAIN_PATTERN, OF_ROLE, ROADS[road])
    read_so(lake, road)
    lake.project.contract_path("signals").write_text(CONSTANT)
    assert published(lake) == [10, 15]


def read_so(lake: Signals, road: str) -> None:
    """Files of a table with deletion vectors are read by Spark alone."""
    if road == "by Spark":
        lake.sql("ALTER TABLE signals SET TBLPROPERTIES (delta.enableDeletionVectors = true)")


def test_next_to_a_constant_type_it_is_refused(tmp_path: Path) -> None:
    """In any letters, with its place and a way out."""
    for name in ("event_type", "EVENT_TYPE", "Event_Type", "EVENT_TYPE".replace("E", "e", 1)):
        file = tmp_path / "signals.yaml"
        file.write_text(BOTH.replace("EVENT_TYPE", name))
        with pytest.raises(ContractErrors, match=f"has a column '{name}': eventType would hide it"):
            load_contract(file)
