"""Frames of Polars, lazy ones too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def schema(frame: Any) -> pa.Schema:
    """Names and types of the columns; a lazy frame computes no row for them."""
    import polars as pl

    empty = pl.DataFrame(schema=frame.collect_schema()) if isinstance(frame, pl.LazyFrame) else frame.clear()
    return empty.to_arrow().schema


def to_arrow(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns; a lazy frame computes these alone."""
    import polars as pl

    chosen = frame.select(columns)
    return (chosen.collect() if isinstance(chosen, pl.LazyFrame) else chosen).to_arrow()


def from_arrow(rows: pa.Table, like: Any) -> Any:
    """A frame, lazy if `like` is."""
    import polars as pl

    frame = pl.DataFrame(rows)
    return frame.lazy() if isinstance(like, pl.LazyFrame) else frame
