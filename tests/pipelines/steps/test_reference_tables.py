"""Tables of rows that are no events: judged whole, whatever the windows of a run, by every road the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_several_tables import all_steps, on_spark, project_of, published
from tests.pipelines.steps.test_lookups import ONE, VALID, deliver, rows_by_hand
from tests.support.tables_lake import SCHEMAS, SeveralTables, customer
from trendlake.pipelines.lake import limits
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.revise import revise

ROWS = (
    customer("1", "a", "b2b", -99_999, 5),
    customer("2", "a", "b2c", 5, 99_999),
    customer("3", "b", "x" * 10, 7),
    customer("4", None, "b2b"),
    {**customer("5", "c", "b2b"), "since": None},
)
"""Of all times, one broken."""


def judgement(tables: SeveralTables) -> tuple[Any, ...]:
    """What a run's first step says of the tables, and puts into the quarantine of the customers."""
    record = check_source(tables.run(0, 1, "first"))
    assert record.sources is not None
    checks = [(check.name, check.success, check.observed, check.expected) for check in record.checks]
    rows = DeltaTable(tables.lake.warehouse.quarantine("customers")).to_pyarrow_table()
    rows = rows.filter(pc.equal(rows["run_id"], "first")).select(["row", "since", "rule", "reason", "source_version"])
    about = {**record.sources["customers"], "table_id": None}
    return about, sorted(checks), sorted(rows.to_pylist(), key=repr)


def add_repeats(tables: SeveralTables) -> None:
    """Rows that share a key, as other programs write them."""
    path = tables.lake.warehouse.source("customers")
    rows = DeltaTable(path).to_pyarrow_table().sort_by("row").slice(0, 2)
    other = rows.set_column(rows.column_names.index("segment"), "segment", pa.array(["other"] * 2))
    write_deltalake(path, other, mode="append")


@pytest.mark.repeats
@pytest.mark.spark
def test_judged_by_every_road(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows in this process, many there by file, and on Spark."""
    said = []
    for name in ("few", "many", "spark"):
        with monkeypatch.context() as patch:
            if name == "many":
                patch.setattr(limits, "JUDGED_WHOLE", -1)
            keys = {**ONE, "lookup": {"customer": VALID}}
            if name == "spark":
                tables = on_spark(spark, tmp_path / name, plain=True, **keys)
            else:
                tables = project_of(tmp_path / name, plain=True, **keys)
            deliver(tables, *ROWS)
            add_repeats(tables)
            said.append(judgement(tables))
    about, _, quarantined = said[0]
    assert (about["rows_in"], about["quarantined"], about["watermark"]) == (7, 5, None)
    assert [row["row"] for row in quarantined] == ["1", "1", "2", "2", "3"]
    assert said[1:] == said[:1] * 2


@pytest.mark.repeats
@pytest.mark.spark
def test_runs_and_revisions_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Show the rows that the engine gives."""
    tables = on_spark(spark, tmp_path, plain=True, **ONE)
    deliver(tables, *ROWS)
    all_steps(tables.run(0, 2, "first"))
    before = published(tables)
    assert before == rows_by_hand(tables, tables.run(0, 2, "again"))
    replaced(tables)


def replaced(tables: SeveralTables) -> None:
    """Equal rows in another order change nothing; others change the windows of the events that used them."""
    before = published(tables)
    tables.deliver("customers", ROWS[::-1], whole=True)
    record = revise(tables.run(0, 2, "equal"))
    (check,) = [check for check in record.checks if check.name == "lookup_changes"]
    assert (record.windows, check.data) == (0, {"events": 0, "rows": {}})
    tables.deliver("customers", [customer("2", "a", "new", 5, 99_999), *ROWS[2:], ROWS[0]], whole=True)
    record = revise(tables.run(0, 2, "other"))
    (check,) = [check for check in record.checks if check.name == "lookup_changes"]
    assert (record.windows, check.data) == (1, {"events": 1, "rows": {"customers": 2}})
    assert before != published(tables) == rows_by_hand(tables, tables.run(0, 2, "again"))


def test_a_sequence_decides_before_a_lookup(tmp_path: Path) -> None:
    """Of two rows of a key that other programs have written: they are no repeat then."""
    tables = project_of(tmp_path, plain=True, **ONE)
    file = tables.project.contract_path("customers")
    role = "customProperties: [{property: eventRole, value: sequence}]"
    file.write_text(
        file.read_text().replace("{name: note, logicalType: string", f"{{name: note, logicalType: string, {role}")
    )
    deliver(tables, *ROWS)
    later = {**customer("2", "a", "later", 5, 99_999), "note": "9"}
    table = pa.Table.from_pylist([later], SCHEMAS["customers"])
    write_deltalake(tables.lake.warehouse.source("customers"), table, mode="append")
    all_steps(tables.run(0, 2, "first"))
    assert {row["segment"] for row in published(tables)} == {"b2b", "later", None}


def test_replaced_rows(tmp_path: Path) -> None:
    """As on Spark, in this process."""
    tables = project_of(tmp_path, plain=True, **ONE)
    deliver(tables, *ROWS)
    all_steps(tables.run(0, 2, "first"))
    replaced(tables)
