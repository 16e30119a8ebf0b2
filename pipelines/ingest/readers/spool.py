"""Rows of a file on their way: few in memory, more in a deleted file on disk that the table is mapped from."""

from __future__ import annotations

import os
import tempfile

import pyarrow as pa

IN_MEMORY = 64 << 20
"""Bytes of rows that are held in memory."""


class Spool:
    """Takes batches of `schema` one by one, and gives them back as one table. A context: at its end no file has a name
    any more."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._path = ""

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > IN_MEMORY:
            self._write()

    def table(self) -> pa.Table:
        """All rows; there are no more to come."""
        if self._writer is None:
            return pa.Table.from_batches(self._batches, self.schema)
        self._write()
        self._writer.close()
        return pa.ipc.open_file(pa.memory_map(self._path)).read_all()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path:
            os.unlink(self._path)  # the disk is free again when the table is

    def _write(self) -> None:
        if self._writer is None:
            handle, self._path = tempfile.mkstemp(prefix="trendlake-", suffix=".arrow")
            os.close(handle)
            self._writer = pa.ipc.new_file(self._path, self.schema)
        for batch in self._batches:
            self._writer.write_batch(batch)
        self._batches, self._bytes = [], 0
