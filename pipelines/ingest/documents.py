"""Files of XML documents as deliveries: small files together in one, a large one in several.

Files count in the order of their names: a later file may correct a document of an earlier one, as the next copy of a
feed does. Each is read to its end first. One that cannot be read gives nothing and stops no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.files import feed_of
from trendlake.pipelines.ingest.readers.xml_files import check_paths, read_documents, xml_files
from trendlake.pipelines.ingest.readers.xml_names import is_xml

MOST_BYTES = 64 << 20
"""Bytes of a delivery, more or less."""
Said = dict[object, int]
"""Of each id a hash of what its row says."""


@dataclass
class DocumentFiles:
    """The XML files at `path`, a file or a folder, as deliveries for the source of `contract`; `refused`: errors of
    those that gave nothing, known once the deliveries have been taken."""

    path: Path
    contract: Contract
    refused: list[SourceFileError] = field(default_factory=list)

    @cached_property
    def files(self) -> list[Path]:
        """In the order in which they count. Raises SourceFileError for a folder with none."""
        return xml_files(self.path)

    def check(self) -> None:
        """Raises SourceFileError: no files, or a contract that does not say how they are read."""
        check_paths(self.contract, self.path)
        for file in self.files:
            if not is_xml(file):
                raise SourceFileError(f"{file} is no XML file", hint="ingest files of other forms by themselves")
            if not file.is_file():
                raise SourceFileError(f"{file} cannot be read: no such file")

    @property
    def feed(self) -> str:
        """The name of their sequence: of what they hold, and how it is read."""
        digest = hashlib.sha256(repr(self.contract.documents and self.contract.documents.texts).encode())
        for file in self.files:
            digest.update(feed_of(file).encode())
        return f"files {digest.hexdigest()[:16]}"

    def deliveries(self) -> Iterator[pa.Table]:
        """Tables with the contract's columns. In one delivery no id has two different rows."""
        held: list[pa.Table] = []
        known: Said = {}
        for table in self._tables():
            said = self._said(table)
            size = sum(one.nbytes for one in held)
            repeated = any(known.get(ident, row) != row for ident, row in said.items())
            if held and (repeated or size + table.nbytes > MOST_BYTES):
                yield pa.concat_tables(held)
                held, known = [], {}
            held.append(table)
            known |= said
        if held:
            yield pa.concat_tables(held)

    def table(self) -> pa.Table:
        """All documents, of each id the last one. Raises SourceFileError for the first file that cannot be read."""
        tables = [self._read(file) for file in self.files]
        whole = pa.concat_tables(tables)
        last = {ident: row for row, ident in enumerate(whole[self.contract.roles["event_id"]].to_pylist())}
        return whole.take(pa.array(sorted(last.values()), pa.int64()))

    def raise_refused(self) -> None:
        """Raises SourceFileError where a file was refused."""
        if len(self.refused) == 1 and len(self.files) == 1:
            raise self.refused[0]
        if self.refused:
            count = f"{len(self.refused):,} of {plural(len(self.files), 'file')}"
            raise SourceFileError(f"{self.path}: {count} gave no documents: {self.refused[0].message}")

    def _tables(self) -> Iterator[pa.Table]:
        """Of each file that can be read its documents, of a large one in several tables."""
        for file in self.files:
            try:
                table = self._read(file)
            except SourceFileError as error:
                self.refused.append(error)
                continue
            if table.nbytes <= MOST_BYTES:
                yield table
                continue
            for batch in table.to_batches():
                yield pa.Table.from_batches([batch])

    def _read(self, file: Path) -> pa.Table:
        """Raises SourceFileError, also for two documents of one id that differ."""
        table = read_documents(file, self.contract)
        identity = self.contract.roles["event_id"]
        said: Said = {}
        for ident, row in zip(table[identity].to_pylist(), _hashes(table), strict=True):
            if said.setdefault(ident, row) != row:
                raise SourceFileError(
                    f"{file}: two documents have the id {ident!r}, and differ",
                    hint="nothing of the file was ingested: let idPath name what tells them apart",
                )
        return table

    def _said(self, table: pa.Table) -> Said:
        return dict(zip(table[self.contract.roles["event_id"]].to_pylist(), _hashes(table), strict=True))


def _hashes(table: pa.Table) -> list[int]:
    """Of each row of documents a hash of all its cells."""
    columns = [
        table[name].cast(pa.int64()) if pa.types.is_timestamp(table[name].type) else table[name]
        for name in table.column_names
    ]
    return [hash(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]
