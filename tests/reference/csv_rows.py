"""CSV read one character after the other (RFC 4180; a quotation mark inside an unquoted cell is a character)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """Cells with whether each was quoted; the line in which the row begins, from 1; the text of it as it stands."""

    line: int
    cells: list[tuple[str, bool]] = field(default_factory=list)
    text: str = ""


def rows_of(text: str) -> list[Row]:
    """All rows but empty lines. A file that ends inside quotation marks ends its row."""
    rows: list[Row] = []
    at, line = 0, 1
    while at < len(text):
        row, start = Row(line), at
        at, line = _row(text, at, line, row)
        row.text = text[start:at]
        if row.text.strip("\r\n"):
            rows.append(row)
    return rows


def _row(text: str, at: int, line: int, row: Row) -> tuple[int, int]:
    """Reads a row from `at`: the place after it, and its line."""
    while True:
        quoted, cell = text[at : at + 1] == '"', ""
        inside, at = quoted, at + quoted
        while at < len(text):
            char = text[at]
            if inside and char == '"':
                if text[at + 1 : at + 2] != '"':
                    inside = False
                    at += 1
                    continue
                at += 1
            elif not inside and char in ",\r\n":
                break
            elif char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
                line += 1
            cell, at = cell + char, at + 1
        row.cells.append((cell, quoted))
        if at == len(text) or text[at] != ",":
            return at + (2 if text[at : at + 2] == "\r\n" else at < len(text)), line + 1
        at += 1
