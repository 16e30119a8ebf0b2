"""Tables, batches, readers and datasets of Arrow, and any object with `__arrow_c_stream__`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def schema(frame: Any) -> pa.Schema:
    """Names and types of the columns; of an object with `__arrow_c_stream__` as it states them."""
    if isinstance(frame, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return frame.schema
    if hasattr(frame, "to_table"):
        return frame.projected_schema if hasattr(frame, "projected_schema") else frame.schema
    if hasattr(frame, "__arrow_c_schema__"):
        return pa.schema(frame)
    return pa.RecordBatchReader.from_stream(frame).schema


def to_arrow(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns. A reader is read batch by batch, and to its end."""
    if isinstance(frame, pa.Table):
        return frame.select(columns)
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame.select(columns)])
    if hasattr(frame, "to_table"):  # a dataset reads no other column; a scanner has its own choice already
        return frame.to_table().select(columns) if hasattr(frame, "projected_schema") else frame.to_table(columns)
    reader = frame if isinstance(frame, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(frame)
    chosen = pa.schema([reader.schema.field(name) for name in columns])
    return pa.Table.from_batches((batch.select(columns) for batch in reader), chosen)


def from_arrow(rows: pa.Table, like: Any) -> pa.Table | pa.RecordBatchReader:
    """A reader for a reader, else a table."""
    return rows.to_reader() if isinstance(like, pa.RecordBatchReader) else rows
