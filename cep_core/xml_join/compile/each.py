"""`each`: rows that fill the fields of queries, `{field}` -> the row's text. A field is filled once: braces in a row's
text are text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from trendlake.cep_core.errors import BadValueError, Place, TrendlakeError, did_you_mean
from trendlake.cep_core.yaml.csv_file import CsvFile, beside
from trendlake.cep_core.yaml.source import Source

MOST_QUERIES = 100_000
"""Queries of a file."""
MAX_CSV = 256 * 1024 * 1024
"""Bytes of a CSV file."""
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

Row = tuple[str | None, ...]
"""The value of each field; None where a row has no such field."""


@dataclass(frozen=True)
class Table:
    """The fields of all rows, the rows, and how to speak of row i."""

    fields: tuple[str, ...]
    rows: Sequence[Row]
    origin: str = "row"

    def place_of(self, number: int) -> str:
        """`row 3`, counted from 1; of a CSV file the line that it begins in is not known: the record is."""
        return f"{self.origin} {number + 1}"

    def values(self, row: Row) -> Mapping[str, str]:
        """A row's values by field, those that it has."""
        return {field: value for field, value in zip(self.fields, row, strict=True) if value is not None}


class FillError(Exception):
    """A field that cannot be filled."""

    def __init__(self, error: TrendlakeError, offset: int, width: int) -> None:
        super().__init__(str(error))
        self.error, self.offset, self.width = error, offset, width


def read_each(value: Any, source: Source) -> Table:
    """The rows of `each`. Raises TrendlakeError with its place."""
    place = source.place(("each",))
    if isinstance(value, str):
        return _from_csv(value, source, place)
    if not isinstance(value, list):
        raise BadValueError("each: expected a list of mappings, or the name of a CSV file", place=place)
    if not value:
        raise BadValueError("each: the list is empty, so that there is no query", place=place)
    for i, row in enumerate(value):
        if not isinstance(row, Mapping) or not row:
            raise BadValueError("each: a row is a mapping of fields to values", place=source.place(("each", i)))
        for name, cell in row.items():
            if isinstance(cell, bool) or not isinstance(cell, str | int):
                message = f"each: '{name}' is neither a text nor a whole number; write it in quotes"
                raise BadValueError(message, place=source.place(("each", i, name)))
    fields = dict.fromkeys(name for row in value for name in row)
    rows = [tuple(str(row[name]) if name in row else None for name in fields) for row in value]
    return Table(tuple(map(str, fields)), rows)


def _from_csv(name: str, source: Source, place: Place) -> Table:
    if not name or Path(name).name != name:
        raise BadValueError("each: expected the name of a CSV file in the pattern's own folder", place=place)
    file = CsvFile(beside(source, name), place, MOST_QUERIES, MAX_CSV)
    if not file.header or len(set(file.header)) < len(file.header) or "" in file.header:
        raise BadValueError("the header names each field once", place=file.place(1))
    if len(file.rows) > MOST_QUERIES:
        raise BadValueError(f"{file.path} has more than {MOST_QUERIES:,} rows", place=place)
    if not file.rows:
        raise BadValueError(f"{file.path} has no rows, so that there is no query", place=place)
    return Table(tuple(file.header), file.rows, f"{name}, record")


def fields_of(node: Any) -> set[str]:
    """The fields that the texts of a query name."""
    if isinstance(node, str):
        return {match[1] for match in _FIELD.finditer(node) if match[1] is not None}
    if isinstance(node, Mapping):
        return {field for pair in node.items() for one in pair for field in fields_of(one)}
    if isinstance(node, list):
        return {field for one in node for field in fields_of(one)}
    return set()


def fill(text: str, row: Mapping[str, str]) -> str:
    """`'{what}s {{x}}'` -> `'titles {x}'`. Raises FillError."""
    if "{" not in text and "}" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        token = match[0]
        if token in ("{{", "}}"):
            return token[0]
        if match[1] is None:
            error = BadValueError(f"a single '{token}'", hint="'{{' and '}}' stand for braces")
            raise FillError(error, match.start(), 1)
        if match[1] not in row:
            error = BadValueError(f"'each' has no field '{match[1]}'", hint=did_you_mean(match[1], row))
            raise FillError(error, match.start(), len(token))
        return row[match[1]]

    return _FIELD.sub(value, text)


def filled(node: Any, row: Mapping[str, str]) -> Any:
    """A query with all its texts and names filled. Raises FillError."""
    if isinstance(node, str):
        return fill(node, row)
    if isinstance(node, Mapping):
        return {fill(str(key), row): filled(value, row) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(one, row) for one in node]
    return node


def picker(node: Any, table: Table) -> Callable[[Row], object]:
    """The values of the fields that the texts of a query name, of those that there are, as a function of a row."""
    used = fields_of(node)
    places = [place for place, field in enumerate(table.fields) if field in used]
    return itemgetter(*places) if places else lambda row: None


def namer(text: str, table: Table) -> Callable[[Row], str]:
    """`fill(text, ...)` as a function of a row. A hundred thousand names are filled: as a format where that can be."""
    pieces, places, end = list[str](), list[int](), 0
    for match in _FIELD.finditer(text):
        if match[1] not in table.fields:
            return lambda row: fill(text, table.values(row))  # a brace, or a mistake
        pieces.append(text[end : match.start()])
        places.append(table.fields.index(match[1]))
        end = match.end()
    if not places:
        return lambda row: text
    form = "%s".join(piece.replace("%", "%%") for piece in (*pieces, text[end:]))
    pick = itemgetter(*places)

    def name(row: Row) -> str:
        values = pick(row)
        if None in row:
            return fill(text, table.values(row))
        filled_in: str = form % values
        return filled_in

    return name
