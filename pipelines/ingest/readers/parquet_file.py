"""Parquet files of events, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from pipelines.ingest.readers.cells import Cells
from pipelines.ingest.readers.csv_file import Block
from pipelines.ingest.readers.unpacking import Unpacked

ROWS = 1 << 16


class ParquetFile:
    """`names`: its columns; `schema`: with the types it says they have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema: pa.Schema = pyarrow.parquet.read_schema(path)
        self.names: list[str] = self.schema.names

    def blocks(self, words: Mapping[str, Sequence[str]]) -> Iterator[Block]:
        """The columns that are keys of `words`. Raises SourceFileError beyond the bound on what it unpacks to."""
        wanted = [name for name in self.names if name in words]
        unpacked = Unpacked(self.path, "write it in parts")
        with pyarrow.parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(ROWS, columns=wanted):
                unpacked.add(batch.nbytes)
                yield batch.num_rows, {name: (Cells(batch.column(name)),) for name in wanted}

    def where(self, rows: Sequence[int]) -> list[str]:
        return [f"row {row + 1}" for row in rows]
