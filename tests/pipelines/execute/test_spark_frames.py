"""Frames of Spark: the rows that the engine gives of the same events in this process, and no job before they are asked
for."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import trendlake
from tests.cep_core.frames.test_frames import FALLING, outcome, shown, ticks, worked
from tests.conftest import ROOT
from tests.random.batches import Batch, batches
from tests.random.profile import every, examples
from trendlake.cep_core import AnyPlan, AssumptionWarning, compile_query, evaluate, run_plan
from trendlake.cep_core.errors import BadEventsError, NotSupportedError
from trendlake.cep_core.events.schema import schema_of
from trendlake.pipelines.errors import ShardTooLargeError
from trendlake.pipelines.execute.spark_frames import _Computing, _cut, _Packing

TICKS = pa.Table.from_pandas(ticks(event_id=list("uvwxyz")), preserve_index=False)


# --- what the workers do, in this process --------------------------------------------------------------------------


def travelling(plan: AnyPlan, table: pa.Table) -> pa.Table:
    """Events as Spark gives them to the workers: those of the types that are read, by number."""
    name, kinds = plan.schema.event_type, plan.event_types
    table = table.select(list(plan.schema.sources((plan.schema.event_time, *plan.columns))))
    if kinds is None:
        return table
    table = table.filter(pc.is_in(table[name], pa.array(kinds, pa.string())))
    if name in plan.unit_key or len(kinds) == 1:
        return table if name in plan.unit_key else table.drop_columns([name])
    codes = pc.index_in(table[name], pa.array(kinds, pa.string())).cast(pa.int32())
    return table.set_column(table.column_names.index(name), name, codes)


def by_workers(plan: AnyPlan, table: pa.Table, until: int | None, partitions: int, limit: int = 10**9) -> pa.Table:
    """What the workers give of events that come in two parts, and whose partitions are brought together by Spark."""
    cut = _cut(plan, partitions)
    pack, compute = _Packing(plan, cut, (), "UTC"), _Computing(plan, cut, until, limit)
    rows = travelling(plan, table)
    half = rows.num_rows // 2
    parts = [part.combine_chunks().to_batches() for part in (rows.slice(0, half), rows.slice(half)) if part.num_rows]
    packed = [batch for part in parts for batch in pack(iter(part))]
    merged = 1 + partitions // 2
    computed = []
    for number in range(merged):
        mine = [batch for batch in packed if batch["partition"][0].as_py() % merged == number]
        computed += list(compute(iter(mine)))
    return pa.Table.from_batches(computed, plan.result_schema)


@pytest.mark.random
def test_workers_give_the_rows_of_the_engine() -> None:
    """Random plans of every kind: wherever their windows lie, and however units meet."""
    compared = 0

    @examples(300)
    @given(batches())
    def agree(batch: Batch) -> None:
        nonlocal compared
        for number, plan in enumerate(batch.plans):
            if plan.held_back and batch.watermark is None:
                continue
            wanted = outcome(lambda plan=plan: run_plan(plan, batch.table, None, batch.watermark))  # type: ignore[misc]
            rows = outcome(lambda: by_workers(plan, batch.table, batch.watermark, 1 + number % 4))  # noqa: B023
            assert rows == wanted
            compared += bool(wanted)

    agree()
    assert compared > 5


def test_a_unit_that_is_too_large() -> None:
    """The largest group is named, and where time is cut, its windows; several groups in one place are not too many."""
    table = pa.concat_tables([TICKS] * 3)
    plan = compile_query(FALLING, schema_of(table.append_column("event_type", pa.array(["Tick"] * 18))))
    typed = table.append_column("event_type", pa.array(["Tick"] * 18))
    by_workers(plan, typed, None, 2, limit=9)
    with pytest.raises(ShardTooLargeError, match=r"symbol = '[ab]': 9 events in the windows from 2026-01-05T09:00"):
        by_workers(plan, typed, None, 2, limit=8)


# --- on Spark --------------------------------------------------------------------------------------------------------


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    plain_table = pa.table(plain, names=table.column_names)
    return spark.createDataFrame(plain_table, from_arrow_schema(plain_table.schema, prefer_timestamp_ntz=True))


@pytest.mark.long
@pytest.mark.spark
def test_worked_cases(spark: SparkSession) -> None:
    """Of every kind; mistakes of a query are told at once, those of events by Spark."""
    asked = [case for case in worked() if case[2].num_rows]
    for name, query, table in every(30, asked):
        expected = outcome(lambda query=query, table=table: evaluate(query, table))  # type: ignore[misc]
        answer = on_spark(spark, query, table)
        if isinstance(answer, PythonException):
            assert str(expected).partition(": ")[2].split("\n")[0] in str(answer), name
        elif answer != WAITING:
            assert answer == expected, name


def on_spark(spark: SparkSession, query: Any, table: pa.Table) -> Any:
    """As `outcome`, or Spark's own error."""
    try:
        return outcome(lambda: trendlake.evaluate(query, frame_of(spark, table)).toArrow())
    except PythonException as error:
        return error


@pytest.mark.spark
def test_no_job_starts(spark: SparkSession) -> None:
    """Before rows are asked for; and each question is one job of two stages."""
    tracker = spark.sparkContext.statusTracker()
    frame = frame_of(spark, TICKS)
    before = set(tracker.getJobIdsForGroup())
    rows = trendlake.evaluate(FALLING, frame)
    assert rows.columns == trendlake.evaluate(FALLING, TICKS).column_names
    assert set(tracker.getJobIdsForGroup()) == before
    assert shown(rows.toArrow()) == shown(trendlake.evaluate(FALLING, TICKS))
    assert set(tracker.getJobIdsForGroup()) > before


@pytest.mark.spark
def test_a_hot_key_is_cut_by_time(spark: SparkSession) -> None:
    """Its windows overlap, and are computed in several partitions."""
    rng = np.random.default_rng(1)
    at = pa.array(np.sort(rng.integers(0, 3 * 86_400_000_000, 4_000)), pa.timestamp("us", "UTC"))
    table = pa.table({"event_time": at, "price": rng.integers(0, 9, 4_000), "symbol": ["a"] * 4_000})
    query = FALLING.replace("MIN(S.n)", "MIN(S.price)").replace("1 hour", "10 minutes\nslide: 5 minutes")
    rows = trendlake.evaluate(query, frame_of(spark, table).repartition(3))
    assert shown(rows.toArrow()) == shown(trendlake.evaluate(query, table))
    plan = compile_query(query, schema_of(table.append_column("event_type", pa.array(["Tick"] * 4_000))))
    cut = _cut(plan, 2)
    assert len({cut_shard(cut, plan, time.as_py()) for time in at.cast(pa.int64())}) > 20


def cut_shard(cut: Any, plan: AnyPlan, time: int) -> int:
    return (plan.windows.at(time) - cut.windows[0]) // cut.size


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times(spark: SparkSession, zone: str) -> None:
    """The session's zone decides nothing; times without a zone are read in `time_zone`, else as UTC with a warning."""
    local = TICKS.set_column(
        TICKS.column_names.index("event_time"), "event_time", TICKS["event_time"].cast(pa.timestamp("us"))
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert shown(trendlake.evaluate(FALLING, frame_of(spark, TICKS)).toArrow()) == shown(
            trendlake.evaluate(FALLING, TICKS)
        )
        frame = frame_of(spark, local)
        assert dict(frame.dtypes)["event_time"] == "timestamp_ntz"
        expected = trendlake.evaluate(FALLING, local, time_zone="Asia/Tokyo")
        assert shown(trendlake.evaluate(FALLING, frame, time_zone="Asia/Tokyo").toArrow()) == shown(expected)
        with pytest.warns(AssumptionWarning, match="event_time has times without a zone") as warned:
            trendlake.evaluate(FALLING, frame)
        assert {Path(one.filename).name for one in warned} == {Path(__file__).name}
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


@pytest.mark.spark
def test_a_family(spark: SparkSession) -> None:
    query = FALLING.replace("where: [", "where: [S.price > $low, ")
    rows = trendlake.evaluate(query, frame_of(spark, TICKS), for_each={"low": [1.5, 2.5]})
    expected = trendlake.evaluate(query, TICKS, for_each={"low": [1.5, 2.5]})
    assert shown(rows.toArrow()) == shown(expected)
    assert len(expected) > 2


WAITING = "NotSupportedError: its rows wait for time to come, and a frame of Spark is not read for its latest event"
WAITS: Mapping[str, Any] = {
    "kind": "matches",
    "pattern": "SEQ(Tick a, NOT Stop s within 10 minutes)",
    "within": "1 hour",
}


@pytest.mark.spark
def test_a_watermark(spark: SparkSession) -> None:
    """Rows that wait for time need one: the frame's latest event would be a job."""
    frame = frame_of(spark, TICKS.append_column("event_type", pa.array(["Tick"] * 6)))
    with pytest.raises(NotSupportedError, match="rows wait for time to come"):
        trendlake.evaluate(WAITS, frame)
    until = datetime(2026, 1, 5, 9, 13, tzinfo=UTC)
    assert trendlake.evaluate(WAITS, frame, watermark=until).count() == 4


@pytest.mark.spark
def test_mistakes(spark: SparkSession) -> None:
    frame = frame_of(spark, TICKS)
    pair = {"kind": "matches", "pattern": "SEQ(Tick a, Tick b)", "within": "1 hour"}
    with pytest.raises(BadEventsError, match="whose rows have no number"):
        trendlake.evaluate(pair, frame.drop("event_id"))
    with pytest.raises(BadEventsError, match="reads 2 event types"):
        trendlake.evaluate({**pair, "pattern": "SEQ(Tick a, Tock b)"}, frame)
    with pytest.raises(BadEventsError, match="no column 'event_time'") as missing:
        trendlake.evaluate(FALLING, frame.withColumnRenamed("event_time", "at"))
    assert missing.value.hint == 'pass event_time="at"'
    customers = frame_of(spark, pa.table({"symbol": ["a"], "segment": ["b2b"]}))
    with pytest.raises(NotSupportedError, match="looks nothing up"):
        trendlake.evaluate(pair, frame, reference={"customers": customers})
    lookup = {"c": {"table": "customers", "key": "symbol", "columns": ["segment"]}}
    with pytest.raises(NotSupportedError, match="looks nothing up"):
        trendlake.evaluate({**pair, "lookup": lookup, "where": ["[segment]"]}, frame)
    with pytest.raises(BadEventsError, match="Tokio"):
        trendlake.evaluate(FALLING, frame, time_zone="Asia/Tokio")
    with pytest.raises(NotSupportedError, match="neither several frames"):
        trendlake.evaluate({**pair, "sources": {"Tick": "ticks"}}, {"ticks": frame})
    stream = spark.readStream.format("rate").load()
    with pytest.raises(NotSupportedError, match="no streaming frame"):
        trendlake.evaluate(FALLING, stream, event_time="timestamp")


ELSEWHERE = """
import sys
from tests.cep_core.frames.test_frames import FALLING, ticks
import pyarrow as pa, trendlake
from pyspark.sql import SparkSession

builder = SparkSession.builder
builder = builder.remote("local[2]") if sys.argv[1] == "connect" else builder.master("local[2]")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
table = pa.Table.from_pandas(ticks(), preserve_index=False)
rows = trendlake.evaluate(FALLING, spark.createDataFrame(table))
try:
    answers = (rows.toArrow(), trendlake.evaluate(FALLING, table))
    one, other = (sorted(map(repr, answer.to_pylist())) for answer in answers)
    print(type(rows).__module__, one == other)
except Exception as error:
    print(next(line for line in str(error).splitlines() if "WORKER_PACKAGE" in line))
spark.stop()
"""


def in_a_session_of_its_own(folder: Path, sort: str, python: str) -> str:
    """What a program prints last whose workers run `python`."""
    file = folder / "program.py"
    file.write_text(ELSEWHERE)
    env = os.environ | {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(file), sort], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip(), done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.repeats
def test_spark_connect(tmp_path: Path) -> None:
    assert in_a_session_of_its_own(tmp_path, "connect", sys.executable) == "pyspark.sql.connect.dataframe True"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.repeats
def test_workers_without_the_package(tmp_path: Path) -> None:
    """They have pyspark and Arrow only: no file of names of paths is read there."""
    site = sysconfig.get_paths()["purelib"]
    worker = tmp_path / "python"
    worker.write_text(f'#!/bin/sh\ncd / && PYTHONPATH="{site}" exec {sys.executable} -S "$@"\n')
    worker.chmod(0o700)
    file = tmp_path / "elsewhere"
    file.mkdir()
    said = in_a_session_of_its_own(file, "classic", str(worker))
    assert "[WORKER_PACKAGE] Spark's workers need the package trendlake" in said
    assert textwrap.shorten(said, 400).endswith("in their environment: pip install trendlake-*.whl")
