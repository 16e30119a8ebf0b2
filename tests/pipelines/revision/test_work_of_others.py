"""Whatever another program does to a source's table (RESTORE, a table replaced or overwritten, deletion vectors, column
mapping, partitions, a feed that was off, VACUUM): the next revision gives the rows of a recomputation, in this process
as by Spark, and so does the one after it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.pipelines.revision.test_unique_rows import row
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import Signals, signals, tidy_batch
from trendlake.pipelines.lake import limits
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

FEED = "delta.enableChangeDataFeed"


def command(lake: Signals, text: str) -> None:
    """A statement whose `TABLE` is the source."""
    lake.spark.sql(text.replace("TABLE t", f"TABLE delta.`{lake.source}`"))


def properties(lake: Signals, **values: str) -> None:
    listed = ", ".join(f"'delta.{name}' = '{value}'" for name, value in values.items())
    command(lake, f"ALTER TABLE t SET TBLPROPERTIES ({listed})")


def cheap(lake: Signals, below: int) -> DataFrame:
    """The rows of a price below `below`, held apart from the table."""
    return lake.spark.createDataFrame(
        lake.spark.read.format("delta").load(lake.source).where(f"price < {below}").toArrow()
    )


def overwritten(lake: Signals, rows: DataFrame, *partitions: str) -> None:
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*partitions).save(lake.source)


def restored(lake: Signals) -> None:
    command(lake, "RESTORE TABLE t TO VERSION AS OF 1")


def restored_and_filled(lake: Signals) -> None:
    restored(lake)
    lake.insert_by_spark([row(200, 30), row(201, 31, place="s")])


def replaced(lake: Signals) -> None:
    cheap(lake, 5).createOrReplaceTempView("cheap")
    command(lake, f"CREATE OR REPLACE TABLE t USING delta TBLPROPERTIES ('{FEED}' = 'true') AS SELECT * FROM cheap")


def columns_in_another_order(lake: Signals) -> None:
    rows = cheap(lake, 7)
    overwritten(lake, rows.select(*reversed(rows.columns)))


def partitioned(lake: Signals) -> None:
    overwritten(lake, cheap(lake, 10).withColumn("price", sf.lit(5).cast("bigint")), "place")


def deletion_vectors(lake: Signals) -> None:
    properties(lake, enableDeletionVectors="true")
    lake.sql("DELETE FROM signals WHERE price = 4")
    lake.sql("UPDATE signals SET price = 2 WHERE price = 6")


def mapped_columns(lake: Signals) -> None:
    properties(lake, **{"columnMapping.mode": "name", "minReaderVersion": "2", "minWriterVersion": "5"})
    lake.insert_by_spark([row(302, 29), row(303, 33, place="s")])


def compacted(lake: Signals) -> None:
    for number in range(2):
        lake.insert_by_spark([row(300 + number, 28)])
        DeltaTable.forPath(lake.spark, lake.source).optimize().executeCompaction()


def merged(lake: Signals) -> None:
    dearer = lake.spark.createDataFrame(cheap(lake, 10).limit(5).toArrow()).withColumn(
        "price", sf.lit(8).cast("bigint")
    )
    merge = DeltaTable.forPath(lake.spark, lake.source).alias("t").merge(dearer.alias("s"), "t.event_id = s.event_id")
    merge.whenMatchedUpdateAll().whenNotMatchedBySourceDelete("t.price = 1").execute()


def feed_was_off(lake: Signals) -> None:
    properties(lake, enableChangeDataFeed="false")
    lake.sql("UPDATE signals SET price = 3 WHERE price = 7")
    properties(lake, enableChangeDataFeed="true")
    lake.insert_by_spark([row(301, 29)])


def vacuumed(lake: Signals) -> None:
    lake.sql("UPDATE signals SET price = 3 WHERE price = 7")
    lake.sql("DELETE FROM signals WHERE price = 2")
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    lake.spark.conf.set(check, "false")
    try:
        DeltaTable.forPath(lake.spark, lake.source).vacuum(0)
    finally:
        lake.spark.conf.unset(check)


WORK: dict[Callable[[Signals], None], str] = {
    restored: "changed from version 3 to 4",
    restored_and_filled: "changed from version 3 to 5",
    replaced: "the table of 'signals' was made anew since the results were computed",
    columns_in_another_order: "changed from version 3 to 4",
    partitioned: "changed from version 3 to 4",
    deletion_vectors: "changed from version 3 to 6",
    mapped_columns: "changed from version 3 to 5",
    compacted: "2 rows changed from version 3 to 7",
    merged: "changed from version 3 to 4",
    feed_was_off: "all computed anew, 18 windows: no change feed of versions 4 to 7",
    vacuumed: "all computed anew, 18 windows: no change feed of versions 4 to 7",
}
"""What another program does -> what the revision says of it."""


def said(record: Record) -> str:
    return next(item.observed for item in record.checks if item.name == "revision")


@pytest.mark.parametrize("most", [limits.REVISED, 0], ids=["local", "Spark"])
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_the_work_of_another_program(
    spark: SparkSession, tmp_path: Path, work: Callable[[Signals], None], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REVISED", most)
    lake, rows = signals(spark, tmp_path / "project", PATTERNS["plain"]), tidy_batch(random.Random("plain"), 39)
    for at in (0, 13, 26):
        lake.insert_by_spark(rows[at : at + 13])
    run = lake.run(0, 3, "first")
    all_steps(run)
    work(lake)
    assert WORK[work] in said(revise(renamed(run, "after it")))
    agree(lake, run)
    lake.insert_by_spark([row(400, 26), row(401, 27, place="s")])
    assert said(revise(renamed(run, "later"))).startswith("2 rows changed")
    agree(lake, run)
    replayed(lake, run)
    assert said(revise(renamed(run, "quiet"))).startswith("nothing new")
