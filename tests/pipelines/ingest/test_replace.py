"""A reference table that is replaced: its rows are those of the last delivery, in one commit, on every road."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.tables_lake import CUSTOMERS, PLAIN_CUSTOMERS, SCHEMAS, Row, contract_text, customer
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import DeliveryError, ProjectError
from trendlake.pipelines.ingest import small_files
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.write import here
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import known_commits
from trendlake.pipelines.lake.here.maintain import maintain_here
from trendlake.pipelines.lake.here.read import CHANGE, table_here
from trendlake.pipelines.lake.here.write import append
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.runs.stage import Record

SEQUENCE = "{name: note, logicalType: string, customProperties: [{property: eventRole, value: sequence}]}"
A, B, C = customer("1", "a", "b2b"), customer("2", "b", "b2c"), customer("3", "c", None)


def no_java() -> Any:
    raise AssertionError("this needs no Java")


@dataclass
class Customers:
    """The table of customers in a warehouse, and what has been delivered to it."""

    lake: Lake
    contract: Contract

    @property
    def path(self) -> str:
        return self.lake.warehouse.source("customers")

    def deliver(self, rows: Sequence[Mapping[str, Any]], feed: str, *, whole: bool = True, **how: Any) -> Record:
        table = pa.Table.from_pylist([dict(row) for row in rows], SCHEMAS["customers"])
        return ingest(self.lake, self.contract, [table], feed=feed, run_id=f"of {feed}", whole=whole, **how)

    @property
    def names(self) -> list[str]:
        """The notes of its rows."""
        return sorted(DeltaTable(self.path).to_pyarrow_table()["note"].to_pylist())

    @property
    def version(self) -> int:
        return known_commits(self.lake, self.path)[0].version

    def came_and_went(self, after: int) -> list[tuple[str, str]]:
        changes = table_here(self.lake, self.path).feed(["note"], after, 100).to_pylist()
        return sorted((change[CHANGE], change["note"]) for change in changes)


def customers(folder: Path, columns: Sequence[str] = PLAIN_CUSTOMERS, lake: Lake | None = None) -> Customers:
    folder.mkdir(exist_ok=True)
    (folder / "customers.yaml").write_text(contract_text("customers", columns, None))
    warehouse = Warehouse(str(folder / "warehouse"))
    contract = load_contract(folder / "customers.yaml")
    return Customers(lake or Lake(warehouse, no_java, plain_paths=True), contract)


def test_all_rows_in_one_commit(tmp_path: Path) -> None:
    """The change feed goes on, and older versions are there."""
    table = customers(tmp_path)
    table.deliver([A, B], "monday")
    first = table.version
    record = table.deliver([B, C], "tuesday")
    assert (table.names, table.version) == (["2", "3"], first + 1)
    assert (record.rows_in, record.rows_inserted, record.rows_deleted, record.rows_out) == (2, 2, 2, 2)
    changes = table.came_and_went(first)
    assert changes == [("delete", "1"), ("delete", "2"), ("insert", "2"), ("insert", "3")]
    assert DeltaTable(table.path, version=first).to_pyarrow_table().num_rows == 2
    assert (record.road, record.interval_from) == ("here", None)


def test_the_same_again(tmp_path: Path) -> None:
    """Is there already, until something else has come."""
    table = customers(tmp_path)
    table.deliver([A, B], "monday")
    version = table.version
    record = table.deliver([A, B], "monday")
    assert (table.version, record.rows_inserted) == (version, 0)
    assert table.deliver([A, B], "monday", again=True).rows_inserted == 2
    table.deliver([C], "more", whole=False)
    assert table.names == ["1", "2", "3"]
    table.deliver([A, B], "monday")
    assert table.names == ["1", "2"]


def test_what_was_delivered_before(tmp_path: Path) -> None:
    """Is gone, and comes again if it is delivered again."""
    table = customers(tmp_path)
    table.deliver([A], "a", whole=False)
    table.deliver([B], "b")
    assert table.deliver([A], "a", whole=False).rows_inserted == 1
    assert table.deliver([A], "a", whole=False).rows_inserted == 0
    assert table.deliver([B], "b", whole=False).rows_inserted == 0
    assert table.names == ["1", "2"]


def test_repeated_keys(tmp_path: Path) -> None:
    """Equal rows are one; others are refused, unless a sequence says which counts."""
    table = customers(tmp_path / "plain")
    table.deliver([A, B, A], "monday")
    assert table.names == ["1", "2"]
    version = table.version
    with pytest.raises(DeliveryError, match="1 key with different values: row 1 in rows 1, 2"):
        table.deliver([A, {**A, "segment": "other"}], "tuesday")
    assert table.version == version
    table = customers(tmp_path / "ordered", (*PLAIN_CUSTOMERS[:-1], SEQUENCE))
    record = table.deliver([{**A, "note": "8"}, {**A, "note": "9"}], "monday")
    assert (table.names, record.rows_inserted) == (["9"], 1)


def test_broken_rows(tmp_path: Path) -> None:
    """Land, and are quarantined."""
    table = customers(tmp_path)
    record = table.deliver([A, customer("9", "z", "x" * 10)], "monday")
    assert (record.rows_out, record.rows_quarantined) == (2, 1)
    aside = DeltaTable(table.lake.warehouse.quarantine("customers")).to_pyarrow_table()
    assert aside["row"].to_pylist() == ["9"]


def test_no_rows(tmp_path: Path) -> None:
    """Would empty the table: a dump that was cut off. An empty table may stay so."""
    table = customers(tmp_path)
    table.deliver([], "none")
    table.deliver([A], "monday")
    with pytest.raises(DeliveryError, match="has no row, and 'customers' has 1: nothing was written"):
        table.deliver([], "cut off")
    assert table.names == ["1"]


def test_events_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    text = contract_text("customers", CUSTOMERS).replace("[{", "[{property: eventType, value: Customer}, {", 1)
    (tmp_path / "data" / "customers.yaml").write_text(text)
    events = Customers(customers(tmp_path).lake, load_contract(tmp_path / "data" / "customers.yaml"))
    with pytest.raises(ProjectError, match="'customers' has events, and --replace is for reference tables"):
        events.deliver([A], "monday")


def test_another_writer_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are replaced, too: the commit is made on the version that was looked at, or again."""
    table = customers(tmp_path)
    table.deliver([A], "monday")
    came: list[Record] = []

    def before(there: Any, rows: pa.Table, *about: Any, whole: bool = False) -> Any:
        if whole and not came:
            came.append(table.deliver([C], "other", whole=False))
        return append(there, rows, *about, whole=whole)

    monkeypatch.setattr(here, "append", before)
    table.deliver([B], "tuesday")
    assert len(came) == 1
    assert table.names == ["2"]


ROWS = st.lists(
    st.sampled_from([A, B, C, customer("4", "d", "new")]), max_size=4, unique_by=lambda row: str(row["row"])
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.booleans(), ROWS.filter(bool)), min_size=1, max_size=5))
def test_histories(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, list[Row]]]) -> None:
    """Rows since the last replacement."""
    table = customers(tmp_path_factory.mktemp("history"))
    expected: set[str] = set()
    for whole, rows in steps:
        names = {str(row["row"]) for row in rows}
        expected = names if whole else expected | names
        table.deliver(rows, f"{sorted(names)}", whole=whole)
        assert table.names == sorted(expected)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("keyed", [True, False])
def test_here_and_on_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
    """Leave the same rows, feed and record. Without a key rows are added on Spark alone, and a delivery comes again
    after the table was replaced."""
    columns = PLAIN_CUSTOMERS if keyed else ("{name: row, logicalType: string}", *PLAIN_CUSTOMERS[1:])
    left = []
    for limit in (limits.DELIVERED, -1):
        monkeypatch.setattr(limits, "DELIVERED", limit)
        folder = tmp_path / str(limit)
        table = customers(folder, columns, Lake.of(spark, Warehouse(str(folder / "warehouse"))))
        table.deliver([A], "a", whole=False)
        first = table.version
        record = table.deliver([B, C], "b")
        changes = table.came_and_went(first)
        history = known_commits(table.lake, table.path)
        commits = [(commit.version, commit.operation, commit.note.get("whole")) for commit in history]
        assert table.deliver([A], "a", whole=False).rows_inserted == 1
        assert table.deliver([A], "a", whole=False).rows_inserted == 0
        if keyed:
            assert table.deliver([{**A, "segment": "new"}], "c", whole=False).rows_updated == 1
        assert table.deliver([B, C], "b").rows_inserted == 2
        assert record.road == ("here" if limit > 0 else "spark")
        counts = record.rows_in, record.rows_inserted, record.rows_deleted, record.rows_out
        left.append((table.names, changes, commits, counts))
    assert left[0] == left[1]
    assert left[0][:2] == (["2", "3"], [("delete", "1"), ("insert", "2"), ("insert", "3")])


def test_work_on_files_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are put together in no order of time, and removed; the same delivery is there still."""
    monkeypatch.setattr(small_files, "MANY", 3)
    table = customers(tmp_path)
    for row in (A, B, C):
        table.deliver([row], str(row["row"]), whole=False)
    assert len(DeltaTable(table.path).file_uris()) == 1
    assert table.names == ["1", "2", "3"]
    table.deliver([A, B], "monday")
    maintain_here(table.lake, "customers", table.path)
    version = table.version
    assert table.deliver([A, B], "monday").rows_inserted == 0
    assert table.version == version
