"""The names of column types, as Spark and ODCS have them."""

from __future__ import annotations

INTEGERS = frozenset({"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"})
DOUBLES = frozenset({"float", "double", "real", "number"})
STRINGS = frozenset({"string", "varchar", "char"})
TIMES = frozenset({"timestamp", "timestamp_ntz"})

FAMILIES = ("int", "double", "string", "boolean", "timestamp", "date", "null", "other")


def family(type_name: str) -> str:
    """A Spark or ODCS type name as one of `FAMILIES`."""
    name = type_name.lower().split("(")[0].strip()
    if name in INTEGERS:
        return "int"
    if name in DOUBLES or name in ("decimal", "numeric"):
        return "double"
    if name in STRINGS:
        return "string"
    if name in ("boolean", "bool"):
        return "boolean"
    if name in TIMES:
        return "timestamp"
    return name if name in ("date", "duration", "null") else "other"
