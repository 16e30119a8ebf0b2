"""CSV files of events, a block of rows at a time; every cell is a text until the contract says its type."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from pipelines.errors import SourceFileError
from pipelines.ingest.readers.cells import Cells
from pipelines.ingest.readers.unpacking import open_bytes

BLOCK = 1 << 20
"""Bytes that are read at once; no row may be longer."""
Block = tuple[int, dict[str, tuple[Cells, ...]]]
"""Rows of a block, and its columns as the file has them."""


class CsvFile:
    """`names`: the columns of the header, refused where two are alike or the file is not text in UTF-8."""

    def __init__(self, path: Path) -> None:
        """Raises SourceFileError, OSError, UnicodeDecodeError, csv.Error."""
        self.path = path
        with self._text() as text:
            rows = csv.reader(text)
            header = next((row for row in rows if row), None)
            self.empty = next((False for row in rows if row), True)
        if header is None:
            raise SourceFileError(f"{path} is empty", hint="the first line of a CSV file has the names of its columns")
        self.names = header

    def blocks(self, words: Mapping[str, Sequence[str]]) -> Iterator[Block]:
        """The columns that are keys of `words`, as texts. An unquoted cell that is empty, or one of the column's words,
        is NULL; a quoted one is the text that it shows."""
        wanted = [name for name in self.names if name in words]
        if self.empty or not wanted:
            return
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in wanted:
            groups.setdefault(tuple(words[name]), []).append(name)
        # Arrow takes one list of such words for all columns: the file is read once for each list there is
        streams = [self._stream(names, nulls) for nulls, names in groups.items()]
        for parts in zip(*streams, strict=True):
            columns = {name: part.column(name) for part in parts for name in part.schema.names}
            yield parts[0].num_rows, {name: (Cells(columns[name]),) for name in wanted}

    def where(self, rows: Sequence[int]) -> list[str]:
        """Where rows number `rows` (from 0, ascending) begin."""
        places = []
        with self._text() as text:
            reader = csv.reader(text)
            number, line = -2, 0
            for row in rows:
                while number < row:
                    line = reader.line_num + 1
                    number += bool(next(reader))
                places.append(f"line {line}")
        return places

    def _stream(self, names: Sequence[str], words: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read = pyarrow.csv.ReadOptions(column_names=self.names, skip_rows_after_names=1, block_size=BLOCK)
        parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), include_columns=list(names), null_values=["", *words],
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        )  # fmt: skip
        with open_bytes(self.path) as file:
            try:
                yield from pyarrow.csv.open_csv(file, read, parse, convert)
            except pa.ArrowInvalid as error:
                if "straddling" in str(error):
                    message = (
                        f"{self.path} has a row of more than {BLOCK >> 20} MB, or a quotation mark without its pair"
                    )
                    raise SourceFileError(message) from None
                raise

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(open_bytes(self.path), encoding="utf-8-sig", newline="")
