"""Files of XML documents: .xml, .rss and .atom, also .gz, and .zip of such; and folders of them.

A file is read to its end before any of its documents counts; one that breaks gives none. Its documents become rows: id
and time of the contract's paths, and the text of the element.
"""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.document_paths import EPOCH_SECONDS, ISO, RFC822
from trendlake.pipelines.contracts.time_formats import UNIX_SECONDS, TimeFormat
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.cells import Cells, values_of
from trendlake.pipelines.ingest.readers.encodings import as_utf8
from trendlake.pipelines.ingest.readers.refusals import BadCellsError
from trendlake.pipelines.ingest.readers.spool import Spool
from trendlake.pipelines.ingest.readers.xml_names import ENDS, FORMS
from trendlake.pipelines.ingest.readers.xml_stream import XmlDocument, documents_of

UNPACKED = 4 << 30
"""Bytes that a file may unpack to: `xml_unpacks_too_large`."""
BLOCK_BYTES, BLOCK_ROWS = 8 << 20, 10_000
SHOWN = 5
"""Documents that an error names."""
_RFC822 = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?(\d{1,2}) +([a-z]{3})[a-z]* +(\d{4}|\d{2}) +"
    r"(\d{1,2}):(\d{2})(?::(\d{2}))? +([+-]\d{4}|[a-z]{1,3})",
    re.IGNORECASE,
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ZONES = {
    "ut": "Z",
    "gmt": "Z",
    "z": "Z",
    "utc": "Z",
    "est": "-05:00",
    "edt": "-04:00",
    "cst": "-06:00",
    "cdt": "-05:00",
    "mst": "-07:00",
    "mdt": "-06:00",
    "pst": "-08:00",
    "pdt": "-07:00",
}


def xml_files(path: Path) -> list[Path]:
    """The file, or all files of XML documents in a folder and its folders, by name. Raises SourceFileError for a folder
    with none."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name.lower().endswith(FORMS))
    if not files:
        raise SourceFileError(f"{path} holds no XML files", hint=f"they end in {', '.join(FORMS)}")
    return files


def read_documents(path: Path, contract: Contract) -> pa.Table:
    """The file's documents: the contract's columns in their order and types. Raises SourceFileError: a file that cannot
    be read to its end, documents without an id or a time, or whose id or time is no value of its column's type."""
    check_paths(contract, path)
    schema = pa.schema([(item.name, arrow_type(item.type)) for item in contract.columns])
    wrong = _Wrong(path)
    with Spool(schema) as spool:
        for block in _blocks(path, contract):
            spool.add(_rows(block, contract, schema, wrong))
        wrong.check()
        return spool.table()


def check_paths(contract: Contract, path: Path) -> None:
    """Raises SourceFileError where the contract does not say how XML files are read."""
    documents = contract.documents
    if documents is None:
        hint = "give one column of its contract the role document, and say idPath and timePath"
        raise SourceFileError(f"{path}: '{contract.name}' is no source of XML documents", hint=hint)
    missing = [name for name, at in (("idPath", documents.id), ("timePath", documents.time)) if at is None]
    if missing:
        hint = f"customProperties of the table: {{property: {missing[0]}, value: guid}}, a path from the element"
        raise SourceFileError(f"{path}: the contract of '{contract.name}' has no {' and no '.join(missing)}", hint=hint)
    roles = {contract.roles[role] for role in ("event_id", "event_time", "document")}
    others = [item.name for item in contract.columns if item.required and item.name not in roles]
    if others:
        message = f"XML files give id, time and document; '{contract.name}' also requires {', '.join(others)}"
        raise SourceFileError(f"{path}: {message}")


def _blocks(path: Path, contract: Contract) -> Iterator[list[XmlDocument]]:
    paths = contract.documents
    if paths is None:
        return
    held: list[XmlDocument] = []
    size = 0
    with _unreadable(path):
        for name, file in _opened(path):
            for document in documents_of(as_utf8(file, name), paths, name):
                held.append(document)
                size += len(document.text)
                if size > BLOCK_BYTES or len(held) >= BLOCK_ROWS:
                    yield held
                    held, size = [], 0
    yield held


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceFileError(f"{path} cannot be read: {reason}", hint="nothing of the file was ingested") from None


def _opened(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The XML files in a file, with their names."""
    bound = _Bound(path)
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.is_dir() or member.filename.startswith("__MACOSX/"):
                    continue
                name = f"{path}: {member.filename}"
                if not member.filename.lower().endswith(ENDS):
                    raise SourceFileError(f"{name} is no XML file", hint=f"files in a .zip end in {', '.join(ENDS)}")
                with archive.open(member) as file:
                    yield name, bound.counted(file)
    elif path.name.lower().endswith(".gz"):
        with gzip.open(path) as file:
            yield str(path), bound.counted(file)
    else:
        with path.open("rb") as file:
            yield str(path), file


class _Bound:
    """Counts what comes out of a compressed file."""

    def __init__(self, path: Path) -> None:
        self.path, self.bytes = path, 0

    def counted(self, file: Any) -> IO[bytes]:
        bound = self

        class Counted(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: Any) -> int:
                read: bytes = file.read(len(buffer))
                bound.bytes += len(read)
                if bound.bytes > UNPACKED:
                    message = f"{bound.path}: xml_unpacks_too_large: it unpacks to more than {UNPACKED:,} bytes"
                    raise SourceFileError(message, hint="write it in several files")
                buffer[: len(read)] = read
                return len(read)

        return io.BufferedReader(Counted(), 1 << 20)


class _Wrong:
    """Collects documents that cannot be rows."""

    def __init__(self, path: Path) -> None:
        self.path, self.count, self.shown = path, 0, list[str]()
        self.documents = 0

    def add(self, number: int, document: XmlDocument, what: str) -> None:
        self.count += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"document {self.documents + number + 1} (line {document.line}) {what}")

    def check(self) -> None:
        if self.count:
            more = f"; and {self.count - len(self.shown):,} more" if self.count > len(self.shown) else ""
            hint = "nothing of the file was ingested: correct it, or idPath, timePath and timeFormat of the contract"
            raise SourceFileError(f"{self.path}: {'; '.join(self.shown)}{more}", hint=hint)


def _rows(block: Sequence[XmlDocument], contract: Contract, schema: pa.Schema, wrong: _Wrong) -> pa.RecordBatch:
    paths, roles = contract.documents, contract.roles
    moment = paths.format if paths is not None else ISO
    values: dict[str, pa.Array] = {roles["document"]: pa.array([one.text for one in block], pa.string())}
    for role, label, cells in (
        ("event_id", "id", [one.id for one in block]),
        ("event_time", "time", [one.time for one in block]),
    ):
        path = paths.text(f"{label}Path") if paths is not None else ""
        for number, cell in enumerate(cells):
            if cell is None:
                wrong.add(number, block[number], f"has no {label} at {path}")
        how = TimeFormat(UNIX_SECONDS) if moment == EPOCH_SECONDS else TimeFormat()
        texts = [_iso(cell) for cell in cells] if role == "event_time" and moment == RFC822 else cells
        kind = schema.field(roles[role]).type
        try:
            values[roles[role]] = values_of(Cells(pa.array(texts, pa.string())), kind, (), how)
        except BadCellsError as error:
            for bad in error.first:
                expected = f"as {moment}" if role == "event_time" else f"as {kind}"
                wrong.add(
                    bad.row, block[bad.row], f"has the {label} {cells[bad.row]!r}, which cannot be read {expected}"
                )
            values[roles[role]] = pa.nulls(len(block), kind)
    wrong.documents += len(block)
    columns = [values.get(field.name, pa.nulls(len(block), field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _iso(text: str | None) -> str | None:
    """`Tue, 10 Jun 2003 09:41:01 GMT` -> `2003-06-10T09:41:01Z`; other texts as they are, which no format takes.

    RFC 822 with years of four digits (RFC 1123); of two, 69 to 99 are of the century before, as in `timeFormat`'s %y.
    Military letters but Z are refused: RFC 822 has their signs wrong.
    """
    match = _RFC822.fullmatch(text or "")
    if match is None:
        return None if text is None else f"no time: {text}"
    day, month, year, hour, minute, second, zone = match.groups()
    offset = _ZONES.get(zone.lower()) if zone[0] not in "+-" else f"{zone[:3]}:{zone[3:]}"
    if offset is None or month.lower() not in _MONTHS:
        return f"no time: {text}"
    if len(year) == 2:
        year = f"{'19' if int(year) >= 69 else '20'}{year}"
    number = _MONTHS.index(month.lower()) + 1
    return f"{year}-{number:02d}-{int(day):02d}T{int(hour):02d}:{minute}:{second or '00'}{offset}"
