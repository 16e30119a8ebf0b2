"""The rows of a source's table that share a key with given rows.

One scan of the key's first column, of the row groups and files whose statistics allow one of the values: in this
process where the table is on this machine's disk, by a semi-join of Spark's elsewhere. Whole rows are read of the keys
that were found only, so that a delivery of new rows costs no more than that scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from trendlake.cep_core.events.arrays import arrow
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import answer_of, either
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.quality.uniqueness import KEY
from trendlake.pipelines.rules.unique import exact_codes
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of


def rows_sharing(
    lake: Lake, path: str, version: int, rows: pa.Table, key: Sequence[str], names: Sequence[str]
) -> pa.Table:
    """Columns `names` of the rows of the table at `path` that may share the `key` with one of `rows` (NULL is equal to
    NULL): all that do, and perhaps others. No rows if the table has none of the keys."""
    wanted = rows.select(list(key))
    table = Table.at(lake, path, version)
    key_rows = _matching(table, wanted, list(key))
    if not key_rows.num_rows:
        return table.none(names)
    return _matching(table, key_rows, list(names))


def _matching(table: Table, keys: pa.Table, names: list[str]) -> pa.Table:
    key = keys.column_names
    asked = list(dict.fromkeys((*key, *names)))

    def here() -> pa.Table:
        first = keys.column(key[0]).combine_chunks()
        matching = answer_of(table.here).rows_with(asked, first, limits.KEYS_COMPARED)
        if len(key) == 1:
            return matching
        codes = exact_codes(pa.concat_tables([matching.select(key), keys]), key)
        return matching.filter(arrow(np.isin(codes[: matching.num_rows], codes[matching.num_rows :])))

    return either(here, lambda: _by_spark(table, keys, asked)).select(names)


def _by_spark(table: Table, keys: pa.Table, names: list[str]) -> pa.Table:
    """As `_matching`."""
    source, schema = table.frame, table.none(names).schema
    key = keys.column_names
    ends = pc.min_max(keys.column(key[0])).as_py() if pa.types.is_string(keys.schema.types[0]) else {}
    if ends.get("min") is not None and not keys.column(0).null_count:
        source = source.where(column(key[0]).between(sf.lit(ends["min"]), sf.lit(ends["max"])))
    wanted = frame_of(table.lake.spark, keys.group_by(key).aggregate([]))
    wanted = wanted.select(*[column(name).alias(f"{KEY}{i}") for i, name in enumerate(key)])
    wanted = sf.broadcast(wanted) if keys.num_rows <= limits.KEYS_SENT else wanted
    same = reduce(lambda a, b: a & b, [column(name).eqNullSafe(sf.col(f"{KEY}{i}")) for i, name in enumerate(key)])
    return source.join(wanted, same, "left_semi").select(*map(column, names)).toArrow().cast(schema)
