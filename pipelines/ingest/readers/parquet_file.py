"""Parquet files of events, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.cells import Cells, is_text
from trendlake.pipelines.ingest.readers.csv_file import Block
from trendlake.pipelines.ingest.readers.unpacking import Unpacked

ROWS = 1 << 16


class ParquetFile:
    """`names`: its columns; `schema`: with the types it says they have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema: pa.Schema = pyarrow.parquet.read_schema(path)
        self.names: list[str] = self.schema.names

    def blocks(self, words: Mapping[str, Sequence[str]]) -> Iterator[Block]:
        """The columns that are keys of `words`. Raises SourceFileError beyond the bound on what it unpacks to, and for
        a text that is not UTF-8: Arrow does not look."""
        wanted = [name for name in self.names if name in words]
        unpacked, before = Unpacked(self.path, "write it in parts"), 0
        with pyarrow.parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(ROWS, columns=wanted):
                unpacked.add(batch.nbytes)
                for name in wanted:
                    self._refuse_other_texts(name, batch.column(name), before)
                before += batch.num_rows
                yield batch.num_rows, {name: (Cells(batch.column(name)),) for name in wanted}

    def _refuse_other_texts(self, name: str, values: pa.Array, before: int) -> None:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not is_text(values.type) or _is_utf_8(values):
            return
        row = next(row for row in range(len(values)) if not _is_utf_8(values.slice(row, 1)))
        (place,), shown = self.where([before + row]), values[row].as_buffer().to_pybytes()[:20]
        message = f"{self.path}, {place}: column {name}: {shown!r} is not UTF-8"
        raise SourceFileError(message, hint="texts of Parquet are UTF-8: convert them before the file is written")

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"row {row + 1}" for row in rows]


def _is_utf_8(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
