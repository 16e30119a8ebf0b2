"""Corrections and deletions of few rows are written in this process: table, change feed and counts are Spark's."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.conftest import DRAWS, PART
from tests.support.bare_lake import bare_lake
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.document_paths import DocumentPaths
from trendlake.pipelines.ingest import delete, deliver
from trendlake.pipelines.ingest.delete import Selection, delete_rows
from trendlake.pipelines.ingest.deliver import Taken, ingest
from trendlake.pipelines.ingest.write import here as write_here
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log import commit_actions
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.lake.warehouse import OvertakenError, Warehouse

pytestmark = pytest.mark.spark

ROLES = {"id": "event_id", "at": "event_time"}
UNIQUE = {"a text": ("id",), "a number": ("n",), "a text and a number": ("shop", "n"), "a decimal": ("paid",)}
"""Columns that are the key."""
TYPES = {
    "id": ("string", pa.string()),
    "at": ("timestamp", pa.timestamp("us", "UTC")),
    "n": ("bigint", pa.int64()),
    "shop": ("string", pa.string()),
    "paid": ("decimal(10,2)", pa.decimal128(10, 2)),
    "price": ("double", pa.float64()),
    "note": ("string", pa.string()),
}
START = datetime(2026, 1, 5, tzinfo=UTC)


def contract_of(folder: Path, key: tuple[str, ...]) -> Contract:
    """A source whose corrections replace rows; a price below 0 breaks the contract."""
    lines = []
    for name, (kind, _) in TYPES.items():
        logical = {"string": "string", "timestamp": "timestamp", "bigint": "integer"}.get(kind, "number")
        more = [f"name: {name}", f"logicalType: {logical}", f"physicalType: '{kind}'"]
        if name == "price":
            more.append("logicalTypeOptions: {minimum: 0}")
        if key == (name,):
            more.append("unique: true")
        elif name in key:
            more.append(f"primaryKey: true, primaryKeyPosition: {key.index(name) + 1}")
        if name in ROLES:
            more.append(f"required: true, customProperties: [{{property: eventRole, value: {ROLES[name]}}}]")
        lines.append(f"      - {{{', '.join(more)}}}")
    head = """\
apiVersion: v3.1.0
kind: DataContract
id: sales
version: 1.0.0
status: active
schema:
  - name: sales
    customProperties: [{property: eventType, value: Sale}, {property: corrections, value: replace}]
    properties:
"""
    (folder / "sales.yaml").write_text(head + "\n".join(lines) + "\n")
    return load_contract(folder / "sales.yaml")


def drawn(rng: random.Random, count: int) -> pa.Table:
    """Rows of few keys, some of them equal to others, some without a key or a time, some that break the contract."""
    rows = []
    for number in rng.sample(range(14), count):
        rows.append(
            {
                "id": rng.choice([None, f"e{number}"]) if number == 13 else f"e{number}",
                "at": None if rng.random() < 0.1 else START + timedelta(hours=number, microseconds=rng.randrange(2)),
                "n": number,
                "shop": rng.choice([None, "ü"]) if number > 9 else "a",
                "paid": Decimal(number) / 4,
                "price": rng.choice([-1.0, -0.0, 0.0, float("nan"), 2.5, None]),
                "note": rng.choice(["x", "", None]),
            }
        )
    schema = pa.schema([(name, kind) for name, (_, kind) in TYPES.items()])
    return pa.Table.from_pylist(rows, schema)


class Source:
    def __init__(self, spark: SparkSession, folder: Path, contract: Contract) -> None:
        self.spark, self.contract = spark, contract
        self.warehouse = Warehouse(str(folder))
        self.path = self.warehouse.source("sales")

    @property
    def version(self) -> int:
        return latest_version(bare_lake(self.spark), self.path)

    def bring(self, rows: pa.Table, name: str) -> Any:
        taken: list[Taken] = []
        ingest(
            Lake.of(self.spark, self.warehouse),
            self.contract,
            [rows],
            feed=name,
            run_id=name,
            progress=lambda _, one: taken.append(one),
        )
        return taken

    def delete(self, keys: pa.Table, name: str) -> Any:
        return delete_rows(Lake.of(self.spark, self.warehouse), self.contract, Selection(keys=keys), name)

    def widen(self) -> None:
        """Columns that the contract does not name, with values; one of lists, which are not compared."""
        table = f"delta.`{self.path}`"
        self.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (more INT, words ARRAY<STRING>)")
        self.spark.sql(f"UPDATE {table} SET more = n, words = array('a', NULL) WHERE n % 2 = 0")

    def rows(self) -> Counter[str]:
        return Counter(map(str, self.spark.read.format("delta").load(self.path).toArrow().to_pylist()))

    def changes(self) -> Counter[str]:
        """What the feed tells of the versions after `widen`."""
        reader = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 3)
        changes = reader.load(self.path).drop("_commit_timestamp").toArrow()
        return Counter(map(str, changes.to_pylist()))


@pytest.mark.long
@pytest.mark.more_in_chaos
@pytest.mark.parametrize(
    "key",
    [
        "a text",
        pytest.param("a text and a number", marks=pytest.mark.repeats),
        *(pytest.param(key, marks=pytest.mark.chaos) for key in ("a number", "a decimal")),
    ],
)
def test_as_spark_writes_it(spark: SparkSession, tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries with new rows, corrections and repeats, to a table with columns that they lack; then deletions by
    key. Nothing of it is left to Spark."""
    contract = contract_of(tmp_path, UNIQUE[key])
    for draw in range(DRAWS):
        rng = random.Random(f"{key} {draw} {PART}")
        deliveries = [drawn(rng, 9) for _ in range(3)]
        keys = deliveries[-1].slice(0, 3).select(UNIQUE[key])
        keys = keys.filter(pa.compute.is_valid(keys.column(0)))
        outcomes: list[list[Any]] = []
        for by_spark in (False, True):
            with monkeypatch.context() as patch:
                if by_spark:
                    patch.setattr(limits, "DELIVERED", -1)
                else:
                    patch.setattr(deliver, "write_by_spark", refused)
                    patch.setattr(delete, "_delete_by_spark", refused)
                source = Source(spark, tmp_path / f"{draw} {by_spark}", contract)
                said = [source.bring(deliveries[0], "delivery 0")]
                source.widen()
                said += [source.bring(rows, f"delivery {n}") for n, rows in enumerate(deliveries[1:], start=1)]
                outcomes.append([said, source.delete(keys, "gone"), source.rows(), source.changes()])
        assert outcomes[0] == outcomes[1]


def refused(*_: Any, **__: Any) -> None:
    raise AssertionError("Spark has been asked")


CONDITIONS = (
    "price > 1",
    "price <= 0 OR price IS NULL",
    "price != price",
    "NOT (price < 2.5)",
    "note = ''",
    "at >= TIMESTAMP '2026-01-05T03:00:00Z' AND at < TIMESTAMP '2026-01-05T09:00:00.000001Z'",
    "at IS NULL",
    "paid = 1.25 OR paid > 2",
    "n % 2 = 1 AND shop = 'a'",
    "n * 9223372036854775807 > 0",
    "shop IS NULL OR lower(shop) = 'ü'",
    "1 = 2",
)
EVERY_ROW = "1 = 1"


@pytest.mark.repeats
@pytest.mark.more_in_chaos
def test_deletions_by_condition_as_spark_makes_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One meaning of a condition, for NULL, NaN, -0.0, decimals, moments to the microsecond and numbers that do not fit
    64 bits. Nothing of it is left to Spark."""
    contract = contract_of(tmp_path, ("n",))
    for draw in range(DRAWS):
        rng = random.Random(f"where {draw} {PART}")
        rows = drawn(rng, 13)
        asked = [delete.rows_where(text, contract) for text in (*rng.sample(CONDITIONS, 5), EVERY_ROW)]
        outcomes: list[list[Any]] = []
        for by_spark in (False, True):
            with monkeypatch.context() as patch:
                if by_spark:
                    patch.setattr(limits, "JUDGED", -1)
                else:
                    patch.setattr(delete, "_delete_by_spark", refused)
                    patch.setattr(delete, "read_at", refused)
                source = Source(spark, tmp_path / f"{draw} {by_spark}", contract)
                source.bring(rows, "rows")
                source.widen()
                counted = [delete.find_rows(Lake.of(spark, source.warehouse), contract, one).rows for one in asked]
                done = [delete_rows(Lake.of(spark, source.warehouse), contract, one, "gone") for one in asked]
                outcomes.append([counted, done, source.rows(), source.changes()])
        assert outcomes[0] == outcomes[1]


def test_other_rows_and_files_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Of three files only that with the corrected row is another one."""
    source = Source(spark, tmp_path / "tables", contract_of(tmp_path, ("id",)))
    files = [rows_of([(f"e{n}{i}", 5 - i, 1.0) for i in range(4)]) for n in range(3)]
    for number, rows in enumerate(files):
        source.bring(rows, f"file {number}")
    before = table_here(bare_lake(spark), source.path).files
    source.bring(rows_of([("e12", 3, 7.0), ("later", 90, 1.0)]), "correction")
    actions = commit_actions(Path(source.path), source.version)
    (removed,) = [action["remove"]["path"] for action in actions if "remove" in action]
    after = table_here(bare_lake(spark), source.path)
    assert set(before) - set(after.files) == {removed}
    added = [name for name in after.files if name not in before]
    contents = [
        list(zip(*after.whole(name, 9).select(["id", "price"]).to_pydict().values(), strict=True)) for name in added
    ]
    assert sorted(row for rows in contents for row in rows) == [
        ("e10", 1.0),
        ("e11", 1.0),
        ("e12", 7.0),
        ("e13", 1.0),
        ("later", 1.0),
    ]


def rows_of(rows: list[tuple[str, int, float]]) -> pa.Table:
    whole = [{"id": name, "at": START + timedelta(hours=hour), "price": price} for name, hour, price in rows]
    return pa.Table.from_pylist(whole, pa.schema([(name, kind) for name, (_, kind) in TYPES.items()]))


@pytest.mark.long
@pytest.mark.parametrize(("limit", "why"), [("DELIVERED", "more than 0"), ("REWRITTEN_BYTES", "written again")])
def test_large_files_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, limit: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is too large to be written anew here, of which one row is corrected: nothing has been committed when
    Spark is asked."""
    source = Source(spark, tmp_path / "tables", contract_of(tmp_path, ("id",)))
    source.bring(rows_of([(f"e{i}", i, 1.0) for i in range(4)]), "first")
    before = source.version
    monkeypatch.setattr(limits, limit, 0)
    target = write_here.Target(bare_lake(spark), "note", source.path, before, source.contract)
    row = rows_of([("e2", 2, 5.0)])
    with pytest.raises(NotHereError, match=why):
        write_here.merge_here(target, row.select(["id"]), row, row.slice(0, 0))
    assert source.version == before
    assert source.bring(row, "correction")[0].replaced == 1


def test_documents_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Their files are not rewritten here; new rows are added here as to any table."""
    source = Source(spark, tmp_path / "tables", contract_of(tmp_path, ("id",)))
    row = rows_of([("a", 1, 1.0)])
    source.bring(row, "first")
    contract = replace(source.contract, documents=DocumentPaths())
    target = write_here.Target(bare_lake(spark), "note", source.path, source.version, contract)
    for change in changes_of(target)[1:]:
        with pytest.raises(NotHereError, match="documents"):
            change()
    assert target.table(anew=False).row_count == 1


def test_of_two_at_once_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Another writer's commit between the look at the table and this one's: nothing is written, the caller looks
    again."""
    source = Source(spark, tmp_path / "tables", contract_of(tmp_path, ("id",)))
    source.bring(rows_of([("a", 1, 1.0), ("b", 2, 1.0)]), "first")
    seen = source.version
    source.bring(rows_of([("a", 1, 2.0)]), "other")
    target = write_here.Target(bare_lake(spark), "note", source.path, seen, source.contract)
    for change in changes_of(target):
        with pytest.raises(OvertakenError):
            change()
    assert source.version == seen + 1
    assert replace(target, version=source.version).table(anew=True).version == source.version


def changes_of(target: write_here.Target) -> list[Callable[[], object]]:
    row = rows_of([("b", 2, 9.0)])
    keys = row.select(["id"])
    return [
        lambda: write_here.append_here(target, rows_of([("c", 3, 1.0)])),
        lambda: write_here.merge_here(target, keys, row, row.slice(0, 0)),
        lambda: write_here.delete_here(target, keys),
    ]
