"""Faults other than kills: nothing is lost, nothing is doubled, the run table says what happened, and the same step
done again, the cause gone, gives the right rows.

Elsewhere: kills (`test_kill`), publications at once (`test_publish`), random histories (`test_revisions_agree`), rows
that break the contract (`test_quarantine`), bad files (`tests/pipelines/authoring/test_bad_files.py`), secrets
(`tests/pipelines/project/test_redaction.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.disks import full, small_disk
from tests.support.flights import all_steps, renamed
from tests.support.recomputation import in_order, recomputed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import CONTRACT, IN_WORKERS, START_US, Signals, signals
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines import redaction
from trendlake.pipelines.errors import SourceSchemaError, StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.lake.maintain import maintain, tables
from trendlake.pipelines.lake.warehouse import KEPT
from trendlake.pipelines.revision.difference import Difference
from trendlake.pipelines.revision.rewrite import Rewrite
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.session import quiet
from trendlake.pipelines.steps import publish as publishing
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000


def event(name: str, hour: float, price: Any, **values: Any) -> dict[str, Any]:
    row = {"event_id": name, "event_time": START_US + round(hour * HOUR), "event_type": "A", "place": "n"}
    return {**row, "price": price, "remark": "", **values}


def rising(first: int, hours: int, place: str = "n") -> list[dict[str, Any]]:
    """An event each hour, each dearer than the one before."""
    return [event(f"{place}{first + n}", first + n, n % 9, place=place) for n in range(hours)]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Signals:
    """A day of events, not yet computed."""
    source = signals(spark, tmp_path / "project", PATTERNS["plain"], profile=IN_WORKERS)
    source.insert(rising(0, 20))
    return source


def published(lake: Signals, run: Run) -> list[dict[str, Any]]:
    rows = lake.spark.read.format("delta").load(lake.warehouse.results(run.name))
    return in_order(rows.select(*run.plan.result_schema.names).toArrow().to_pylist(), run)


def is_right(lake: Signals, run: Run) -> None:
    """What is published is what a computation from nothing gives, each row once."""
    assert published(lake, run) == recomputed(run, lake.version(), run.windows)


def failures(lake: Signals) -> list[tuple[str, str]]:
    """Stage and error of the failed records, in their order: what a person reads with `trendlake runs`."""
    rows = lake.spark.read.format("delta").load(lake.warehouse.runs).where(sf.col("status") == "failed")
    return [(row["stage"], row["error"]) for row in rows.orderBy("finished_at").collect()]


def changed(record: Record) -> tuple[int | None, int | None, int | None]:
    return record.rows_inserted, record.rows_updated, record.rows_deleted


# --- a full disk ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_full_disk(lake: Signals) -> None:
    """compute and publish without a byte left: the table stays as it was, and reads so; with room again, both go on."""
    run = lake.run(0, 1, "first")
    root = Path(lake.warehouse.root)
    with small_disk(root / "staging", 2000) as staging, small_disk(root / "results", 2000) as results:
        all_steps(run)
        before = published(lake, run)
        lake.insert(rising(2, 9, "s"))
        run = lake.run(0, 1, "second")
        check_source(run)
        with full(staging), quiet(lake.spark), pytest.raises(Exception, match="No space left"):
            compute(run)
        assert failures(lake)[-1][0] == "compute"
        assert "No space left" in failures(lake)[-1][1]
        compute(run)
        check_results(run)
        version = latest_version(lake.lake, lake.warehouse.results(run.name))
        with full(results), quiet(lake.spark), pytest.raises(Exception, match="No space left"):
            publish(run)
        assert failures(lake)[-1][0] == "publish"
        assert "No space left" in failures(lake)[-1][1]
        assert published(lake, run) == before
        assert latest_version(lake.lake, lake.warehouse.results(run.name)) == version
        assert changed(publish(run))[0]
        is_right(lake, run)
        assert changed(publish(run)) == (0, 0, 0)


# --- another writer between read and commit ---------------------------------------------------------------------


def held_up(rows: DataFrame, gate: Path) -> DataFrame:
    """`rows`, whose first reader says so at `gate` and waits there until it is opened."""
    waiting, opened = str(gate / "here"), str(gate / "opened")

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not os.path.exists(waiting):
            Path(waiting).touch()
        deadline = time.monotonic() + 60
        while not os.path.exists(opened) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield from batches

    return rows.mapInArrow(pass_on, rows.schema)


@contextmanager
def writes_while_held_up(gate: Path, write: Any) -> Iterator[None]:
    """`write` is called once somebody waits at the gate, which is then opened."""

    def wait() -> None:
        try:
            deadline = time.monotonic() + 60
            while not (gate / "here").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            write()
        finally:
            (gate / "opened").touch()

    other = Thread(target=wait)
    other.start()
    try:
        yield
    finally:
        other.join()


@pytest.mark.long
def test_another_writer_during_publish(lake: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deletes all results after the MERGE has read them and before it commits: Delta refuses the commit, the
    publication is taken anew, and the rows are there."""
    all_steps(lake.run(0, 1, "first"))
    lake.insert(rising(2, 9, "s"))
    run = lake.run(0, 1, "second")
    check_source(run), compute(run), check_results(run)
    path = lake.warehouse.results(run.name)
    monkeypatch.setattr(limits, "PUBLISHED", -1)  # all rows are many: MERGE's
    attempts: list[int] = []
    commit = publishing._commit
    monkeypatch.setattr(
        publishing, "_commit", lambda *given, partly: attempts.append(1) or commit(*given, partly=partly)
    )
    replace = publishing.Publication.replace
    gate = tmp_path / "gate"
    gate.mkdir()
    monkeypatch.setattr(
        publishing.Publication,
        "replace",
        lambda publication, rows, *given, **named: replace(publication, held_up(rows, gate), *given, **named),
    )
    with quiet(lake.spark), writes_while_held_up(gate, lambda: DeltaTable.forPath(lake.spark, path).delete()):
        publish(run)
    assert len(attempts) == 2
    is_right(lake, run)
    assert failures(lake) == []


@pytest.mark.chaos
@pytest.mark.parametrize("most", [0, limits.REVISED], ids=["Spark", "here"])
def test_another_writer_during_revise(lake: Signals, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run publishes the same windows after the revision has read what they show: the revision takes its
    difference anew, finds nothing left to change, and changes nothing."""
    run = lake.run(0, 1, "first")
    all_steps(run)
    lake.insert(rising(2, 9, "s"))
    path = lake.warehouse.results(run.name)
    overtaken: list[int] = []

    def overtake(kind: type[Difference | Rewrite]) -> None:
        commit = kind.commit

        def after_another(*given: Any) -> Any:
            if not overtaken:
                overtaken.append(1)
                all_steps(renamed(run, "another"))
            return commit(*given)

        monkeypatch.setattr(kind, "commit", after_another)

    for kind in (Difference, Rewrite):
        overtake(kind)
    monkeypatch.setattr(limits, "REVISED", most)
    record = revise(renamed(run, "revision"))
    assert overtaken
    assert changed(record) == (0, 0, 0)
    is_right(lake, run)
    version = latest_version(lake.lake, path)
    assert changed(revise(renamed(run, "again"))) == (0, 0, 0)
    assert latest_version(lake.lake, path) == version


# --- the source's schema ----------------------------------------------------------------------------------------


def rewrite(lake: Signals, frame: DataFrame) -> None:
    """The source's table made again with other columns."""
    writer = frame.coalesce(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(lake.source)


def source(lake: Signals) -> DataFrame:
    return read_at(lake.lake, lake.source, lake.version())


@pytest.mark.chaos
def test_columns_come_and_go(lake: Signals) -> None:
    """A column more, then none of it: runs and revisions across the change give what a computation from nothing does.
    A column of the contract lost: told, and nothing published; given back: all goes on."""
    run = lake.run(0, 1, "first")
    all_steps(run)
    lake.sql("ALTER TABLE signals ADD COLUMNS (gate string)")
    lake.insert(rising(2, 5, "s"))
    assert changed(revise(renamed(run, "a column more")))[0]
    is_right(lake, run)
    rewrite(lake, source(lake).drop("gate").where(sf.col("event_id") != "n3"))
    revise(renamed(run, "and none of it"))
    is_right(lake, run)

    before = published(lake, run)
    whole = source(lake).toArrow()
    rewrite(lake, lake.spark.createDataFrame(whole).drop("place"))
    for step in (check_source, revise):
        with pytest.raises(SourceSchemaError, match="place is missing"):
            step(renamed(run, "without place"))
    failed = failures(lake)
    assert [stage for stage, _ in failed] == ["check_source", "revise"]
    for _, error in failed:
        assert error.startswith("[SOURCE_SCHEMA] table 'signals' is not as ")
        assert "place is missing" in error
    assert published(lake, run) == before
    rewrite(lake, lake.spark.createDataFrame(whole).where(sf.col("event_id") != "s4"))
    revise(renamed(run, "given back"))
    is_right(lake, run)


@pytest.mark.chaos
def test_a_type_is_widened(spark: SparkSession, tmp_path: Path) -> None:
    """int becomes bigint: told until the contract says so too; then run and revision go on over both halves."""
    narrow = CONTRACT.replace("physicalType: bigint", "physicalType: int").replace(", maximum: 9", "")
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"], narrow, profile=IN_WORKERS)
    rows = pa.Table.from_pylist(rising(0, 12))
    frame = spark.createDataFrame(rows).withColumn("event_time", sf.timestamp_micros("event_time"))
    frame.withColumn("price", sf.col("price").cast("int")).write.format("delta").mode("append").save(lake.source)
    run = lake.run(0, 1, "first")
    all_steps(run)
    lake.sql("ALTER TABLE signals SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.sql("ALTER TABLE signals ALTER COLUMN price TYPE BIGINT")
    lake.insert([event("wide", 12.5, 2**40), event("wider", 13.5, 2**41)])
    for step in (check_source, revise):
        with pytest.raises(SourceSchemaError, match="price is bigint, not int"):
            step(renamed(run, "too wide"))
    assert ["price is bigint, not int" in error for _, error in failures(lake)] == [True, True]
    path = lake.project.contract_path("signals")
    path.write_text(narrow.replace("physicalType: int", "physicalType: bigint"))
    run = lake.run(0, 1, "wide")
    with pytest.raises(StepOrderError, match="has published nothing in this form"):
        revise(run)  # the column's type is part of the pattern's form: its results may be of another type
    all_steps(run)
    is_right(lake, run)
    assert max(row["most"] for row in published(lake, run)) == 2**41
    lake.insert([event("widest", 14.5, 2**42)])
    revise(renamed(run, "wider still"))
    is_right(lake, run)


# --- poisoned rows ----------------------------------------------------------------------------------------------

LOOSE = CONTRACT.replace(
    "{name: price, logicalType: integer, physicalType: bigint, logicalTypeOptions: {minimum: 0, maximum: 9}}",
    "{name: price, logicalType: number}",
)
POISON = [
    event("nan", 1.5, float("nan")),
    event("huge", 4.5, 1.7e308),
    event("-0", 5.5, -0.0),
    event("no key", 6.5, 1.0, place=None),
    event("no key 2", 7.5, 2.0, place=None),
    event("nul\x00", 6.5, 1.0, place="\x00"),
    event("nul\x00 2", 7.5, 2.0, place="\x00"),
    event("long", 6.5, 1.0, place="x" * 300_000, remark="y" * 300_000),
    event("long 2", 7.5, 2.0, place="x" * 300_000),
    event("odd", 8.5, 3.0, place="\u202e\U0001f600\ufeff'\"`;--"),
    event("odd 2", 9.5, 4.0, place="\u202e\U0001f600\ufeff'\"`;--"),
    event("", 9.75, 5.0, place=""),
]
EXTREME = {"year 1": -62_135_596_800_000_000, "year 9999": 253_402_300_799_999_999}


@pytest.mark.chaos
def test_poisoned_rows(spark: SparkSession, tmp_path: Path) -> None:
    """An infinite value in a sum is refused by name, not computed for ever. No number, the largest ones, NULs, no key,
    keys of 300,000 characters, the first and the last moment there is: all are counted as the engine counts them, in
    runs and revisions, and spoil no other row."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"], LOOSE, profile=IN_WORKERS)
    schema = pa.schema(
        [
            ("event_id", "string"),
            ("event_time", pa.timestamp("us", "UTC")),
            ("event_type", "string"),
            ("place", "string"),
            ("price", "float64"),
            ("remark", "string"),
        ]
    )

    def insert(rows: list[dict[str, Any]]) -> None:
        frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
        frame.coalesce(1).write.format("delta").mode("append").save(lake.source)

    insert([{**row, "price": float(row["price"])} for row in rising(0, 12)])
    run = lake.run(0, 1, "first")
    all_steps(run)
    insert([event("infinite", 2.5, float("inf"))])
    with pytest.raises(TrendlakeError, match="has an infinite value") as caught:
        revise(renamed(run, "infinite"))
    assert caught.value.code == "BAD_EVENTS"
    assert failures(lake)[-1][1].startswith("[BAD_EVENTS] 'price' has an infinite value")
    lake.sql("DELETE FROM signals WHERE event_id = 'infinite'")
    insert(POISON)
    insert([{**event(name, 0, 1.0), "event_time": at} for name, at in EXTREME.items()])
    record = revise(renamed(run, "poisoned"))
    assert record.rows_quarantined == 0
    assert same(published(lake, run), recomputed(run, lake.version(), run.windows))
    places = {row["place"] for row in published(lake, run)}
    assert {"n", None, "\x00", "x" * 300_000, "\u202e\U0001f600\ufeff'\"`;--"} <= places
    assert changed(all_steps(renamed(run, "all of it"))) == (0, 0, 0)


def same(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> bool:
    """Equal rows, where NaN is itself."""
    return [{k: repr(v) for k, v in row.items()} for row in left] == [
        {k: repr(v) for k, v in row.items()} for row in right
    ]


# --- clocks -----------------------------------------------------------------------------------------------------


@contextmanager
def clocks_of(spark: SparkSession, zone: str) -> Iterator[None]:
    """This process, its Java and Spark's session in another time zone."""
    java = spark._jvm.java.util.TimeZone
    before, environment = java.getDefault(), os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    java.setDefault(java.getTimeZone(zone))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        java.setDefault(before)
        if environment is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = environment
        time.tzset()


MARCH = (66, 68)
"""Days since the start of 2026: New York's clocks go from 2 to 3 o'clock on the 8th of March, 07:00 UTC."""


@pytest.mark.chaos
def test_other_clocks_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Over the hour that New York leaves out: run and revision under its clocks give what the engine alone gives, which
    knows UTC only."""
    lake = signals(spark, tmp_path / "project", PATTERNS["plain"], profile=IN_WORKERS)
    run = lake.run(*MARCH, "run")
    with clocks_of(spark, "America/New_York"):
        lake.insert([event(f"e{n}", 24 * MARCH[0] + n, n % 9) for n in range(40)])
        all_steps(run)
        lake.insert([event(f"late{n}", 24 * MARCH[0] + n + 0.5, 9) for n in range(5, 9)])
        assert changed(revise(renamed(run, "revision")))[1]
        starts = [row["window_start"] for row in published(lake, run)]
    is_right(lake, run)
    assert len(starts) >= 10
    assert {start.hour % 4 for start in starts} == {0}


# --- nothing to do, and done again --------------------------------------------------------------------------------
@pytest.mark.chaos
def test_every_step_again_and_nothing_to_do(lake: Signals) -> None:
    """Each step twice over: the same rows, and no commit that changes any. Then an interval without events, and one in
    which no window ends: succeeded, no rows, and no row of others touched."""
    run = lake.run(0, 1, "first")
    for step in (check_source, check_source, compute, compute, check_results, check_results, publish):
        assert step(run).succeeded
    is_right(lake, run)
    path = lake.warehouse.results(run.name)
    version = latest_version(lake.lake, path)
    before = published(lake, run)
    assert changed(publish(run)) == (0, 0, 0)
    for name, days in (("no events", (40, 41)), ("no window ends", (0.26, 0.3))):
        empty = lake.run(*days, name)
        assert changed(all_steps(empty)) == (0, 0, 0)
        assert (len(empty.windows) == 0) == (name == "no window ends")
    assert published(lake, run) == before
    assert failures(lake) == []
    if latest_version(lake.lake, path) > version:
        feed = lake.spark.read.format("delta").option("readChangeFeed", "true")
        assert feed.option("startingVersion", version + 1).load(path).isEmpty()


# --- what is told ---------------------------------------------------------------------------------------------


def test_no_secret_in_the_run_table(lake: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step fails with an exception of Spark's that quotes a key of the profile: the run table has it as ***."""
    monkeypatch.setattr(redaction, "_known", set())
    key = "wJalrXUtnFEMI/K7MDENG"
    redaction.keep_secret({"spark.hadoop.fs.s3a.secret.key": key})
    run = lake.run(0, 1, "first")
    real = lake.spark.range(1).select(sf.raise_error(sf.lit(f"403: signed with {key}")))
    monkeypatch.setattr("trendlake.pipelines.steps.judge_source.schema_of", lambda *given: real.collect())
    with quiet(lake.spark), pytest.raises(Exception, match=key):
        check_source(run)
    ((stage, error),) = failures(lake)
    assert stage == "check_source"
    assert "403: signed with ***" in error
    assert key not in error


@pytest.mark.chaos
def test_maintenance_keeps_tables_readable(lake: Signals) -> None:
    """How long files are kept is set where it was not; rows stay."""
    lake.sql("ALTER TABLE signals UNSET TBLPROPERTIES ('delta.logRetentionDuration')")
    maintained = list(maintain(lake.lake, tables(lake.lake, ["signals"], [])))
    assert [item.table for item in maintained] == ["sources/signals", "trendlake_runs"]
    properties = DeltaTable.forPath(lake.spark, lake.source).detail().select("properties").collect()[0][0]
    assert KEPT.items() <= properties.items()
    assert source(lake).count() == 20
