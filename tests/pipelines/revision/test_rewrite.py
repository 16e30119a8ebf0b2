"""A small difference, committed by delta-rs, is what Delta's own MERGE makes of it: rows, change feed, counts; what
other writers do meanwhile is seen, and what only Delta can write is left to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delta.tables import DeltaTable
from deltalake.table import TableMerger
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.random.profile import CI
from tests.support import plain_writer
from tests.support.bare_lake import bare_lake
from tests.support.empty_tables import copied
from trendlake.cep_core.events.arrays import repeated
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.create import FED, create_table
from trendlake.pipelines.lake.here import write
from trendlake.pipelines.lake.here.log import commit_actions
from trendlake.pipelines.lake.here.read import CHANGE, table_here
from trendlake.pipelines.lake.lake import Lake, latest_version, read_at
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.provenance import identity
from trendlake.pipelines.results.publication import DELETE, INSERT, UPDATE, Publication
from trendlake.pipelines.revision import rewrite as local_rewrite
from trendlake.pipelines.revision.rewrite import Published, Rewrite
from trendlake.pipelines.revision.row_diff import Differing, differing
from trendlake.pipelines.runs.source_versions import Versions

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "real": pa.float64(),
        "large": pa.decimal128(38, 0),
        "small": pa.decimal128(9, 2),
        "whole": pa.int32(),
        "count": pa.int64(),
        "yes": pa.bool_(),
        "words": pa.list_(pa.string()),
        "a.name-odd": pa.string(),
        "plan_hash": pa.string(),
    }
)
VERSION = "__version"
NOON = datetime(2026, 1, 1, 12, 0, 0, 999, UTC)
EVER = [(-(2**62), 2**62)]
HOUR = timedelta(hours=1)
Rows = list[dict[str, Any]]


def row(number: int, **values: Any) -> dict[str, Any]:
    """One of many sorts: NULL in every column, NaN, moments before 1970, texts longer than statistics tell."""
    odd = number % 3 == 0
    values_of_row = {
        "id": f"e{number}",
        "at": NOON + number * HOUR,
        "real": None if odd else [1.5, float("nan")][number % 2],
        "large": None if odd else 10**37 + number,
        "small": None if odd else number,
        "whole": None if odd else number,
        "count": None if odd else -(2**62) - number,
        "yes": None if odd else number % 2 == 0,
        "words": None if odd else ["a", None, "\U0001f600"][: number % 4],
        "a.name-odd": None if odd else "\U0001f600" * (number % 5) * 20,
        "plan_hash": "p",
    }
    return values_of_row | values


def table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


class Results:
    """A results table and what its rows should be."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.path, self.number = spark, str(folder / "results"), 0
        copied(spark, self.path, "rows_of_many_sorts", self._create)

    def _create(self) -> None:
        schema = self.spark.createDataFrame(SCHEMA.empty_table()).schema
        create_table(bare_lake(self.spark), self.path, schema, FED, "making a table of a test")

    def write(self, rows: Rows) -> None:
        plain_writer.append(self.spark, self.path, table_of(rows))

    def write_by_spark(self, rows: Rows) -> None:
        """With Spark's statistics and times."""
        frame = self.spark.createDataFrame(table_of(rows)).coalesce(1)
        frame.write.format("delta").mode("append").save(self.path)

    def rewrite(self, rows: Rows, slices: Any = EVER) -> Rewrite:
        """What brings the rows in `slices` to `rows`."""
        there = Published.of(table_here(bare_lake(self.spark), self.path), "at", slices, 1_000)
        warehouse: Any = SimpleNamespace(results=lambda _: self.path, table_of=lambda name: name)
        run: Any = SimpleNamespace(lake=Lake.of(self.spark, warehouse), name="watched", warehouse=warehouse)
        plan: Any = SimpleNamespace(key=("id",), owned=lambda _: ("at", 0, 0))
        return Rewrite(run, plan, there, differing(there.rows, table_of(rows), identity(plan)))

    def note(self) -> Note:
        self.number += 1
        return Note("form", Versions.one(1), ()).signed("r", "revise", self.number)

    def bring(self, rows: Rows, slices: Any = EVER) -> tuple[Differing, Commit]:
        planned = self.rewrite(rows, slices)
        commit = planned.commit(self.note())
        assert commit is not None
        return planned.differences, commit

    def rows(self) -> Counter[str]:
        """As Spark reads them."""
        return bag(read_at(bare_lake(self.spark), self.path, latest_version(bare_lake(self.spark), self.path)))

    def versions(self, versions: Iterable[int]) -> dict[int, Counter[str]]:
        """The rows of each version, by one job of Spark."""
        frames = [
            read_at(bare_lake(self.spark), self.path, version).withColumn(VERSION, sf.lit(version))
            for version in versions
        ]
        return by_version(reduce(DataFrame.unionByName, frames).toArrow(), versions)

    def feeds(self, versions: Iterable[int]) -> dict[int, Counter[str]]:
        """What Spark's change feed says of each version."""
        reader = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
        changes = reader.load(self.path).select(*names(), CHANGE, sf.col("_commit_version").alias(VERSION))
        return by_version(changes.toArrow(), versions)


def by_version(rows: pa.Table, versions: Iterable[int]) -> dict[int, Counter[str]]:
    return {version: bag(rows.filter(pc.equal(rows[VERSION], version)).drop_columns([VERSION])) for version in versions}


def names() -> list[Any]:
    return [sf.col(f"`{name.replace('`', '``')}`") for name in SCHEMA.names]


def bag(rows: Any) -> Counter[str]:
    table = rows if isinstance(rows, pa.Table) else rows.toArrow()
    return Counter(str(sorted(item.items())) for item in table.to_pylist())


STEPS: list[Callable[[Rows], Rows]] = [
    lambda _: [row(n) for n in range(12)],
    lambda rows: [item | {"real": 7.0, "words": ["z"]} if n % 4 == 1 else item for n, item in enumerate(rows)],
    lambda rows: [item | {"at": item["at"] + 3 * HOUR} if n == 5 else item for n, item in enumerate(rows) if n != 2],
    lambda rows: [*rows[2:5], row(30), row(31, at=datetime(1, 1, 1, tzinfo=UTC)), row(32, real=-0.0)],
    lambda rows: rows[:-1],
    lambda _: [],
    lambda _: [row(3), row(4, words=None)],
]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("writer", ["delta-rs", pytest.param("Spark", marks=pytest.mark.repeats)])
def test_rows_come_and_go(spark: SparkSession, tmp_path: Path, writer: str, monkeypatch: Any) -> None:
    """To an empty table and from it, in one file and in several, by the one writer and the other."""
    lake, rows = Results(spark, tmp_path), []
    if writer == "Spark":
        monkeypatch.setattr(Publication, "change", only_spark)
    else:
        monkeypatch.setattr(local_rewrite, "frame_of", None)  # no MERGE of Spark's
    states, feeds = {0: bag(table_of([]))}, {}
    for step in STEPS:
        rows = step(rows)
        differences, commit = lake.bring(rows)
        states[commit.version], feeds[commit.version] = bag(table_of(rows)), bag(feed_of(differences))
        assert commit.changed == tuple(differences.counts[kind] for kind in (INSERT, UPDATE, DELETE))
        actions = commit_actions(Path(lake.path), commit.version)
        assert any("cdc" in action for action in actions) or not (
            differences.counts[UPDATE] or differences.counts[DELETE]
        )
    assert list(states) == list(range(len(STEPS) + 1))
    assert lake.rows() == states[len(STEPS)]
    assert lake.versions(states) == states
    assert lake.feeds(feeds) == feeds
    last = DeltaTable.forPath(spark, lake.path).history(1).collect()[0]
    assert (last["version"], last["operation"]) == (7, "WRITE" if writer == "delta-rs" else "MERGE")
    assert json.loads(last["userMetadata"])["number"] == 7


@pytest.mark.long
@pytest.mark.spark
def test_files_that_no_window_touches_stay(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Of the others the rows outside the windows stay; statistics pass over no row that is there."""
    monkeypatch.setattr(local_rewrite, "frame_of", None)  # no MERGE
    lake = Results(spark, tmp_path)
    for first in (0, 10, 20):
        lake.write_by_spark([row(n) for n in range(first, first + 10)])
    start = round(NOON.timestamp()) * 1_000_000
    slices = [(start, start + 3 * 3_600_000_000), (start + 12 * 3_600_000_000, start + 14 * 3_600_000_000)]
    unchanged = [row(n) for n in range(30) if n not in (0, 1, 2, 12, 13)]
    changed = [row(0), row(1, real=8.0), row(13, real=9.0), row(40, at=NOON + 13 * HOUR)]
    files = set(table_here(bare_lake(spark), lake.path).files)
    lake.bring(changed, slices)
    assert lake.rows() == bag(table_of([*unchanged, *changed]))
    assert len(files & set(table_here(bare_lake(spark), lake.path).files)) == 1
    written = [item for item in [*unchanged, *changed] if item["at"] < NOON + 20 * HOUR]  # the last file is as it was
    asked = [one_row(spark.read.format("delta").load(lake.path), item) for item in written]
    numbered = [frame.select(sf.lit(number)) for number, frame in enumerate(asked)]
    assert sorted(row[0] for row in reduce(DataFrame.union, numbered).collect()) == list(range(len(asked)))
    DeltaTable.forPath(spark, lake.path).optimize().executeCompaction()
    assert len(table_here(bare_lake(spark), lake.path).files) == 1
    assert lake.rows() == bag(table_of([*unchanged, *changed]))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("made_by", ["Trendlake", "Spark"])
def test_spark_skips_no_row(spark: SparkSession, tmp_path: Path, made_by: str) -> None:
    """By bounds in the log or in a file: NaN is the largest number, and large decimals are as large as they are."""
    lake, rows = Results(spark, tmp_path), [row(1), row(2), row(4), row(5)]
    if made_by == "Spark":  # as it makes a quarantine: no property says which columns have bounds
        lake.path = str(tmp_path / "plain")
        spark.createDataFrame(SCHEMA.empty_table()).write.format("delta").save(lake.path)
    lake.write(rows)
    lake.bring([*rows[:3], row(5, whole=50), row(7)])
    table = spark.read.format("delta").load(lake.path)
    assert sorted(item["id"] for item in table.where("real > 100").collect()) == ["e1", "e5", "e7"]
    large = table.where(f"large > cast('{10**37 + 1}' as decimal(38, 0))")
    assert sorted(item["id"] for item in large.collect()) == ["e2", "e4", "e5", "e7"]


def one_row(table: DataFrame, item: dict[str, Any]) -> DataFrame:
    """What is in the table of a row, asked for by columns that statistics tell of."""
    matching = table.where(sf.col("at") == sf.lit(item["at"]))
    for name in ("id", "whole", "count", "a.name-odd"):
        matching = matching.where(sf.col(f"`{name}`").eqNullSafe(sf.lit(item[name])))
    return matching


@pytest.mark.long
@pytest.mark.spark
def test_another_writer_comes_first(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Before the commit is begun, and after it. It is not made, and nothing is lost."""
    lake = Results(spark, tmp_path)
    lake.write([row(n) for n in range(4)])
    wanted = [row(1), row(2, real=5.0)]
    late = lake.rewrite(wanted)
    lake.write([row(9)])
    assert late.commit(lake.note()) is None
    both = [*(row(n) for n in range(4)), row(9)]
    assert lake.rows() == bag(table_of(both))

    writers: list[Callable[[], object]] = [
        lambda: lake.write_by_spark([row(10)]),
        lambda: DeltaTable.forPath(spark, lake.path).optimize().executeCompaction(),
        lambda: lake.bring([*wanted, row(11)]),
    ]
    real = write.Transaction

    def meanwhile(*asked: Any) -> Any:
        while waiting:  # the rows are compared
            waiting.pop()()
        return real(*asked)

    monkeypatch.setattr(write, "Transaction", meanwhile)
    for writer in writers:
        waiting: list[Callable[[], object]] = []
        rewrite = lake.rewrite(wanted)
        note = lake.note()
        waiting.append(writer)
        assert rewrite.commit(note) is None
    assert lake.rows() == bag(table_of([*wanted, row(11)]))

    execute = TableMerger.execute

    def late_execute(merge: TableMerger) -> Any:
        while waiting:  # delta-rs has seen the newest version
            waiting.pop()()
        return execute(merge)

    monkeypatch.setattr(TableMerger, "execute", late_execute)
    rewrite, note = lake.rewrite([row(1, real=6.0)]), lake.note()
    waiting.append(lambda: lake.write_by_spark([row(12)]))
    assert rewrite.commit(note) is None
    assert lake.rows() == bag(table_of([*wanted, row(11), row(12)]))
    lake.bring(wanted)
    assert lake.rows() == bag(table_of(wanted))


@pytest.mark.spark
def test_a_number_that_has_been_reached(spark: SparkSession, tmp_path: Path) -> None:
    lake = Results(spark, tmp_path)
    lake.bring([row(1)])
    lake.number = 0
    assert lake.rewrite([row(2)]).commit(lake.note()) is None
    assert lake.rows() == bag(table_of([row(1)]))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    "statement",
    [
        "ADD CONSTRAINT positive CHECK (whole > 0 OR whole IS NULL)",
        pytest.param("SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", marks=pytest.mark.repeats),
        pytest.param("CLUSTER BY (at)", marks=pytest.mark.repeats),
        pytest.param("SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')", marks=pytest.mark.repeats),
    ],
)
def test_what_only_delta_can_write(spark: SparkSession, tmp_path: Path, statement: str, monkeypatch: Any) -> None:
    """Constraints, row ids and the like, clustered tables as Trendlake 0.2 made them: Spark's MERGE writes them."""
    lake = Results(spark, tmp_path)
    lake.write([row(n) for n in range(4)])
    spark.sql(f"ALTER TABLE delta.`{lake.path}` {statement}")
    monkeypatch.setattr(write, "_commit", None)
    lake.bring([row(1, real=3.0), row(2), row(5)])
    assert lake.rows() == bag(table_of([row(1, real=3.0), row(2), row(5)]))


def only_spark(*_: Any) -> Any:
    raise NotHereError("a test")


def feed_of(differences: Differing) -> pa.Table:
    """As the change feed tells them."""
    changes = differences.changes()
    parts = [
        (changes.before, "update_preimage"),
        (changes.after, "update_postimage"),
        (changes.new, "insert"),
        (changes.gone, "delete"),
    ]
    return pa.concat_tables(rows.append_column(CHANGE, repeated(word, rows.num_rows)) for rows, word in parts)


@pytest.mark.long
@pytest.mark.spark
def test_equal_rows(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Rows that are doubled go, by Spark, which asks for them by their key."""
    lake = Results(spark, tmp_path)
    lake.write([row(1), row(1), row(2)])
    lake.bring([row(2, real=4.0)])
    assert lake.rows() == bag(table_of([row(2, real=4.0)]))


MOMENTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Of the years 1 to 9999."""


@given(moments=st.lists(st.none() | MOMENTS | st.integers(-(2**63), 2**63 - 1), max_size=5))
@CI
def test_statistics_bound_what_is_there(moments: list[Any]) -> None:
    """As Delta reads them: what lies outside of least and greatest is not in the file."""
    table = pa.table({"it": pa.array(moments, pa.timestamp("us", "UTC")), "real": pa.array([1.5] * len(moments))})
    file = write._Statistics(table.schema)
    for batch in table.to_batches(max_chunksize=2):
        file.add(batch)
    statistics = json.loads(file.as_json())
    there = [value for value in moments if value is not None]
    assert statistics["numRecords"] == len(moments)
    assert "real" not in statistics["minValues"] | statistics["maxValues"]
    if "it" in statistics["minValues"]:
        low, high = (micros(statistics[end]["it"]) for end in ("minValues", "maxValues"))
        assert statistics["nullCount"]["it"] == len(moments) - len(there)
        assert low <= min(there)
        assert max(there) <= high
    else:
        assert not (there and all(MOST[0] <= value <= MOST[1] for value in there))


MOST = (-62_135_596_800_000_000, 253_402_300_799_999_000)
"""From the first millisecond that a text has room for to the last."""


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
