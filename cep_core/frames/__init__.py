"""Frames of other libraries as Arrow tables, and results as frames of the same library.

A file for each library, with the same functions (`Library`), which imports it only when it gets a frame of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa

from trendlake.cep_core.errors import NotSupportedError

LIBRARIES = {"pandas": "pandas", "polars": "polars", "duckdb": "duckdb", "_duckdb": "duckdb", "pyarrow": "arrow"}
"""The package of a frame's class, and the module here that reads it."""


class Library(Protocol):
    """How the frames of one library are read, and how results become one."""

    def schema(self, frame: Any) -> pa.Schema:
        """Names and types of the frame's columns, without its rows."""

    def to_arrow(self, frame: Any, columns: Sequence[str]) -> pa.Table:
        """These columns of the frame, each once. Raises BadEventsError for a column that Arrow cannot hold."""

    def from_arrow(self, rows: pa.Table, like: Any) -> Any:
        """Results as a frame of the type of `like`."""


def library_of(frame: Any) -> Library:
    """The library of a frame. Raises TypeError for what is no frame, NotSupportedError for a frame of Spark."""
    packages = [one.__module__.partition(".")[0] for one in type(frame).__mro__]
    if "pyspark" in packages:  # it has Arrow's protocol too, by which all of its rows would come here
        message = "evaluate does not read frames of Spark yet"
        raise NotSupportedError(message, hint="evaluate(pattern, df.toArrow()) brings its rows to this process")
    for package in packages:
        if package in LIBRARIES:
            return _module(LIBRARIES[package])
    if hasattr(frame, "__arrow_c_stream__"):
        return _module("arrow")
    kind = type(frame)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise TypeError(
        "evaluate takes a frame of pandas, polars, pyarrow or DuckDB, or an object with __arrow_c_stream__, "
        f"and this is a {name}"
    )


def _module(name: str) -> Library:
    library: Any = import_module(f"{__name__}.{name}")
    return library  # type: ignore[no-any-return]
