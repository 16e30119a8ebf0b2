"""Changes of a Delta table's rows as another program makes them: by delta-rs, without a job of Spark's, which takes
longer for a row than the pipeline for all that follows.

A change is told in the change feed where that is on, as Spark's DELETE, UPDATE and MERGE do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from trendlake.pipelines.lake.here import write
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.lake.warehouse import with_retries

Row = dict[str, Any]
APPLICATION = "tests"
"""Of the transactions' numbers in the log."""


def append(spark: SparkSession, path: str, rows: pa.Table) -> int:
    """Adds the rows, in one file, and returns the new version; columns that `rows` has not are NULL. To a table of
    another form Spark adds them."""

    def attempt() -> int:
        table = table_here(bare_lake(spark), path)
        return write.append(table, write.shaped(rows, table.none().schema), None, _line(table.version)).version

    def by_spark() -> int:
        spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append").save(path)
        return latest_version(bare_lake(spark), path)

    return either(lambda: with_retries(attempt, "adding rows of a test"), by_spark)


def change(spark: SparkSession, path: str, new: Callable[[Row], Row | None], more: Sequence[Row] = ()) -> int:
    """Replaces each row by what `new` makes of it: None removes it, and what is not the row itself is a change, though
    the values be equal. `more`: rows to add in the same commit. The new version; the old one where there is nothing to
    write."""
    return with_retries(lambda: _changed(spark, path, new, more), "changing rows of a test")


def _changed(spark: SparkSession, path: str, new: Callable[[Row], Row | None], more: Sequence[Row]) -> int:
    table = table_here(bare_lake(spark), path)
    schema = table.none().schema
    rows = table.every(schema.names, 1 << 20).to_pylist()
    pairs = [(row, then) for row in rows if (then := new(row)) is not row]
    gone = [row for row, then in pairs if then is None]
    after = [then for _, then in pairs if then is not None]
    before = [row for row, then in pairs if then is not None]
    if not pairs and not more:
        return table.version
    changes = write.Changes(*(pa.Table.from_pylist(list(part), schema) for part in (gone, before, after, more)))
    return write.change(table, changes, "", _line(table.version), {}).version


def _line(version: int) -> write.Line:
    return write.Line(APPLICATION, version + 1)
