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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trendlake.cep_core.events.arrays import arrow
from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log import local_errors
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.warehouse import read_at
from trendlake.pipelines.quality.uniqueness import KEY
from trendlake.pipelines.rules.unique import exact_codes
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of


def rows_sharing(
    spark: SparkSession, path: str, version: int, rows: pa.Table, key: Sequence[str], names: Sequence[str]
) -> pa.Table:
    """Columns `names` of the rows of the table at `path` that may share the `key` with one of `rows` (NULL is equal to
    NULL): all that do, and perhaps others. No rows if the table has none of the keys."""
    wanted = rows.select(list(key))
    known = _matching(spark, path, version, wanted, list(key))
    if not known.num_rows:
        return _no_rows(spark, path, version, list(names))
    return _matching(spark, path, version, known, list(names))


def _no_rows(spark: SparkSession, path: str, version: int, names: list[str]) -> pa.Table:
    try:
        with local_errors():
            return table_here(spark, path, version).none().select(names)
    except LocalUnsupportedError:
        return to_arrow_schema(_columns(read_at(spark, path, version), names), timezone="UTC").empty_table()


def _matching(spark: SparkSession, path: str, version: int, keys: pa.Table, names: list[str]) -> pa.Table:
    key = keys.column_names
    asked = list(dict.fromkeys((*key, *names)))
    try:
        first = keys.column(key[0]).combine_chunks()
        if pa.types.is_floating(first.type):
            raise LocalUnsupportedError("to Spark 0.0 is -0.0")
        matching = table_here(spark, path, version).rows_with(asked, first, limits.KEYS_COMPARED)
        if len(key) > 1:
            both = pa.concat_tables([matching.select(key), keys])
            codes = exact_codes(both, key)
            matching = matching.filter(arrow(np.isin(codes[: matching.num_rows], codes[matching.num_rows :])))
    except LocalUnsupportedError:
        matching = _read(spark, path, version, keys, asked)
    return matching.select(names)


def _read(spark: SparkSession, path: str, version: int, keys: pa.Table, names: list[str]) -> pa.Table:
    """As `_matching`, by Spark."""
    source = read_at(spark, path, version)
    schema = to_arrow_schema(_columns(source, names), timezone="UTC")
    key = keys.column_names
    ends = pc.min_max(keys.column(key[0])).as_py() if pa.types.is_string(keys.schema.types[0]) else {}
    if ends.get("min") is not None and not keys.column(0).null_count:
        source = source.where(column(key[0]).between(sf.lit(ends["min"]), sf.lit(ends["max"])))
    wanted = frame_of(spark, keys.group_by(key).aggregate([]))
    wanted = wanted.select(*[column(name).alias(f"{KEY}{i}") for i, name in enumerate(key)])
    wanted = sf.broadcast(wanted) if keys.num_rows <= limits.KEYS_SENT else wanted
    same = reduce(lambda a, b: a & b, [column(name).eqNullSafe(sf.col(f"{KEY}{i}")) for i, name in enumerate(key)])
    return source.join(wanted, same, "left_semi").select(*map(column, names)).toArrow().cast(schema)


def _columns(source: DataFrame, names: list[str]) -> StructType:
    return source.select(*map(column, names)).schema
