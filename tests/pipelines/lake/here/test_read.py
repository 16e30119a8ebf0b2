"""What is read of a Delta table without Spark is what Spark reads; what is not sure to be is refused."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable
from deltalake import DeltaTable as LocalTable
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.conftest import CHAOS
from tests.random.profile import examples
from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.create import FED
from trendlake.pipelines.lake.here import log
from trendlake.pipelines.lake.here import write as writes
from trendlake.pipelines.lake.here.log import commit_info, folder_on_disk, logged_versions
from trendlake.pipelines.lake.here.maintain import compact
from trendlake.pipelines.lake.here.read import CHANGE, inside, table_here
from trendlake.pipelines.lake.here.write import append_any
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.lake.road import NotHere, NotHereError, tried
from trendlake.pipelines.lake.versions import TableVersion, newest, table_id
from trendlake.pipelines.lake.warehouse import OvertakenError
from trendlake.pipelines.spark.frames import frame_of

pytestmark = pytest.mark.spark

MANY = 1_000
VERSION = "__version"
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "real": pa.float64(),
        "large": pa.decimal128(38, 0),
        "whole": pa.int32(),
        "yes": pa.bool_(),
        "words": pa.list_(pa.string()),
    }
)
NAMES = SCHEMA.names
WRITES = 30
MOMENTS = [datetime(year, 6, 1, 12, 0, 0, 700, UTC) for year in (1500, 1900, 2024, 2261, 2600, 3000, 9999)]
WAYS = ("TIMESTAMP_MICROS", "INT96", "TIMESTAMP_MILLIS")
EACH_WAY = [WAYS[0], *(pytest.param(way, marks=pytest.mark.repeats) for way in WAYS[1:])]


def rows(first: int, count: int, moment: datetime | None = MOMENTS[2]) -> list[dict[str, Any]]:
    rows_drawn = []
    for number in range(first, first + count):
        odd = number % 3 == 0
        values = (None if odd else [1.5, -0.0, float("inf")][number % 3], 10**37 + number, number, not odd)
        words = None if odd else ["a", None, "\U0001f600"][: number % 4]
        rows_drawn.append(dict(zip(NAMES, (f"e{number}", moment, *values, words), strict=True)))
    return rows_drawn


def write(spark: SparkSession, path: str, rows: list[dict[str, Any]], mode: str = "append", **options: Any) -> None:
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)).coalesce(1)
    frame.write.format("delta").mode(mode).options(**options).save(path)


def new_table(spark: SparkSession, path: Path, **properties: str) -> str:
    builder = DeltaTable.create(spark).location(str(path))
    builder = builder.addColumns(spark.createDataFrame(SCHEMA.empty_table()).schema)
    for key, value in (FED | {f"delta.{name}": value for name, value in properties.items()}).items():
        builder = builder.property(key, value)
    builder.execute()
    return str(path)


def bag(table: pa.Table | DataFrame) -> Counter[str]:
    arrow_table = table if isinstance(table, pa.Table) else table.toArrow()
    return Counter(str(row) for row in arrow_table.to_pylist())


def rows_of_versions(spark: SparkSession, path: str, last: int) -> dict[int, pa.Table]:
    """The rows of each version up to `last`, which Spark reads by one job."""
    frames = [
        read_at(bare_lake(spark), path, version).withColumn(VERSION, sf.lit(version)) for version in range(last + 1)
    ]
    rows = reduce(DataFrame.unionByName, frames).toArrow()
    return {
        version: rows.filter(pc.equal(rows[VERSION], version)).drop_columns([VERSION]) for version in range(last + 1)
    }


def history(spark: SparkSession, path: str) -> list[Callable[[], Any]]:
    """Commits of many sorts."""
    table = DeltaTable.forPath(spark, path)
    more = spark.createDataFrame(pa.Table.from_pylist(rows(6, 6), SCHEMA))
    values: Any = {name: sf.col(f"m.{name}") for name in NAMES}
    return [
        lambda: write(spark, path, rows(0, 6)),
        lambda: table.update(sf.col("whole") > 2, {"real": sf.lit(7.0)}),
        lambda: table.delete(sf.col("id") == "e1"),
        lambda: write(spark, path, [*rows(20, 2), *rows(20, 2)]),
        lambda: table.optimize().executeCompaction(),
        lambda: (
            table.alias("t")
            .merge(more.alias("m"), "t.id = m.id")
            .whenMatchedDelete()
            .whenNotMatchedInsert(values=values)
            .execute()
        ),
        lambda: table.vacuum(),
        lambda: write(spark, path, rows(30, 3), "overwrite", replaceWhere="whole >= 20"),
        lambda: write(spark, path, rows(40, 3, None), "overwrite"),
        lambda: table.delete(),
        lambda: write(spark, path, rows(50, 1)),
    ]


@pytest.mark.long
@pytest.mark.more_in_chaos
@pytest.mark.parametrize("way", WAYS[: 2 if CHAOS else 1])
def test_the_feed_and_the_rows(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """From every version to every later one, as Spark tells it; and what the log says of each commit."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", way)
    try:
        path = new_table(spark, tmp_path / "a table")
        for step in history(spark, path):
            step()
            same_as_read_anew(spark, path)
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", WAYS[0])
    last = latest_version(bare_lake(spark), path)
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    feed = reader.load(path).toArrow()
    versions = feed["_commit_version"].to_pylist()
    for upto, by_spark in rows_of_versions(spark, path, last).items():
        table = table_here(bare_lake(spark), path, upto)
        assert (table.version, table.row_count) == (upto, by_spark.num_rows)
        assert bag(table.rows_with(NAMES, pa.array([f"e{n}" for n in range(60)]), MANY)) == bag(by_spark)
        for after in range(upto):
            mine = pa.array([after < version <= upto for version in versions])
            assert bag(table.feed(NAMES, after, MANY)) == bag(feed.filter(mine).select([*NAMES, CHANGE]))
    theirs = DeltaTable.forPath(spark, path).history().select("version", "operation", "operationMetrics").collect()
    folder = folder_on_disk(bare_lake(spark), path)
    infos = [(version, commit_info(folder, version)) for version in logged_versions(folder)]
    assert [(n, info["operation"], info.get("operationMetrics", {})) for n, info in infos] == [tuple(r) for r in theirs]
    assert [commit.version for commit in recent_commits(bare_lake(spark), path, 3)] == [last, last - 1, last - 2]
    assert newest(bare_lake(spark), path) == TableVersion(
        last, read_at(bare_lake(spark), path, last).schema, table_id(bare_lake(spark), path)
    )
    with pytest.raises(NotHereError, match="more than 5 rows"):
        table_here(bare_lake(spark), path).feed(NAMES, 0, 5)


@pytest.mark.long
def test_rows_that_other_programs_change(spark: SparkSession, tmp_path: Path) -> None:
    """By delta-rs, whose files have texts of another type of Arrow's, and by a writer with yet another: the rows of
    each version and the changes between them are Spark's."""
    path = str(tmp_path / "t")
    LocalTable.create(path, SCHEMA, configuration={"delta.enableChangeDataFeed": "true"})
    write(spark, path, rows(0, 6))
    write(spark, path, rows(6, 6))
    LocalTable(path).delete("id = 'e1'")
    LocalTable(path).update(updates={"real": "7.0", "id": "concat(id, repeat('x', 200))"}, predicate="whole > 8")
    more = pa.Table.from_pylist(rows(20, 3), SCHEMA).set_column(
        0, "id", pa.array(["e20", None, "e22"], pa.large_string())
    )
    write_deltalake(path, more, mode="append")
    LocalTable(path).merge(
        pa.Table.from_pylist(rows(4, 2), SCHEMA), "t.id = m.id", source_alias="m", target_alias="t"
    ).when_matched_delete("m.whole = 4").when_matched_update({"real": "0.5"}).execute()
    files = [Path(path, name) for name in table_here(bare_lake(spark), path).files]
    assert any(pa.types.is_string_view(pq.read_schema(file).field("id").type) for file in files)
    last = latest_version(bare_lake(spark), path)
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    feed = reader.load(path).toArrow()
    versions = feed["_commit_version"].to_pylist()
    for upto, by_spark in rows_of_versions(spark, path, last).items():
        table = table_here(bare_lake(spark), path, upto)
        assert bag(table.every(NAMES, MANY)) == bag(by_spark)
        for row in table.every(NAMES, MANY).to_pylist():  # files may say bounds of long texts that are cut off
            asked = pa.array([row["id"]], pa.string())
            assert str(row) in bag(table.rows_with(NAMES, asked, MANY))
            assert row["id"] is None or str(row) in bag(table.near("id", row["id"]).every(NAMES, MANY))
        for after in range(upto):
            mine = pa.array([after < version <= upto for version in versions])
            assert bag(table.feed(NAMES, after, MANY)) == bag(feed.filter(mine).select([*NAMES, CHANGE]))


def same_as_read_anew(spark: SparkSession, path: str) -> None:
    """What is held of a log is what it says to whoever reads it for the first time."""
    held, anew = table_here(bare_lake(spark), path), LocalTable(folder_on_disk(bare_lake(spark), path))
    assert (held.version, held.table_id) == (anew.version(), str(anew.metadata().id))
    assert held.schema == StructType.fromJson(json.loads(anew.schema().to_json()))
    assert bag(held.actions) == bag(pa.table(anew.get_add_actions(flatten=True)))
    assert held.last_transaction("a") == (anew.transaction_version("a") or -1)


INSTANTS = st.integers(-9, 30)


@examples(300)
@given(
    st.lists(st.none() | INSTANTS, max_size=30),
    st.lists(st.tuples(INSTANTS, st.integers(0, 6)), min_size=1),
    st.integers(0, 30),
)
def test_times_in_slices(times: list[int | None], slices: list[tuple[int, int]], cut: int) -> None:
    """Slices may overlap, and lie in any order."""
    wanted = [(low, low + length) for low, length in slices]
    parts = [pa.array(part, pa.timestamp("us", "UTC")) for part in (times[:cut], times[cut:])]
    rows = pa.table({"at": pa.chunked_array(parts)})
    expected = [time is not None and any(low <= time < high for low, high in wanted) for time in times]
    assert inside(rows, "at", wanted).to_pylist() == expected


@pytest.mark.repeats
def test_what_is_held_of_a_log(spark: SparkSession, tmp_path: Path) -> None:
    """Across checkpoints, a column more, transactions, a restored version, another table in the same place."""
    path, other = str(tmp_path / "t"), str(tmp_path / "u")
    versions = grown_in_all_ways(spark, path)
    shutil.move(path, other)
    for number in range(versions):
        write_deltalake(path, pa.Table.from_pylist(rows(number, 1), SCHEMA), mode="append")
        same_as_read_anew(spark, path)
    shutil.rmtree(path)
    shutil.move(other, path)  # of as many versions
    same_as_read_anew(spark, path)


def grown_in_all_ways(spark: SparkSession, path: str) -> int:
    """A new table at `path`, looked at after each of its commits: how many these are."""
    new_table(spark, Path(path), checkpointInterval="3")
    more = spark.createDataFrame(pa.Table.from_pylist(rows(1, 1), SCHEMA)).withColumn("more", sf.lit(1))
    for step in (
        lambda: write(spark, path, rows(0, 2), "append", txnAppId="a", txnVersion="7"),
        lambda: more.write.format("delta").mode("append").option("mergeSchema", "true").save(path),
        lambda: DeltaTable.forPath(spark, path).optimize().executeCompaction(),
        lambda: write(spark, path, rows(5, 2), "append", txnAppId="a", txnVersion="9"),
        lambda: DeltaTable.forPath(spark, path).restoreToVersion(1),
        lambda: write(spark, path, rows(8, 2)),
    ):
        step()
        same_as_read_anew(spark, path)
        assert table_here(bare_lake(spark), path, 1).schema.names == NAMES
    return latest_version(bare_lake(spark), path) + 1


@pytest.mark.long
@pytest.mark.parametrize("way", EACH_WAY)
def test_moments_of_all_ages(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """One file for each of them and one for all; a checkpoint, whose statistics wrap round; slices that begin and end
    within a millisecond of a row."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", way)
    try:
        path = new_table(spark, tmp_path / "t", checkpointInterval="2")
        each = [row for number, moment in enumerate(MOMENTS) for row in rows(number, 1, moment)]
        write(spark, path, each, maxRecordsPerFile=1)
        write(spark, path, [row for n, moment in enumerate([*MOMENTS, None]) for row in rows(10 + n, 1, moment)])
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", WAYS[0])
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    table = table_here(bare_lake(spark), path)
    assert len(table.files) == len(MOMENTS) + 1
    time = sf.unix_micros("at")
    whole = spark.read.format("delta").load(path)
    times = [row[0] for row in whole.select(time).where("at IS NOT NULL").distinct().collect()]
    assert len(times) == len(MOMENTS)
    edges = [(low + a, high + b) for low in times for high in times if low <= high for a in (-1, 0, 1) for b in (0, 1)]
    slices = [[edge] for edge in edges] + [[edges[0], edges[-1]], [(times[2], times[2] + 1), (times[4], times[4] + 1)]]
    everything = list(zip(*(whole.select("id", time).toArrow().to_pydict().values()), strict=True))
    for ranges in slices:
        wanted = {ident for ident, at in everything if at is not None and any(a <= at < b for a, b in ranges)}
        assert set(table.rows(["id"], "at", ranges, MANY)["id"].to_pylist()) == wanted, ranges


@pytest.mark.long
def test_many_files(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark passes over most of them; the checkpoint says how many there are before any is listed."""
    path = new_table(spark, tmp_path / "t", checkpointInterval="6")
    for number in range(6):
        write(spark, path, rows(number, 1))
    monkeypatch.setattr(limits, "FILES", 6)
    assert table_here(bare_lake(spark), path).feed(NAMES, 0, MANY).num_rows == 6
    write(spark, path, rows(6, 1))  # what was read of the version before is remembered
    monkeypatch.setattr(limits, "FILES", 5)
    with pytest.raises(NotHereError, match="files, more than 5"):
        table_here(bare_lake(spark), path)
    (tmp_path / "t" / "_delta_log" / "_last_checkpoint").unlink()
    with pytest.raises(NotHereError, match="7 files, more than 5"):
        table_here(bare_lake(spark), path)
    monkeypatch.setattr(limits, "FILES", 7)
    table = table_here(bare_lake(spark), path)
    monkeypatch.setattr(limits, "FILES", 5)
    with pytest.raises(NotHereError, match="7 files of changes"):
        table.feed(NAMES, 0, MANY)


@pytest.mark.long
def test_what_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """A table that does not lie plainly in its files, and a feed that does not tell all."""

    def refused(path: str, ask: Callable[[Any], Any] = lambda table: table, match: str = "") -> None:
        with pytest.raises(NotHereError, match=match):
            ask(table_here(bare_lake(spark), path))

    refused(str(tmp_path / "none"), match="no table on disk")
    for name, properties, match in (
        ("vectors", {"enableDeletionVectors": "true"}, "deletionVectors"),
        ("mapped", {"columnMapping.mode": "name"}, "name"),
    ):
        path = new_table(spark, tmp_path / name, **properties)
        write(spark, path, rows(0, 3))
        refused(path, match=match)
    frame = spark.createDataFrame(pa.Table.from_pylist(rows(0, 3), SCHEMA))
    frame.write.format("delta").partitionBy("whole").save(str(tmp_path / "partitioned"))
    refused(str(tmp_path / "partitioned"), match="partitioned by")
    odd = new_table(spark, tmp_path / "100%")
    write(spark, odd, rows(0, 1))
    refused(odd, match="no table on disk")

    off = new_table(spark, tmp_path / "off", enableChangeDataFeed="false")
    write(spark, off, rows(0, 3))
    spark.sql(f"ALTER TABLE delta.`{off}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    write(spark, off, rows(3, 3))
    refused(off, lambda table: table.feed(NAMES, 0, MANY), "was off in version 0")
    refused(off, lambda table: table.feed(NAMES, 1, MANY), "was off in version 1")
    assert table_here(bare_lake(spark), off).feed(NAMES, 2, MANY).num_rows == 3
    spark.sql(f"ALTER TABLE delta.`{off}` ADD COLUMN (more INT)")
    write(spark, off, rows(6, 1))
    refused(off, lambda table: table.feed(NAMES, 2, MANY), "another form of the table")
    refused(off, lambda table: table.rows_with(["nothing"], pa.array(["x"]), MANY), "no column nothing")

    padded = str(tmp_path / "padded")
    spark.sql(f"CREATE TABLE delta.`{padded}` (word CHAR(5), n INT) USING delta")
    refused(padded, lambda table: table.rows_with(["word"], pa.array(["x"]), MANY), "more to it than its type")
    assert table_here(bare_lake(spark), padded).rows_with(["n"], pa.array([1], pa.int32()), MANY).num_rows == 0

    gone = new_table(spark, tmp_path / "gone")
    write(spark, gone, rows(0, 3))
    DeltaTable.forPath(spark, gone).update(sf.col("whole") == 1, {"real": sf.lit(1.0)})
    shutil.rmtree(tmp_path / "gone" / "_change_data")
    answer = tried(lambda: table_here(bare_lake(spark), gone).feed(NAMES, 1, MANY))
    assert isinstance(answer, NotHere)
    assert answer.reason.startswith("FileNotFoundError")
    assert newest(bare_lake(spark), str(tmp_path / "none")) is None
    assert newest(bare_lake(spark), odd) == TableVersion(
        1, read_at(bare_lake(spark), odd, 1).schema, table_id(bare_lake(spark), odd)
    )


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (0, 0, 2), (2, 0, 1), (0, 1, 0, 0, 3, 0), (0,), (0, 0), ()])
def test_no_row_is_lost_on_the_way_to_spark(spark: SparkSession, sizes: tuple[int, ...]) -> None:
    """Empty chunks end a table for PySpark's own `createDataFrame`."""
    numbers = pa.chunked_array([list(range(size)) for size in sizes], pa.int64())
    words = pa.chunked_array([[["a"]] * size for size in sizes], pa.list_(pa.string()))
    frame = frame_of(spark, pa.table({"n": numbers, "words": words}))
    assert [row[0] for row in frame.collect()] == numbers.to_pylist()
    assert frame.count() == sum(sizes)


@pytest.mark.repeats
def test_appending_beside_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Commits of both, one after the other, past several checkpoints; a column that the table lacks is added."""
    path = new_table(spark, tmp_path / "t", checkpointInterval="3")
    for number in range(8):
        if number % 2:
            write(spark, path, rows(number, 1))
        else:
            append_any(bare_lake(spark), path, pa.Table.from_pylist(rows(number, 1), SCHEMA))
    assert bag(spark.read.format("delta").load(path)) == bag(pa.Table.from_pylist(rows(0, 8), SCHEMA))
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    more = pa.Table.from_pylist(rows(8, 1), SCHEMA).append_column("more", pa.array([5]))
    append_any(bare_lake(spark), path, more)
    frame = spark.read.format("delta").load(path)
    assert frame.columns == [*NAMES, "more"]
    assert sorted(row["more"] or 0 for row in frame.collect()) == [0] * 8 + [5]
    with pytest.raises(NotHereError):
        append_any(bare_lake(spark), str(tmp_path / "none"), more)


@pytest.mark.long
def test_files_put_together(spark: SparkSession, tmp_path: Path) -> None:
    """Beside writers that come meanwhile: the same rows, of all versions; a column that some files lack is NULL."""
    path = new_table(spark, tmp_path / "t")
    for number in range(5):
        append_any(bare_lake(spark), path, pa.Table.from_pylist(rows(number, 1), SCHEMA))
    append_any(bare_lake(spark), path, pa.Table.from_pylist(rows(5, 1), SCHEMA).append_column("more", pa.array([5])))
    before = bag(spark.read.format("delta").load(path))
    compact(bare_lake(spark), path)
    assert bag(spark.read.format("delta").load(path)) == before
    table = table_here(bare_lake(spark), path)
    (file,) = table.files
    group = pq.read_metadata(table.folder / file).row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    assert {column.compression for column in columns.values()} == {"SNAPPY"}
    columns_bounded = ("id", "whole", "real", "large")
    assert {name for name in ("real", "large", "whole") if columns[name].statistics} == {"whole"}
    bounds = {name: [table.actions[f"{end}.{name}"][0].as_py() for end in ("min", "max")] for name in columns_bounded}
    assert bounds == {"id": ["e0", "e5"], "whole": [0, 5], "real": [None, None], "large": [None, None]}
    assert len(table_here(bare_lake(spark), path, 6).files) == 6
    assert bag(read_at(bare_lake(spark), path, 6)) == before
    assert (
        append_any(bare_lake(spark), path, pa.Table.from_pylist(rows(6, 1), SCHEMA))
        == latest_version(bare_lake(spark), path)
        == 8
    )
    with pytest.raises(NotHereError):
        compact(bare_lake(spark), str(tmp_path / "none"))


def test_row_groups_of_what_is_put_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is without rows, also where the last one is full."""
    lake, path = bare_lake(spark), new_table(spark, tmp_path / "t")
    for number in range(6):
        append_any(lake, path, pa.Table.from_pylist(rows(number, 1), SCHEMA))
    monkeypatch.setattr(writes, "ROWS_A_GROUP", 2)
    compact(lake, path)
    table = table_here(lake, path)
    (file,) = table.files
    about = pq.read_metadata(table.folder / file)
    assert [about.row_group(at).num_rows for at in range(about.num_row_groups)] == [2, 2, 2]


def test_two_put_files_together_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """Of the same files, while others are added: each row is there once, whoever came first."""
    path = new_table(spark, tmp_path / "t")

    def write_and_compact(first: int) -> None:
        for number in range(first, first + WRITES):
            append_any(bare_lake(spark), path, pa.Table.from_pylist(rows(number, 1), SCHEMA))
            with suppress(OvertakenError):
                if number % 2:
                    compact(bare_lake(spark), path)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write_and_compact, range(0, 3 * WRITES, WRITES)))
    compact(bare_lake(spark), path)
    table = table_here(bare_lake(spark), path)
    assert table.row_count == 3 * WRITES
    assert sorted(table.every(["id"], MANY)["id"].to_pylist()) == sorted(f"e{n}" for n in range(3 * WRITES))
    assert len(table.files) == 1


@pytest.mark.parametrize("way", ["by another program", "by ours"])
def test_other_compactions_of_the_same_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Between the look at the newest version and the commit: the other's files stay, and each row is there once."""
    lake, path = bare_lake(spark), new_table(spark, tmp_path / "t")
    for number in range(5):
        append_any(lake, path, pa.Table.from_pylist(rows(number, 1), SCHEMA))
    another = LocalTable(path).optimize.compact if way == "by another program" else partial(compact, lake, path)
    real, others = writes.newest_view, [another]

    @contextmanager
    def meanwhile(folder: Path) -> Iterator[LocalTable]:
        with real(folder) as view:
            version = view.version()
            if others:
                log._newest_view.cache_clear()  # another process has its own
                others.pop()()
            assert view.version() == version
            yield view

    monkeypatch.setattr(writes, "newest_view", meanwhile)
    with pytest.raises(OvertakenError):
        compact(lake, path)
    table = table_here(lake, path)
    assert len(table.files) == 1
    assert sorted(table.every(["id"], MANY)["id"].to_pylist()) == [f"e{number}" for number in range(5)]


@pytest.mark.parametrize("way", EACH_WAY)
def test_the_extent(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """To the microsecond, whether files say it or are read; rows without a time count too."""
    path = new_table(spark, tmp_path / "t")
    assert table_here(bare_lake(spark), path).extent("at") == (0, None, None)
    write(spark, path, rows(0, 2, None))
    assert table_here(bare_lake(spark), path).extent("at") == (2, None, None)
    moments = [moment for moment in MOMENTS if way != "INT96" or 1900 <= moment.year < 2600]
    spark.conf.set("spark.sql.parquet.outputTimestampType", way)
    try:
        extents = []
        for number, moment in enumerate(moments):
            write(spark, path, [*rows(10 * number, 2, moment), *rows(10 * number + 5, 1, None)])
            extents.append(table_here(bare_lake(spark), path).extent("at"))
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", WAYS[0])
    stored = spark.read.format("delta").load(path).select("id", sf.unix_micros("at").alias("at")).toArrow().to_pylist()
    at = {row["id"]: row["at"] for row in stored if row["at"] is not None}
    times = [at[rows(10 * number, 1, moment)[0]["id"]] for number, moment in enumerate(moments)]
    assert extents == [(2 + 3 * n, min(times[:n]), max(times[:n])) for n in range(1, 1 + len(times))]


@pytest.mark.long
def test_the_last_transaction(spark: SparkSession, tmp_path: Path) -> None:
    """As Delta has it of each version, whether the log's entries or a checkpoint say it."""
    path = new_table(spark, tmp_path / "table", checkpointInterval="4")
    java: Any = spark.sparkContext._jvm
    for number in range(6):
        name = f"application {number % 2}"
        write(spark, path, rows(number, 1), txnAppId=name, txnVersion=10 + number)
    for entry in sorted((tmp_path / "table" / "_delta_log").glob("*.json"))[:4]:
        entry.unlink()  # only the checkpoint tells of them
    numbers_of = {}
    log = java.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    for name in ("application 0", "application 1", "another"):
        numbers_of[name] = log.startTransaction().txnVersion(name)
        assert table_here(bare_lake(spark), path).last_transaction(name) == numbers_of[name]
    assert numbers_of == {"application 0": 14, "application 1": 15, "another": -1}
    assert table_here(bare_lake(spark), path, 5).last_transaction("application 1") == 13


@pytest.mark.long
def test_files_that_may_hold_a_text(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever wrote the bounds, and wherever they were cut off: no row is passed over, and other files mostly are."""
    long = "scheduled__2026-01-01T00:00:00+00:00 "
    texts = ["", "a", "é", "\U0001f600", long, *(f"{long}{tail}" for tail in ("a", "é", "\U0001f600", "z" * 90)), None]
    path = str(tmp_path / "t")
    schema = StructType([StructField("text", StringType()), StructField("n", LongType())])
    numbered = spark.createDataFrame([(text, number) for number, text in enumerate(texts)], schema).coalesce(1)
    numbered.write.format("delta").option("maxRecordsPerFile", 1).save(path)
    for number, text in enumerate(texts):
        append_any(bare_lake(spark), path, pa.table({"text": pa.array([text], pa.string()), "n": pa.array([-number])}))
    table = table_here(bare_lake(spark), path)
    assert len(table.files) == 2 * len(texts)
    read = []
    for text in texts[:-1]:
        near, values = table.near("text", str(text)), pa.array([text])
        assert bag(near.rows_with(["text", "n"], values, MANY)) == bag(table.rows_with(["text", "n"], values, MANY))
        read.append(len(near.files))
    assert len(table.near("text", "none of them").files) <= 2  # those of the NULL
    assert table.near("nothing", "a").files == table.files
    assert max(read) < len(table.files)
