"""CSV files of events, a block of rows at a time; every cell is a text until the contract says its type.

Arrow reads the rows. `pipelines.ingest.readers.csv_rows` reads the header, and says where a row is and what is wrong
with one that Arrow does not read. Lines of white space are no rows, before the header and, where there are several
columns, after it; an empty line never is.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from trendlake.cep_core.events.arrays import numbers
from trendlake.pipelines.contracts.column_names import save_with_commas
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.cells import Cells
from trendlake.pipelines.ingest.readers.csv_rows import Row, rows_of
from trendlake.pipelines.ingest.readers.unpacking import open_bytes

ROW = 1 << 20
"""Bytes that the cells of a row may have together."""
BLOCK = 4 << 20
"""Bytes that are read at once. A row that is longer, with its commas and quotation marks, may not be read by Arrow."""
MARK = b"\xef\xbb\xbf"
Block = tuple[int, dict[str, tuple[Cells, ...]]]
"""Rows of a block, and its columns as the file has them."""


class CsvFile:
    """`names`: the columns of the header."""

    def __init__(self, path: Path) -> None:
        """Raises SourceFileError, OSError."""
        self.path, self.names = path, list[str]()
        with self._text() as text:
            start, header = 0, None
            for row in rows_of(text, BLOCK):
                start += len(row.bytes)
                if not row.blank:
                    header = row
                    break
        if header is None:
            raise SourceFileError(f"{path} is empty", hint="the first line of a CSV file has the names of its columns")
        self._refuse(header)
        self.names, self._header, self._start = header.cells, header, start
        self.empty = next((False for _ in self._rows(BLOCK)), True)

    def blocks(self, words: Mapping[str, Sequence[str]]) -> Iterator[Block]:
        """The columns that are keys of `words`, as texts. An unquoted cell that is empty, or one of the column's words,
        is NULL; a quoted one is the text that it shows. Raises SourceFileError."""
        wanted = [name for name in self.names if name in words]
        if self.empty or not wanted:
            return
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in wanted:
            groups.setdefault(tuple(words[name]), []).append(name)
        others = [name for name in self.names if name not in words]
        # Arrow takes one list of such words for all columns: the file is read once for each list there is
        streams = [
            self._stream(names, others if at == 0 else (), nulls) for at, (nulls, names) in enumerate(groups.items())
        ]
        before, long = 0, None
        for parts in zip(*streams, strict=True):
            columns = {name: part.column(name) for part in parts for name in part.schema.names}
            long = long or self._long(columns, before)
            before += parts[0].num_rows
            if long is None:  # else to the end: Arrow aborts where a CSV file is left half-read
                yield parts[0].num_rows, {name: (Cells(columns[name]),) for name in wanted}
        if long is not None:
            raise long

    def where(self, rows: Sequence[int]) -> list[str]:
        """Where rows number `rows` (from 0, ascending) begin."""
        places, data = [], enumerate(self._rows(2 * BLOCK))  # Arrow may read a row that is in two blocks
        at, line = -1, 0
        for number in rows:
            while at < number:
                at, row = next(data)
                line = row.line
            places.append(f"line {line}")
        return places

    def _stream(self, names: Sequence[str], others: Sequence[str], words: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns `names` as texts, and `others` as bytes, whose length counts."""
        read = pyarrow.csv.ReadOptions(column_names=self.names, block_size=BLOCK)
        end, ended = f"\0end{',' * len(self.names)}", []

        def invalid(row: pyarrow.csv.InvalidRow) -> str:
            if row.text == end:
                ended.append(True)
            return "skip" if row.text == end or not row.text.strip() else "error"

        parse = pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=invalid)
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()) | dict.fromkeys(others, pa.binary()),
            include_columns=[*names, *others],
            null_values=["", *words],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with open_bytes(self.path) as file:
            file.read(self._start + len(MARK) * (file.peek(len(MARK))[: len(MARK)] == MARK))
            try:
                yield from pyarrow.csv.open_csv(_Followed(file, f"\n{end}\n".encode()), read, parse, convert)
            except pa.ArrowInvalid:
                self._refuse_one(names)
                raise
            if not ended:  # a quotation mark without its pair has taken it in: Arrow says nothing
                self._refuse_one(names)

    def _long(self, columns: Mapping[str, pa.Array], before: int) -> SourceFileError | None:
        """The error of the first row with more than `ROW` bytes; `before`: so many rows come before these."""
        sizes = {name: numbers(pc.binary_length(values), 0) for name, values in columns.items()}
        long = np.flatnonzero(np.sum(list(sizes.values()), axis=0, dtype=np.int64) > ROW)
        if not len(long):
            return None
        (place,) = self.where([before + int(long[0])])
        return self._too_long(place, max(sizes, key=lambda name: int(sizes[name][long[0]])))

    def _refuse_one(self, texts: Sequence[str]) -> None:
        """Raises SourceFileError for the first row that cannot be read."""
        for row in self._rows(BLOCK):
            self._refuse(row, texts)

    def _refuse(self, row: Row, texts: Sequence[str] = ("",)) -> None:
        """Raises SourceFileError for a row that cannot be read, and says why. `texts`: the columns that have to be
        UTF-8; the columns of the header have no names."""
        place, longest = f"line {row.line}", max(range(len(row.cells)), key=lambda at: len(row.cells[at]))
        if row.torn or len(row.bytes) > BLOCK:
            raise self._too_long(place, self._name(longest))
        for at, cell in enumerate(row.cells):
            if self._name(at) in texts and not _is_unicode(cell):
                message = f"{self._at(place, self._name(at))}: its text is not UTF-8"
                raise SourceFileError(message, hint="save the file as UTF-8")
        if row.open:
            message = f"{self._at(place, self._name(len(row.cells) - 1))}: a quotation mark has no pair"
            raise SourceFileError(message, hint="close it, or write two for one inside a cell")
        if self.names and len(row.cells) != len(self.names):
            wanted = f"expected {len(self.names)}, as in the header"
            message = f"{self._at(place)}: {plural(len(row.cells), 'cell')}, {wanted}"
            raise SourceFileError(message, hint=save_with_commas(self.names))

    def _too_long(self, place: str, name: str) -> SourceFileError:
        return SourceFileError(
            f"{self._at(place, name)}: the row has more than {ROW >> 20} MB, or a quotation mark has no pair",
            hint="shorten the cell, or write the file as Parquet",
        )

    def _at(self, place: str, name: str = "") -> str:
        return f"{self.path}, {place}{name and f', column {name}'}"

    def _name(self, at: int) -> str:
        return self.names[min(at, len(self.names) - 1)] if self.names else ""

    def _rows(self, most: int) -> Iterator[Row]:
        """The rows after the header."""
        with self._text() as text:
            for row in rows_of(text, most):
                blank = row.blank if len(self.names) > 1 else not row.cells
                if row.line > self._header.line and not blank:
                    yield row

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(open_bytes(self.path), encoding="utf-8-sig", errors="surrogateescape", newline="")


class _Followed(io.RawIOBase):
    """A file, and `more` behind its last byte. All reads but the last are full: a row is then in two blocks at most."""

    def __init__(self, file: io.BufferedReader, more: bytes) -> None:
        self._parts: list[io.BufferedReader | io.BytesIO] = [file, io.BytesIO(more)]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        filled, room = 0, memoryview(buffer)
        while self._parts and filled < len(room):
            count = self._parts[0].readinto(room[filled:])
            filled += count
            if not count:
                del self._parts[0]
        return filled


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
