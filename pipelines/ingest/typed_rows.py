"""Rows in the types of a contract's columns."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of


def typed(frame: DataFrame, contract: Contract) -> DataFrame:
    """The contract's columns in its order and types; other columns are kept behind them."""
    wanted = {item.name: item.type for item in contract.columns}
    others = [column(name) for name in frame.columns if name not in wanted]
    return frame.select(*[column(name).cast(kind).alias(name) for name, kind in wanted.items()], *others)


def typed_table(lake: Lake, rows: pa.Table, contract: Contract) -> pa.Table:
    """As `typed`, of a table in this process: cast here where that is a matter of width only, else by Spark."""
    wanted = {item.name: arrow_type(item.type) for item in contract.columns}
    if set(wanted) <= set(rows.column_names) and all(_plain(rows[name].type, kind) for name, kind in wanted.items()):
        try:
            columns = {name: rows[name].cast(kind) for name, kind in wanted.items()}
            return pa.table(columns | {name: rows[name] for name in rows.column_names if name not in wanted})
        except pa.ArrowException:
            pass  # Spark says what becomes of the value
    table = typed(frame_of(lake.spark, rows), contract).toArrow()
    kinds = [pa.field(field.name, wanted.get(field.name, field.type)) for field in table.schema]
    return table.cast(pa.schema(kinds))


def _plain(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow's cast and Spark's are the same where Arrow's succeeds."""
    both = (kind, wanted)
    return bool(
        kind == wanted
        or all(map(pa.types.is_integer, both))
        or all(map(pa.types.is_floating, both))
        or (all(map(pa.types.is_timestamp, both)) and kind.tz is not None and wanted.tz is not None)
    )
