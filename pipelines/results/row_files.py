"""Rows of results as values of Python, and as files that people and programs open."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.parquet import write_table

from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.ingest.readers.csv_texts import write_csv
from trendlake.pipelines.json_text import json_text


def documents_of_rows(rows: pa.Table) -> list[dict[str, Any]]:
    columns = [_values(rows.column(at)) for at in range(rows.num_columns)]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column of results. Of texts that are not UTF-8, which tables of other programs may hold, what is
    no character is U+FFFD."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_decoded(value) for value in column.cast(_of_bytes(column.type)).to_pylist()]


def _of_bytes(kind: pa.DataType) -> pa.DataType:
    """The type with bytes in place of texts: results have texts, and lists of them."""
    if pa.types.is_list(kind):
        return pa.list_(_of_bytes(kind.value_type))
    return pa.binary() if pa.types.is_string(kind) else kind


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def write_rows(rows: pa.Table, out: Path) -> None:
    """Writes rows to a CSV or Parquet file, as `content_of`. Raises ProjectError."""
    suffix = out.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ProjectError(f"{out} cannot be written: unknown file type", hint="files end in .csv or .parquet")
    try:
        _write(rows, suffix, out)
    except OSError as error:
        raise ProjectError(f"{out} cannot be written: {error.strerror or error}") from None


def content_of(rows: pa.Table, suffix: str) -> bytes:
    """Of such a file, by its suffix (`.csv`, `.parquet`). In CSV a list is JSON text, and a text that a spreadsheet
    would run as a formula is marked (`pipelines.ingest.readers.csv_texts`)."""
    buffer = BytesIO()
    _write(rows, suffix, buffer)
    return buffer.getvalue()


def _write(rows: pa.Table, suffix: str, out: Path | BytesIO) -> None:
    if suffix == ".parquet":
        write_table(rows, out)
        return
    for at, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            values = _values(rows.column(at))
            texts = [None if value is None else json_text(value, None) for value in values]
            rows = rows.set_column(at, field.name, pa.array(texts, pa.string()))
    write_csv(rows, out)
