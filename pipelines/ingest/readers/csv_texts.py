"""Texts of the CSV files that people open: broken rows to repair, and results. A spreadsheet shows them as they are,
and the file of repaired rows is read back exactly.

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula, and saves an empty text as no text. So a
text that is empty, or begins with one of `MARKED`, gets a `'` in front, and reading takes it off: `=1+1` -> `'=1+1`,
`'tis` -> `''tis`, the empty text -> `'`, NULL -> an empty cell. All other texts that are written by hand stay as they
are.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

MARKED = "=+\\-@\t\r\n'\uff1d\uff0b\uff0d\uff20"
"""First characters of what a spreadsheet takes for a formula, those of wide letters too, and the mark itself: a class
of a regular expression."""
TO_ESCAPE = rf"^(?:[{MARKED}]|$)"
ESCAPED = rf"^'(?:[{MARKED}]|$)"


def escaped(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The texts with a mark in front of those that need it."""
    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(pc.match_substring_regex(texts, TO_ESCAPE), marked, texts)


def unescaped(texts: pa.Array) -> pa.Array:
    """The texts without the mark that `escaped` has put in front of them."""
    return pc.if_else(pc.match_substring_regex(texts, ESCAPED), pc.utf8_slice_codeunits(texts, 1), texts)


def unescaped_name(name: str) -> str:
    """A column's name in the file's first line."""
    return str(unescaped(pa.array([name], pa.string()))[0].as_py()) if name else name


def write_csv(rows: pa.Table, out: Path | BytesIO) -> None:
    """Rows as CSV: texts in quotation marks and escaped, NULL as an empty cell. Raises pa.ArrowException for a column
    that CSV does not hold, OSError."""
    columns = {
        str(escaped(pa.array([name]))[0].as_py()): escaped(column) if pa.types.is_string(column.type) else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    pyarrow.csv.write_csv(pa.table(columns), out)
