"""Spark's names of Arrow's types, without Spark."""

from __future__ import annotations

import pyarrow as pa

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}


def spark_name(kind: pa.DataType) -> str:
    """Spark's name for the type of a column that it reads from Arrow, such as `decimal(38,0)` or `array<string>`.
    Raises ValueError for one that no column of results has."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    raise ValueError(f"no name of Spark's for {kind}")
