"""Files of JSON objects, one a line, a block of rows at a time. Numbers stay as they are written: an id of twenty
digits, or a decimal, is never read as a double."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.cells import Cells
from trendlake.pipelines.ingest.readers.csv_file import Block
from trendlake.pipelines.ingest.readers.unpacking import open_bytes

LINE = 8 << 20
"""Bytes of a line at most."""
ROWS = 20_000
"""Rows, and BYTES of lines, after which a block ends."""
BYTES = 4 << 20
DEPTH = 50
"""Lists and objects within each other."""
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
HINT = "a .json or .jsonl file has one object a line"


class Number(str):
    """A number of JSON as it is written."""


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKeyError(next(name for name in names if names.count(name) > 1))
    return document


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=Number)


def too_deep(line: bytes, most: int = DEPTH) -> bool:
    """Whether brackets outside of strings are nested deeper than `most`; looked at before any parser that recurses."""
    if line.count(b"[") + line.count(b"{") <= most:
        return False
    depth = 0
    for bracket in BRACKET.finditer(STRING.sub(b"", line)):
        depth += 1 if bracket[0] in (b"[", b"{") else -1
        if depth > most:
            return True
    return False


class JsonLines:
    """`names`: the keys of all objects read so far, in the order of their first appearance."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []
        self._lines: list[int] = []
        self._before = 0

    def blocks(self, words: Mapping[str, Sequence[str]] | None) -> Iterator[Block]:
        """The columns that are keys of `words`, or all; what an object does not say is NULL. Raises SourceFileError."""
        seen: dict[str, None] = {}
        for rows in self._rows():
            for row in rows:
                if not seen.keys() >= row.keys():
                    seen.update(dict.fromkeys(row))
            self.names = list(seen)
            wanted = self.names if words is None else list(words)
            yield len(rows), {name: self._cells(name, [row.get(name) for row in rows]) for name in wanted}
            self._before += len(rows)

    def where(self, rows: Sequence[int]) -> list[str]:
        """Where rows number `rows` (from 0), of the block that came last, stand."""
        return [f"line {self._lines[row - self._before]}" for row in rows]

    def _rows(self) -> Iterator[list[dict[str, Any]]]:
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        size = number = 0
        with open_bytes(self.path) as file:
            while line := file.readline(LINE + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.isspace():
                    continue
                rows.append(self._row(line, number))
                lines.append(number)
                size += len(line)
                if len(rows) == ROWS or size > BYTES:
                    self._lines = lines
                    yield rows
                    rows, lines, size = [], [], 0
        self._lines = lines
        if rows:
            yield rows

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        place = f"{self.path}, line {number}"
        if len(line) > LINE:
            raise SourceFileError(f"{place}: longer than {LINE >> 20} MB", hint=HINT)
        if too_deep(line):
            raise SourceFileError(f"{place}: lists and objects nested deeper than {DEPTH}", hint=HINT)
        try:
            row = DECODER.decode(line.decode("utf-8"))
        except json.JSONDecodeError as error:
            raise SourceFileError(f"{place}, column {error.colno}: not JSON: {error.msg}", hint=HINT) from None
        except UnicodeDecodeError as error:
            raise SourceFileError(f"{place}: not UTF-8: {error.reason}", hint="save the file as UTF-8") from None
        except _RepeatedKeyError as error:
            raise SourceFileError(f"{place}: the key '{error}' is there twice", hint="leave one of them") from None
        if not isinstance(row, dict):
            raise SourceFileError(f'{place}: not an object, such as {{"id": "e1"}}', hint=HINT)
        return row

    def _cells(self, name: str, values: list[Any]) -> tuple[Cells, ...]:
        """The column's texts, numbers and truth values, each with NULL in the rows of the others."""
        kinds = {type(value) for value in values} - {type(None)}
        for kind in kinds & {dict, list}:
            row = next(row for row, value in enumerate(values) if type(value) is kind)
            what = "a list" if kind is list else "an object"
            raise SourceFileError(
                f"{self.path}, line {self._lines[row]}, column {name}: {what} is no value of a column"
            )
        cells = []
        for kind, stored in ((str, pa.string()), (Number, pa.string()), (bool, pa.bool_())):
            if kind in kinds:
                part = values if len(kinds) == 1 else [value if type(value) is kind else None for value in values]
                cells.append(Cells(self._array(name, part, stored), literal=kind is Number))
        return tuple(cells) or (Cells(pa.nulls(len(values))),)

    def _array(self, name: str, values: list[Any], kind: pa.DataType) -> pa.Array:
        try:
            return pa.array(values, kind)
        except UnicodeEncodeError:
            row = next(row for row, value in enumerate(values) if value and re.search("[\ud800-\udfff]", value))
            message = f"{self.path}, line {self._lines[row]}, column {name}: half of a surrogate pair is no character"
            raise SourceFileError(message) from None
