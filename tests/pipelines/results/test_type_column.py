"""A column whose name is `event_type` in other letters means the same on every road: in this process, in workers, as
Spark reads it, and in a revision. Next to a constant type it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.contracts.contract import load_contract
from pipelines.errors import ContractErrors
from pipelines.project.profile import Profile
from pipelines.steps.revise import revise
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree
from tests.support.signals import CONTRACT, IN_DRIVER, IN_WORKERS, START_US, Signals, signals

pytestmark = pytest.mark.spark

HOUR_US = 3_600_000_000
START = CONTRACT.index("      - name: event_type")
END = CONTRACT.index("      - {name: place")
OF_ROLE = CONTRACT.replace("name: event_type\n", "name: EVENT_TYPE\n")
CONSTANT = (CONTRACT[:START] + CONTRACT[END:]).replace(
    "customProperties: [{property: quarantineTolerance", "customProperties: [{property: eventType, value: A}, "
    "{property: quarantineTolerance"
)  # fmt: skip
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
        "event_id": f"e{number}", "event_time": START_US + number * HOUR_US, "event_type": kind, "place": "n",
        "price": 1, "remark": "",
    }  # fmt: skip


def published(lake: Signals, run_id: str) -> list[tuple[Any, ...]]:
    """The rows after a run of a day, and after a revision by a late event."""
    lake.insert_by_spark([event(1, "A"), event(2, "A"), event(3, "B"), event(4, "A")])
    run = lake.run(0, 1, run_id)
    all_steps(run)
    agree(lake, run)
    first = rows(lake, run.name)
    lake.insert_by_spark([event(5, "A")])
    revise(renamed(run, f"{run_id}_late"))
    agree(lake, run)
    return [*first, *rows(lake, run.name)]


def rows(lake: Signals, name: str) -> list[tuple[Any, ...]]:
    frame = lake.spark.read.format("delta").load(lake.warehouse.results(name))
    return sorted(tuple(row) for row in frame.select(*frame.columns[:-8], "n").collect())


@pytest.mark.parametrize("profile", [IN_DRIVER, IN_WORKERS], ids=["here", "workers"])
@pytest.mark.parametrize("clustered", [True, False], ids=["plain", "read by Spark"])
def test_a_column_of_the_role(spark: SparkSession, tmp_path: Path, profile: Profile, clustered: bool) -> None:
    lake = signals(spark, tmp_path / "p", ROLE_PATTERN, OF_ROLE, profile)
    read_by_spark(lake, clustered)
    counts = [row[-1] for row in published(lake, "r")]
    assert counts == [4, 7]  # trends of e1, e2 | e4, of one type next to each other; then of e4, e5 too


@pytest.mark.parametrize("profile", [IN_DRIVER, IN_WORKERS], ids=["here", "workers"])
@pytest.mark.parametrize("clustered", [True, False], ids=["plain", "read by Spark"])
def test_a_column_that_the_contract_leaves_out(
    spark: SparkSession, tmp_path: Path, profile: Profile, clustered: bool
) -> None:  # fmt: skip
    """All events are of the constant type, whatever the table has in such a column."""
    lake = signals(spark, tmp_path / "p", PLAIN_PATTERN, OF_ROLE, profile)
    read_by_spark(lake, clustered)
    lake.project.contract_path("signals").write_text(CONSTANT)
    counts = [row[-1] for row in published(lake, "r")]
    assert counts == [10, 15]


def read_by_spark(lake: Signals, plain: bool) -> None:
    """A table with deletion vectors is read by Spark alone."""
    if not plain:
        lake.sql("ALTER TABLE signals SET TBLPROPERTIES (delta.enableDeletionVectors = true)")


def test_next_to_a_constant_type_it_is_refused(tmp_path: Path) -> None:
    """In any letters, with its place and a way out."""
    for name in ("event_type", "EVENT_TYPE", "Event_Type", "EVENT_TYPE".replace("E", "e", 1)):
        file = tmp_path / "signals.yaml"
        file.write_text(BOTH.replace("EVENT_TYPE", name))
        with pytest.raises(ContractErrors, match=f"has a column '{name}': eventType would hide it"):
            load_contract(file)
