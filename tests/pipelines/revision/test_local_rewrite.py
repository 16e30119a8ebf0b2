"""A small difference, committed by files that are written here, is what Delta's own MERGE makes of it: rows, change
feed, counts; what other writers do meanwhile is seen, and what only Delta can write is left to it."""

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
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.random.profile import CI
from tests.support import plain_writer
from tests.support.empty_tables import copied
from trendlake.pipelines.delta import limits, local_commit
from trendlake.pipelines.delta.commits import Commit
from trendlake.pipelines.delta.local_log import commit_actions
from trendlake.pipelines.delta.local_reader import CHANGE, TableHere, table_here
from trendlake.pipelines.delta.tables import CONFLICTS, FED, latest_version, read_at
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.provenance import identity
from trendlake.pipelines.results.publication import DELETE, INSERT, UPDATE, Publication
from trendlake.pipelines.revision import local_rewrite
from trendlake.pipelines.revision.local_rewrite import Published, Rewrite
from trendlake.pipelines.revision.row_diff import Differing, differing

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


class Lake:
    """A results table and what its rows should be."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.path, self.number = spark, str(folder / "results"), 0
        copied(spark, self.path, "rows_of_many_sorts", self._create)

    def _create(self) -> None:
        builder = DeltaTable.create(self.spark).location(self.path)
        builder = builder.addColumns(self.spark.createDataFrame(SCHEMA.empty_table()).schema).clusterBy("at")
        for key, value in FED.items():
            builder = builder.property(key, value)
        builder.execute()

    def write(self, rows: Rows) -> None:
        plain_writer.append(self.spark, self.path, table_of(rows))

    def write_by_spark(self, rows: Rows) -> None:
        """With Spark's statistics and times."""
        frame = self.spark.createDataFrame(table_of(rows)).coalesce(1)
        frame.write.format("delta").mode("append").save(self.path)

    def rewrite(self, rows: Rows, slices: Any = EVER) -> Rewrite:
        """What brings the rows in `slices` to `rows`."""
        there = Published.of(table_here(self.spark, self.path), "at", slices, 1_000)
        warehouse = SimpleNamespace(results=lambda _: self.path, table_of=lambda name: name)
        run: Any = SimpleNamespace(spark=self.spark, name="watched", warehouse=warehouse)
        plan: Any = SimpleNamespace(key=("id",), owned=lambda _: ("at", 0, 0))
        return Rewrite(run, plan, there, differing(there.rows, table_of(rows), identity(plan)))

    def note(self) -> Note:
        self.number += 1
        return Note("form", 1, ()).signed("r", "revise", self.number)

    def bring(self, rows: Rows, slices: Any = EVER) -> tuple[Differing, Commit]:
        planned = self.rewrite(rows, slices)
        commit = planned.commit(self.note())
        assert commit is not None
        return planned.differences, commit

    def rows(self) -> Counter[str]:
        """As Spark reads them."""
        return bag(read_at(self.spark, self.path, latest_version(self.spark, self.path)))

    def versions(self, versions: Iterable[int]) -> dict[int, Counter[str]]:
        """The rows of each version, by one job of Spark."""
        frames = [read_at(self.spark, self.path, version).withColumn(VERSION, sf.lit(version)) for version in versions]
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


@pytest.mark.spark
@pytest.mark.parametrize("most", [limits.REWRITTEN, -1], ids=["files", "MERGE"])
def test_rows_come_and_go(spark: SparkSession, tmp_path: Path, most: int, monkeypatch: Any) -> None:
    """To an empty table and from it, in one file and in several, the one way and the other."""
    monkeypatch.setattr(limits, "REWRITTEN", most)
    lake, rows = Lake(spark, tmp_path), []
    states, feeds = {0: bag(table_of([]))}, {}
    for step in STEPS:
        rows = step(rows)
        differences, commit = lake.bring(rows)
        states[commit.version], feeds[commit.version] = bag(table_of(rows)), bag(differences.feed())
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
    assert (last["version"], last["operation"], last["operationMetrics"]["numTargetRowsInserted"]) == (7, "MERGE", "2")
    assert json.loads(last["userMetadata"])["number"] == 7


@pytest.mark.spark
def test_files_that_no_window_touches_stay(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Of the others the rows outside the windows stay; statistics pass over no row that is there."""
    monkeypatch.setattr(local_rewrite, "frame_of", None)  # no MERGE
    lake = Lake(spark, tmp_path)
    for first in (0, 10, 20):
        lake.write_by_spark([row(n) for n in range(first, first + 10)])
    start = round(NOON.timestamp()) * 1_000_000
    slices = [(start, start + 3 * 3_600_000_000), (start + 12 * 3_600_000_000, start + 14 * 3_600_000_000)]
    unchanged = [row(n) for n in range(30) if n not in (0, 1, 2, 12, 13)]
    changed = [row(0), row(1, real=8.0), row(13, real=9.0), row(40, at=NOON + 13 * HOUR)]
    files = set(table_here(spark, lake.path).files)
    lake.bring(changed, slices)
    assert lake.rows() == bag(table_of([*unchanged, *changed]))
    assert len(files & set(table_here(spark, lake.path).files)) == 1
    written = [item for item in [*unchanged, *changed] if item["at"] < NOON + 20 * HOUR]  # the last file is as it was
    asked = [one_row(spark.read.format("delta").load(lake.path), item) for item in written]
    numbered = [frame.select(sf.lit(number)) for number, frame in enumerate(asked)]
    assert sorted(row[0] for row in reduce(DataFrame.union, numbered).collect()) == list(range(len(asked)))
    DeltaTable.forPath(spark, lake.path).optimize().executeCompaction()
    assert len(table_here(spark, lake.path).files) == 1
    assert lake.rows() == bag(table_of([*unchanged, *changed]))


def one_row(table: DataFrame, item: dict[str, Any]) -> DataFrame:
    """What is in the table of a row, asked for by columns that statistics tell of."""
    matching = table.where(sf.col("at") == sf.lit(item["at"]))
    for name in ("id", "whole", "count", "a.name-odd"):
        matching = matching.where(sf.col(f"`{name}`").eqNullSafe(sf.lit(item[name])))
    return matching


@pytest.mark.spark
def test_another_writer_comes_first(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Before Delta's transaction has begun, the commit is not made; after it, Delta refuses it. Nothing is lost."""
    lake = Lake(spark, tmp_path)
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
    real = TableHere.last_transaction

    def meanwhile(table: TableHere, application: str) -> int:
        while waiting:  # the transaction has begun
            waiting.pop()()
        return real(table, application)

    monkeypatch.setattr(TableHere, "last_transaction", meanwhile)
    for writer in writers:
        waiting: list[Callable[[], object]] = []
        rewrite = lake.rewrite(wanted)
        note = lake.note()
        waiting.append(writer)
        with pytest.raises(CONFLICTS):
            rewrite.commit(note)
    assert lake.rows() == bag(table_of([*wanted, row(11)]))
    lake.bring(wanted)
    assert lake.rows() == bag(table_of(wanted))


@pytest.mark.spark
def test_a_number_that_has_been_reached(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.bring([row(1)])
    lake.number = 0
    assert lake.rewrite([row(2)]).commit(lake.note()) is None
    assert lake.rows() == bag(table_of([row(1)]))


@pytest.mark.spark
@pytest.mark.parametrize(
    "statement",
    [
        "ADD CONSTRAINT positive CHECK (whole > 0 OR whole IS NULL)",
        "SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
    ],
)
def test_what_only_delta_can_write(spark: SparkSession, tmp_path: Path, statement: str, monkeypatch: Any) -> None:
    """Constraints, row ids and the like: MERGE writes them."""
    lake = Lake(spark, tmp_path)
    lake.write([row(n) for n in range(4)])
    spark.sql(f"ALTER TABLE delta.`{lake.path}` {statement}")
    monkeypatch.setattr(Publication, "commit_files", None)
    lake.bring([row(1, real=3.0), row(2), row(5)])
    assert lake.rows() == bag(table_of([row(1, real=3.0), row(2), row(5)]))


@pytest.mark.spark
def test_the_session_of_the_thread_is_as_before(spark: SparkSession, tmp_path: Path) -> None:
    """What is written next carries no note of this commit, and no number."""
    lake = Lake(spark, tmp_path)
    lake.bring([row(1)])
    lake.write_by_spark([row(2)])
    last = DeltaTable.forPath(spark, lake.path).history(1).collect()[0]
    assert (last["version"], last["userMetadata"]) == (2, None)


MOMENTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Of the years 1 to 9999."""


@given(
    moments=st.lists(st.none() | MOMENTS | st.integers(-(2**63), 2**63 - 1), max_size=5),
    texts=st.lists(st.none() | st.text(max_size=40), max_size=5),
    numbers=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5),
)
@CI
def test_statistics_bound_what_is_there(moments: list[Any], texts: list[Any], numbers: list[Any]) -> None:
    """As Delta reads them: what lies outside of least and greatest is not in the file."""
    for kind, values in ((pa.timestamp("us", "UTC"), moments), (pa.string(), texts), (pa.int64(), numbers)):
        table = pa.table({"it": pa.array(values, kind), "real": pa.array([1.5] * len(values))})
        statistics = json.loads(json.dumps(local_commit.statistics(table)))
        there = [value for value in values if value is not None]
        assert statistics["numRecords"] == len(values)
        assert "real" not in statistics["nullCount"] | statistics["minValues"] | statistics["maxValues"]
        if "it" in statistics["minValues"]:
            low, high = statistics["minValues"]["it"], statistics["maxValues"]["it"]
            if kind == pa.timestamp("us", "UTC"):
                low, high = (micros(text) for text in (low, high))
            assert statistics["nullCount"]["it"] == len(values) - len(there)
            if kind == pa.string():
                low, high, there = low.encode(), high.encode(), [text.encode() for text in there]
            assert low <= min(there)
            assert max(there) <= high
        else:
            short = all(len(value) <= local_commit.TEXT for value in there) if kind == pa.string() else True
            years = kind != pa.timestamp("us", "UTC") or all(MOST[0] <= value <= MOST[1] for value in there)
            assert not (there and short and years)


MOST = (-62_135_596_800_000_000, 253_402_300_799_999_000)
"""From the first millisecond that a text has room for to the last."""


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
