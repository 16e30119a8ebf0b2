"""Spark types of a contract's columns."""

from __future__ import annotations

import re

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


def spark_type(item: Property, *, lists: bool = False) -> str:
    """The Spark type of a column: `physicalType` where given, else by the logical type; lists of any type only where
    `lists` says so. Raises ValueError."""
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
