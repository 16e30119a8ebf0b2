"""A CSV file next to a pattern: UTF-8, with a header, each row as long as it."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

from trendlake.cep_core.errors import BadValueError, FileUnreadableError, Place
from trendlake.cep_core.yaml.source import Source

csv.field_size_limit(sys.maxsize)  # of the process: a file has a limit of its own


def beside(source: Source, name: str) -> Path:
    """The file `name` in the folder of a pattern's file; in the working directory, for a pattern that has no file."""
    return (Path(source.name).parent if source.text else Path()) / name


class CsvFile:
    """The cells of a file: `header`, which ends in `header_line`, and `rows`; `lines`: the line in which each begins.
    Lines of white space are no rows, before the header and, where it has several columns, after it; an empty line
    never is.

    Reading ends after `most` rows and one more, so that whoever asks can say that they are too many. Raises
    FileUnreadableError at `place` (also for a link to another folder, and a file of more than `most_bytes`), and
    BadValueError at its line for a text that is no CSV.
    """

    def __init__(self, path: Path, place: Place, most: int, most_bytes: int) -> None:
        self.path = path
        reader = csv.reader(io.StringIO(_text(path, place, most_bytes), newline=""), strict=True)
        self.rows: list[tuple[str, ...]] = []
        self.lines: list[int] = []
        try:
            self.header = next((cells for cells in reader if not _is_blank(cells)), [])
            self.header_line = end = reader.line_num
            for cells in reader:
                start, end = end + 1, reader.line_num
                if not cells or (len(self.header) > 1 and _is_blank(cells)):
                    continue
                if len(cells) != len(self.header):
                    message = f"{len(cells)} values, expected {len(self.header)} as in the header"
                    raise BadValueError(message, place=self.place(start))
                self.rows.append(tuple(cells))
                self.lines.append(start)
                if len(self.rows) > most:
                    return
        except csv.Error as error:
            raise BadValueError(f"not CSV: {error}", place=self.place(reader.line_num)) from None

    def place(self, line: int) -> Place:
        """The beginning of a line, counted from 1."""
        return Place(str(self.path), max(line, 1), 1)


def _is_blank(cells: list[str]) -> bool:
    """Whether a line is white space: one with a comma is a row, which may have too few cells."""
    return len(cells) < 2 and not "".join(cells).strip()


def _text(path: Path, place: Place, most_bytes: int) -> str:
    try:
        if path.resolve().parent != path.parent.resolve():
            raise FileUnreadableError(f"{path} is a link out of the pattern's folder", place=place)
        raw = path.read_bytes()
        if len(raw) > most_bytes:
            raise FileUnreadableError(f"{path} is larger than {most_bytes:,} bytes", place=place)
        return raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise FileUnreadableError(f"cannot read {path}: {error}", place=place) from None
