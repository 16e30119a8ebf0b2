"""Columns by name, whatever characters the name has."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf


def quoted(name: str) -> str:
    """A column's name as an identifier."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    return sf.col(quoted(name))
