"""Corrections through `ingest`: rows are compared by key, in one commit a delivery; and rows deleted."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.random.floats import NANS
from tests.support.bare_lake import bare_lake
from tests.support.reading import changes, stored
from tests.support.roads import only_spark
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import DeliveryError, NotOursError, ProjectError
from trendlake.pipelines.ingest import existing_rows
from trendlake.pipelines.ingest.delete import delete_rows, find_rows, keys_in, rows_where
from trendlake.pipelines.ingest.deliver import Taken, ingest
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.warehouse import Warehouse

pytestmark = pytest.mark.spark

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: sales
version: 1.0.0
status: active
schema:
  - name: sales
    customProperties: [{property: eventType, value: Sale}, {property: corrections, value: replace}]
    properties:
      - {name: id, logicalType: string, required: true, unique: true,
         customProperties: [{property: eventRole, value: event_id}]}
      - {name: at, logicalType: timestamp, required: true,
         customProperties: [{property: eventRole, value: event_time}]}
      - {name: price, logicalType: number, logicalTypeOptions: {minimum: 0}}
      - {name: paid, logicalType: number, physicalType: "decimal(10,2)"}
"""
START = datetime(2026, 1, 5, tzinfo=UTC)
SCHEMA = pa.schema(
    [("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("price", pa.float64()), ("paid", pa.decimal128(10, 2))]
)


class Sales:
    """A source `sales` of its own."""

    def __init__(self, spark: SparkSession, folder: Path, text: str = CONTRACT) -> None:
        (folder / "sales.yaml").write_text(text)
        self.spark, self.contract = spark, load_contract(folder / "sales.yaml")
        self.warehouse = Warehouse(str(folder / "warehouse"))
        self.path, self.feeds = self.warehouse.source("sales"), 0

    def bring(self, *rows: tuple[Any, ...], contract: Contract | None = None, **options: Any) -> Taken:
        """A delivery of rows (id, hour, price): what became of it."""
        self.feeds += 1
        options = {"feed": f"file {self.feeds}", "run_id": f"r{self.feeds}"} | options
        deliveries: list[Taken] = []
        ingest(
            Lake.of(self.spark, self.warehouse),
            contract or self.contract,
            [sales(*rows)],
            progress=lambda _, taken: deliveries.append(taken),
            **options,
        )
        return deliveries[0]

    def rows(self) -> Counter[tuple[Any, ...]]:
        table = stored(self.path)
        hours = [None if at is None else (at - START) // timedelta(hours=1) for at in table["at"].to_pylist()]
        return Counter(zip(table["id"].to_pylist(), hours, table["price"].to_pylist(), strict=True))

    def feed(self, version: int) -> Counter[str]:
        return Counter(changes(self.path, version, version)["_change_type"].to_pylist())

    def version(self) -> int:
        return latest_version(bare_lake(self.spark), self.path)


def sales(*rows: tuple[Any, ...]) -> pa.Table:
    whole = [(name, None if hour is None else START + timedelta(hours=hour), price, None) for name, hour, price in rows]
    return pa.table({name: [row[i] for row in whole] for i, name in enumerate(SCHEMA.names)}, SCHEMA)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Sales:
    return Sales(spark, tmp_path)


def test_a_correction_replaces_the_row(source: Sales) -> None:
    """One commit with new rows beside it; the change feed has both images; the time may be another."""
    source.bring(("a", 1, 5.0), ("b", 2, 6.0), ("c", 3, 7.0))
    before = source.version()
    taken = source.bring(("b", 40, 6.5), ("c", 3, 7.0), ("d", 4, 8.0))
    assert (taken.new, taken.replaced, taken.there) == (1, 1, 1)
    assert source.rows() == Counter([("a", 1, 5.0), ("b", 40, 6.5), ("c", 3, 7.0), ("d", 4, 8.0)])
    assert source.version() == before + 1
    assert source.feed(before + 1) == Counter(["update_preimage", "update_postimage", "insert"])


def test_a_longer_export_brings_its_new_rows_only(source: Sales) -> None:
    """Rows that are there, equal, are passed over; so are repeats within the file, and each NaN and zero."""
    first = [("a", 1, NANS[0]), ("b", 2, -0.0), ("c", 3, 7.0)]
    source.bring(*first)
    before = source.version()
    taken = source.bring(("a", 1, NANS[1]), ("b", 2, 0.0), ("c", 3, 7.0), ("d", 4, 8.0), ("d", 4, 8.0))
    assert (taken.new, taken.replaced, taken.there) == (1, 0, 4)
    assert source.feed(before + 1) == Counter(["insert"])
    again = source.bring(*first, feed="copy")
    assert (again.new, again.replaced, again.there) == (0, 0, 3)
    assert sum(source.rows().values()) == 4


def test_a_delivery_is_taken_once(source: Sales) -> None:
    """One whose rows have been corrected since does not undo that; asked for again, it does."""
    old = [("a", 1, 5.0)]
    source.bring(*old, feed="f")
    source.bring(("a", 1, 6.0))
    assert source.bring(*old, feed="f").again
    assert source.rows() == Counter([("a", 1, 6.0)])
    assert source.bring(*old, feed="f", again=True).replaced == 1
    assert source.rows() == Counter(old)
    # one that brought nothing new is noted as well
    source.bring(*old, feed="g")
    source.bring(("a", 1, 9.0))
    assert source.bring(*old, feed="g").again


def test_without_the_property_a_correction_is_refused(source: Sales) -> None:
    """Nothing is written; some keys, their number and both ways out are named."""
    source.bring(*[(f"e{n}", n, 1.0) for n in range(9)])
    before, strict = source.version(), replace(source.contract, replaces=False)
    rows = [(f"e{n}", n, 2.0) for n in range(9)]
    with pytest.raises(DeliveryError) as caught:
        source.bring(*rows, ("new", 3, 1.0), contract=strict)
    assert "9 rows of the delivery have a key that is in 'sales' with other values: id e0, e1" in str(caught.value)
    assert "and 4 more; nothing was written" in str(caught.value)
    assert "{property: corrections, value: replace}" in str(caught.value)
    assert "leave these rows out" in str(caught.value)
    assert source.version() == before
    assert source.bring(("e1", 1, 1.0), ("new", 3, 1.0), contract=strict).new == 1


@pytest.mark.long
def test_a_broken_row_never_replaces_a_good_one(source: Sales) -> None:
    """It goes beside it and into the quarantine; a good one replaces a broken one, as does another broken one."""
    source.bring(("a", 1, 5.0), ("b", 2, -1.0))
    taken = source.bring(("a", 1, -5.0), ("b", 2, -2.0), (None, 3, 1.0))
    assert (taken.new, taken.replaced) == (2, 1)
    assert taken.broken.rules == Counter({"price_range": 2, "id_required": 1})
    assert source.rows() == Counter([("a", 1, 5.0), ("a", 1, -5.0), ("b", 2, -2.0), (None, 3, 1.0)])
    assert source.bring(("a", 1, 5.0), ("a", 1, 5.0), (None, 3, 1.0)).there == 3
    assert source.bring(("b", 2, 3.0)).replaced == 1
    quarantined = source.spark.read.format("delta").load(source.warehouse.quarantine("sales")).collect()
    assert Counter((row["id"], row["price"], row["run_id"]) for row in quarantined) == Counter(
        [("b", -1.0, "r1"), ("a", -5.0, "r2"), ("b", -2.0, "r2"), (None, 1.0, "r2")]
    )


@pytest.mark.long
def test_a_table_of_old_with_repeated_keys_is_corrected(source: Sales) -> None:
    """As an earlier version of `ingest` left it: the delivered row replaces every other row of its key."""
    source.bring(("a", 1, 5.0), ("b", 2, 6.0))
    frame = source.spark.createDataFrame(sales(("a", 1, 9.0), ("b", 2, 6.0)))
    frame.write.format("delta").mode("append").save(source.path)
    assert source.bring(("b", 2, 6.0)).there == 1
    assert source.bring(("a", 1, 9.0)).replaced == 1
    assert set(source.rows()) == {("a", 1, 9.0), ("b", 2, 6.0)}


def test_a_lower_sequence_is_older(source: Sales, spark: SparkSession, tmp_path: Path) -> None:
    """Where the contract names a sequence, the highest counts, in the delivery as in the table."""
    text = CONTRACT.replace("minimum: 0}", "minimum: 0}, customProperties: [{property: eventRole, value: sequence}]")
    ordered = Sales(spark, tmp_path, text)
    ordered.bring(("a", 1, 5.0), ("a", 1, 3.0))
    assert ordered.rows() == Counter([("a", 1, 5.0)])
    assert ordered.bring(("a", 2, 4.0)).older == 1
    assert ordered.bring(("a", 3, 6.0)).replaced == 1
    assert ordered.rows() == Counter([("a", 3, 6.0)])


@pytest.mark.repeats
def test_spark_finds_the_same_rows(source: Sales) -> None:
    """Where the table is not on this machine's disk."""
    source.bring(("a", 1, 5.0), ("b", 2, 6.0), (None, 3, 1.0))
    with only_spark():
        taken = source.bring(("a", 1, 5.0), ("b", 3, 6.0), (None, 3, 1.0), ("c", 4, 1.0))
    assert (taken.new, taken.replaced, taken.there) == (1, 1, 2)
    assert source.rows() == Counter([("a", 1, 5.0), ("b", 3, 6.0), (None, 3, 1.0), ("c", 4, 1.0)])


def test_a_table_on_this_disk_is_read_without_spark(source: Sales, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lookup of keys is a scan of one column in this process."""

    monkeypatch.setattr(existing_rows, "_by_spark", None)
    source.bring(("a", 1, 5.0), ("b", 2, 6.0))
    taken = source.bring(("a", 1, 5.5), ("c", 4, 1.0))
    assert (taken.new, taken.replaced) == (1, 1)


def test_deliveries_at_once_bring_each_key_once(source: Sales) -> None:
    """Both find the key missing; one commits, the other conflicts, looks again and corrects or passes over."""
    source.bring(("a", 1, 5.0))
    errors: list[BaseException] = []
    gate = threading.Barrier(3)

    def bring(number: int) -> None:
        rows = [("a", 1, 5.0), *((f"k{n}", n, float(n if n < 3 else number)) for n in range(5))]
        gate.wait()
        try:
            source.bring(*rows, feed=f"at once {number}", run_id=f"at once {number}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=bring, args=(number,)) for number in (10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert Counter(row[0] for row in source.rows().elements()) == Counter(["a", "k0", "k1", "k2", "k3", "k4"])


def chosen(source: Sales, what: str) -> Any:
    """The rows of a condition, or of a file with ids."""
    if not what.endswith(".csv"):
        return rows_where(what, source.contract)
    file = Path(source.warehouse.root).parent / what
    file.write_text("id,remark\n" + "".join(f"{name},x\n" for name in ("b", "nobody", "b")))
    return keys_in(file, source.contract)


@pytest.mark.parametrize("what", ["gone.csv", "price >= 6 AND price < 7 OR price = 99", "id = 'b'"])
def test_rows_are_deleted_in_one_commit(source: Sales, what: str) -> None:
    """By id or by condition: counted first, each a DELETE in the change feed; done again, there is nothing to do."""
    source.bring(("a", 1, 5.0), ("b", 2, 6.0), ("c", 3, None), (None, 4, 1.0))
    before, selection = source.version(), chosen(source, what)
    selected = find_rows(Lake.of(source.spark, source.warehouse), source.contract, selection)
    assert (selected.rows, selected.version, source.version()) == (1, before, before)
    assert selected.absent == ("id nobody" if what.endswith("csv") else "")
    done = delete_rows(Lake.of(source.spark, source.warehouse), source.contract, selection, "gone")
    assert (done.rows, done.version) == (1, before + 1)
    assert source.feed(before + 1) == Counter(["delete"])
    assert source.rows() == Counter([("a", 1, 5.0), ("c", 3, None), (None, 4, 1.0)])
    assert delete_rows(Lake.of(source.spark, source.warehouse), source.contract, selection, "again").rows == 0
    assert source.version() == before + 1


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("prize > 1", "has no column 'prize'"),
        ("price +", "--where"),
        ("price + 1", "true or false"),
        ("id > 1", "--where"),
        ("drop(price)", "there is no function 'drop'"),
        ("id = 'x'; DROP TABLE sales", "--where"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(source: Sales, condition: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        rows_where(condition, source.contract)
    assert message in str(caught.value)
    assert condition in str(caught.value) or "--where" in str(caught.value)


def test_a_condition_that_is_never_true_is_noted(source: Sales) -> None:
    """It deletes nothing: the note names what was meant."""
    (advice,) = rows_where("price = NULL", source.contract).advice
    assert "write price IS NULL" in str(advice)


def test_rows_of_others_are_not_deleted(source: Sales) -> None:
    warehouse = Warehouse(source.warehouse.root, elsewhere={"sales": source.path})
    with pytest.raises(NotOursError):
        delete_rows(Lake.of(source.spark, warehouse), source.contract, rows_where("price > 1", source.contract), "r")
