"""A file of events whose cells are looked at several times, and read once.

Cells of CSV and JSON are written to a temporary file as they are parsed, and read from there. Parquet files are read in
place: they give one column without the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import pyarrow as pa

from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.null_words import USUAL
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.bad_values import BadValues
from trendlake.pipelines.ingest.readers.cells import ISO_IN_UTC, Cells
from trendlake.pipelines.ingest.readers.csv_file import CsvFile
from trendlake.pipelines.ingest.readers.files import column_of, open_file, refuse_names, unreadable
from trendlake.pipelines.ingest.readers.inference import Column, Reason
from trendlake.pipelines.ingest.readers.json_lines import JsonLines
from trendlake.pipelines.ingest.readers.parquet_file import ParquetFile

LITERAL = {"literal": "true"}
"""Of a column in the temporary file: numbers of JSON as they are written."""


class FileCells:
    """`schema`: the columns of the file, each with the type that a contract may give it. `words`: texts that mean NULL,
    in addition to the usual ones; `null_words`: of a column that holds one of `words` those that occur there, the usual
    ones too; `reasons`: of columns why they have their type, where a few cells decide it."""

    def __init__(self, path: Path, copy: IO[bytes], words: Sequence[str] = ()) -> None:
        """Raises SourceFileError."""
        self.path, self.words = path, tuple(words)
        self.reasons: dict[str, Reason] = {}
        self.null_words: dict[str, Counter[str]] = {}
        self._copy = Path(copy.name)
        with unreadable(path):
            self._file = open_file(path)
            refuse_names(path, self._file.names)
            self.schema = self._file.schema if isinstance(self._file, ParquetFile) else self._read(self._file, copy)
            refuse_names(path, self._file.names)

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, tuple[Cells, ...]]]:
        """The named columns as the file has them, by blocks of rows. Raises SourceFileError."""
        if isinstance(self._file, ParquetFile):
            with unreadable(self.path):
                for _, block in self._file.blocks(dict.fromkeys(names, ())):
                    yield block
            return
        with pa.memory_map(str(self._copy)) as stored:
            while stored.tell() < stored.size():
                with pa.ipc.open_stream(stored) as stream:
                    for batch in stream:  # the only one: to the end of its stream
                        yield _columns(batch, names)

    def check(self, contract: Contract) -> None:
        """Raises SourceFileError for values that ingestion would refuse by the contract."""
        kinds = {one.name: arrow_type(one.type) for one in contract.columns if one.name in self.schema.names}
        formats, before = contract.time_formats, 0
        bad = BadValues(self.path, contract, kinds, formats, repaired=False)
        for block in self.blocks(list(kinds)):
            errors = []
            for name, kind in kinds.items():
                words = contract.null_words.get(name, () if pa.types.is_string(kind) else USUAL)
                _, refused = column_of(block[name], kind, words, formats.get(name, ISO_IN_UTC))
                errors += [(name, error) for error in refused]
            if errors:
                bad.add(lambda rows: [f"row {row + 1}" for row in rows], before, errors)
            before += max(len(cells.values) for column in block.values() for cells in column)
        try:
            bad.check()
        except SourceFileError as error:
            raise SourceFileError(error.message, hint="correct the file: ingestion would refuse it") from None

    def _read(self, file: CsvFile | JsonLines, copy: IO[bytes]) -> pa.Schema:
        columns: dict[str, Column] = {name: Column(self.words) for name in file.names}
        json = isinstance(file, JsonLines)
        blocks = file.blocks(None) if isinstance(file, JsonLines) else file.blocks(dict.fromkeys(file.names, ()))
        for _, block in blocks:
            _store(copy, block)
            for name, parts in block.items():
                for cells in parts:
                    columns.setdefault(name, Column(self.words)).look(cells, json=json)
        copy.flush()
        for name, column in columns.items():
            if column.truths and column.type != pa.bool_():
                raise SourceFileError(
                    f"{self.path}, column {name}: some values are true or false, and others are not",
                    hint="use one type",
                )
        self.reasons = {name: column.reason for name, column in columns.items() if column.reason is not None}
        stated = {name: column.nulls for name, column in columns.items() if column.nulls.keys() & set(self.words)}
        self.null_words = {
            name: nulls if columns[name].type != pa.string() else Counter({one: nulls[one] for one in self.words})
            for name, nulls in stated.items()
        }
        return pa.schema([(name, columns[name].type) for name in file.names if name in columns])


@contextmanager
def read_once(path: Path, words: Sequence[str] = ()) -> Iterator[FileCells]:
    """The cells of a file, until the end of the context. `words`: texts that mean NULL, in addition to the usual ones.
    Raises SourceFileError."""
    with NamedTemporaryFile(prefix="trendlake-", suffix=".arrow") as copy:
        yield FileCells(path, copy, words)


def columns_of(path: Path) -> pa.Schema:
    """The columns of a file, each with the type that a contract may give it. Raises SourceFileError."""
    with read_once(path) as cells:
        return cells.schema


def _columns(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, tuple[Cells, ...]]:
    """Of a block that `_store` has written. Objects of JSON do not all have all columns."""
    parts: dict[str, tuple[Cells, ...]] = {}
    for field, values in zip(batch.schema, batch.columns, strict=True):
        parts[field.name] = (*parts.get(field.name, ()), Cells(values, literal=bool(field.metadata)))
    return {name: parts.get(name) or (Cells(pa.nulls(batch.num_rows)),) for name in names}


def _store(copy: IO[bytes], block: Mapping[str, Sequence[Cells]]) -> None:
    """Append a block: a stream of one batch, as the next may have other columns."""
    parts = [(name, cells) for name, column in block.items() for cells in column]
    schema = pa.schema(
        [pa.field(name, cells.values.type, metadata=LITERAL if cells.literal else None) for name, cells in parts]
    )
    with pa.ipc.new_stream(copy, schema) as stream:
        stream.write_batch(pa.record_batch([cells.values for _, cells in parts], schema=schema))
