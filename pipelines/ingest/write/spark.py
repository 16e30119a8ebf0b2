"""Deliveries that Spark writes: of many rows, into large files, or to tables that are not on this machine's disk."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.arrays import repeated
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.compare import Compared
from trendlake.pipelines.ingest.typed_rows import typed
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.spark.frames import frame_of
from trendlake.pipelines.spark.identifiers import quoted

REPLACES = "__trendlake_replaces"
"""Column of what is merged: whether the row replaces the row of its key, or is new."""


def append_by_spark(lake: Lake, path: str, frame: DataFrame, **options: Any) -> None:
    frame.coalesce(1).write.format("delta").mode("append").options(**options).save(path)


def replace_by_spark(lake: Lake, path: str, rows: pa.Table, contract: Contract) -> None:
    """`rows` in place of all of the table, in one commit."""
    frame = typed(frame_of(lake.spark, rows), contract)
    frame.coalesce(1).write.format("delta").mode("overwrite").save(path)


def write_by_spark(
    lake: Lake, path: str, comparison: Compared, table: pa.Table, key: tuple[str, ...], contract: Contract
) -> None:
    """New rows and corrections in one commit. `table`: the stored rows of the keys, whose times limit the search for
    them.

    Corrections alone, up to `limits.DOCUMENT_BYTES`, are sent to every file that has one of the keys, and its other
    rows stay in their order. Otherwise Delta shuffles the files' rows by the key, and a query for some hours has to
    read all files."""
    if not comparison.corrections.num_rows:
        append_by_spark(lake, path, typed(frame_of(lake.spark, comparison.new), contract))
        return
    parts = [(comparison.new, False), (comparison.corrections, True)]
    rows = pa.concat_tables([part.append_column(REPLACES, repeated(flag, part.num_rows)) for part, flag in parts])
    merged = frame_of(lake.spark, rows)
    values: dict[str, str | Column] = {quoted(name): _side("s", name) for name in comparison.new.column_names}
    same = [_side("t", name).eqNullSafe(_side("s", name)) for name in comparison.new.column_names]
    on = [sf.col(f"s.{REPLACES}"), *(_side("t", name).eqNullSafe(_side("s", name)) for name in key)]
    if table.num_rows and not contract.is_reference:
        moments = table.column(contract.event_time).cast(pa.int64())
        ends = [sf.timestamp_micros(sf.lit(end)) for end in pc.min_max(moments).as_py().values()]
        if not moments.null_count:
            on.append(_side("t", contract.event_time).between(*ends))
    rows_of_source = (
        sf.broadcast(merged) if rows.nbytes <= limits.DOCUMENT_BYTES and not comparison.new.num_rows else merged
    )
    merge = DeltaTable.forPath(lake.spark, path).alias("t").merge(rows_of_source.alias("s"), _all(on))
    merge = merge.whenMatchedUpdate(condition=~_all(same), set=values)
    if comparison.new.num_rows:
        merge = merge.whenNotMatchedInsert(values=values)
    merge.execute()


def _side(side: str, name: str) -> Column:
    return sf.col(f"{side}.{quoted(name)}")


def _all(conditions: list[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)
