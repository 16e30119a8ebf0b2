"""Frames of other libraries as Arrow tables, and results as frames of the same library.

A file for each library, with the same functions (`Library`), which imports it only when it gets a frame of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
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


class LazyFrame(Protocol):
    """A frame of Spark, for types."""

    def mapInArrow(self, function: Any, schema: Any) -> LazyFrame:  # noqa: N802 - Spark's name
        """As Spark has it."""


GROUP = "trendlake.frames"
"""Entry points of functions that compute a query over frames of a package, whose name they have, where the rows are:
called with the query, the frame, the names of the columns by role, and the other options of `evaluate`."""


def of_its_own_engine(frame: Any) -> Callable[..., Any] | None:
    """The function that computes over such a frame; None for frames that are read here. Raises NotSupportedError for
    a frame of Spark where no such function is installed."""
    if "pyspark" not in _packages(frame):
        return None
    for entry in entry_points(group=GROUP, name="pyspark"):
        function: Callable[..., Any] = entry.load()
        return function
    message = "Trendlake is not installed as a package here, so that Spark's frames are not known"
    raise NotSupportedError(message, hint="evaluate(pattern, df.toArrow()) brings its rows to this process")


def _packages(frame: Any) -> list[str]:
    return [one.__module__.partition(".")[0] for one in type(frame).__mro__]


def library_of(frame: Any) -> Library:
    """The library of a frame. Raises TypeError for what is no frame, NotSupportedError for a frame of Spark."""
    packages = _packages(frame)
    if "pyspark" in packages:  # it has Arrow's protocol too, by which all of its rows would come here
        message = "evaluate reads one frame of Spark, and neither several frames nor reference tables"
        raise NotSupportedError(message, hint="df.toArrow() brings its rows to this process")
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
