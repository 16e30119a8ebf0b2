"""The rows of a CSV file one after the other, as Arrow tells them apart: slow, and it knows where a row is."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

csv.field_size_limit(sys.maxsize)  # of the process: `rows_of` has a limit of its own


@dataclass(frozen=True)
class Row:
    """A row as it is in the file, the `line` in which it begins, and its cells. `torn`: it is longer than was asked
    for, and this is its beginning."""

    text: str
    line: int
    cells: list[str]
    torn: bool

    @property
    def bytes(self) -> bytes:
        return self.text.encode(errors="surrogateescape")

    @property
    def blank(self) -> bool:
        """Whether the row is a line of white space: of a file with several columns it is none."""
        return not self.text.strip()

    @property
    def open(self) -> bool:
        """Whether a quotation mark has no pair: the file ends in its cell."""
        try:
            list(csv.reader(io.StringIO(self.text, newline=""), strict=True))
        except csv.Error as error:
            return "unexpected end of data" in str(error)
        return False


def rows_of(text: TextIO, most: int) -> Iterator[Row]:
    """The rows, empty lines too. `text`: UTF-8, other bytes as half surrogate pairs, line ends as they are. `most`:
    characters of a row; the first longer one is torn, and the last."""
    held: list[str] = []
    torn = False

    def lines() -> Iterator[str]:
        nonlocal torn
        size = 0
        while not torn and (line := text.readline(most + 1)):
            if not held:
                size = 0
            held.append(line)
            size += len(line)
            torn = size > most
            yield line

    number = 1
    for cells in csv.reader(lines()):
        yield Row("".join(held), number, cells, torn)
        number += len(held)
        held.clear()
