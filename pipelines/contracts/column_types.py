"""Spark types of a contract's columns, and Spark's names of Arrow's types, without Spark."""

from __future__ import annotations

import re

import pyarrow as pa

from trendlake.cep_core.errors import readable
from trendlake.pipelines.contracts.odcs import Property
from trendlake.pipelines.contracts.rule_options import INTEGER_FORMATS, NUMBER_FORMATS, decimal_fits

LOGICAL_OF = {
    "string": "string",
    "varchar": "string",
    "char": "string",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "timestamp": "timestamp",
    "date": "date",
    "boolean": "boolean",
    "array": "array",
}
SIZED = ("decimal", "varchar", "char")
_ARROW = {
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
_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Arrow types by the names that contracts give them."""


def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type of a column of a contract, such as `bigint` or `decimal(10,2)`."""
    digits = re.fullmatch(r"decimal(?:\((\d+)(?:,(\d+))?\))?", spark_type)
    if digits:
        return pa.decimal128(int(digits[1] or 10), int(digits[2] or 0))
    return _TYPES[spark_type]


def spark_type(item: Property, *, lists: bool = False) -> str:
    """The Spark type of a column: `physicalType` where given, else by the logical type; lists of any type only if
    `lists` is true. Raises ValueError."""
    logical, options = item.logical_type, item.logical_type_options
    if lists and logical == "array" and item.physical_type:
        return item.physical_type
    if logical in ("object", "array", "time"):
        raise ValueError(f"columns of logicalType {logical} are not read")
    if item.physical_type:
        kind = re.sub(r"\s+", "", item.physical_type.lower())
        match = re.fullmatch(r"([a-z]+)(\(\d+(,\d+)?\))?", kind)
        if not match or match[1] not in LOGICAL_OF:
            raise ValueError(f"'{item.physical_type}' is no Spark type of a column; known: {', '.join(LOGICAL_OF)}")
        if logical and LOGICAL_OF[match[1]] != logical:
            raise ValueError(f"physicalType {item.physical_type} is a {LOGICAL_OF[match[1]]}, not a {logical}")
        if match[2] and (match[1] not in SIZED or (match[1] == "decimal" and not decimal_fits(match[2]))):
            raise ValueError(f"there is no Spark type {readable(item.physical_type)}")
        return "string" if match[1] in ("varchar", "char") else kind
    if logical is None:
        raise ValueError(f"column '{item.name}' says neither logicalType nor physicalType")
    if logical == "integer":
        return INTEGER_FORMATS.get(str(options.get("format", "i32")), "bigint")
    return NUMBER_FORMATS.get(str(options.get("format", "f64")), "double") if logical == "number" else logical


def spark_name(kind: pa.DataType) -> str:
    """Spark's name for the type of a column that it reads from Arrow, such as `decimal(38,0)` or `array<string>`.
    Raises ValueError for one that no column of results has."""
    if kind in _ARROW:
        return _ARROW[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    raise ValueError(f"no name of Spark's for {kind}")
