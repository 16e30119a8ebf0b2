"""CSV files with cells of any size, blank lines anywhere and line breaks in quotation marks: what is read, and which
cell an error names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.reference import csv_rows
from tests.support.event_files import contract_of
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers import csv_file
from trendlake.pipelines.ingest.readers.csv_file import BLOCK, ROW
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.read_once import columns_of

AT = "2026-01-05T00:00:00Z"
COLUMNS = ("id", "at", "s", "v")
SMALL = 64
"""The bytes of a row in random files: so that many are longer."""


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    return contract_of(tmp_path_factory.mktemp("ev"), {"s": "string", "v": "int"})


@dataclass(frozen=True)
class Drawn:
    """A file; what is wrong with it, and in which column of which row, from 0 (-1: the header)."""

    content: bytes
    fault: str
    row: int
    column: str


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@st.composite
def files(draw: st.DrawFn) -> Drawn:
    """A file with at most one fault, and with blank lines wherever a row may begin."""
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    blanks = st.lists(st.sampled_from(["", " ", "\t ", "\u3000"]), max_size=2)
    fault = draw(st.sampled_from(["none", "none", "value", "cells", "long", "open", "bytes"]))
    count = draw(st.integers(0 if fault == "none" else 1, 6))
    bad = count - 1 if fault == "open" else draw(st.integers(0, max(0, count - 1)))
    column, lines = draw(st.sampled_from(["id", "s"])), [*draw(blanks), ",".join(COLUMNS)]
    for number in range(count):
        lines += draw(blanks)
        cells = {"id": quoted(f"e{number}"), "at": AT, "s": _text(draw), "v": draw(st.sampled_from(["", "7", '"7"']))}
        if number == bad and fault == "value":
            column, cells["v"] = "v", draw(st.sampled_from(["x", '"x\ny"']))
        elif number == bad and fault == "cells":
            column = ""
            cells |= draw(st.sampled_from([{"v": "1,2"}, {"v": '1,"a\nb"'}]))
        elif number == bad and fault == "long":
            size = draw(st.integers(SMALL + 1, 9 * SMALL))
            cells[column] = quoted(draw(st.sampled_from(["a", '"', "\n", "\u00e9"])) * size)
        elif number == bad and fault == "open":
            column, cells["v"] = "v", '"1'
        elif number == bad and fault == "bytes":
            cells[column] = quoted("a\nb\ud800")
        lines.append(",".join(cells.values()))
    lines += [] if fault == "open" else draw(blanks)
    text = end.join(lines) + draw(st.sampled_from(["", end])) * (fault != "open")
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return Drawn(mark + text.encode(errors="surrogatepass"), fault, bad, column)


def _text(draw: st.DrawFn) -> str:
    """A cell: quoted, or as it is where it may be; a quotation mark inside is a character then."""
    text = draw(st.text('ab ,"\n\r\u00e9\U0001f600', max_size=6))
    plain = not set(text) & set(",\r\n") and text[:1] != '"'
    return text if plain and draw(st.booleans()) else quoted(text)


def read(folder: Path, content: bytes, contract: Contract) -> tuple[list[tuple[str | None, str | None]], str]:
    """The ids and texts of a file, and the message of its error."""
    path = folder / "e.csv"
    path.write_bytes(content)
    try:
        table = read_file(path, contract)
    except SourceFileError as error:
        return [], error.message
    return list(zip(table["id"].to_pylist(), table["s"].to_pylist(), strict=True)), ""


@given(files())
@pytest.mark.more_in_chaos
@examples(500)
@pytest.mark.random
def test_as_read_character_by_character(contract: Contract, drawn: Drawn) -> None:
    """The same rows; of a file with a fault the error names the line in which its row begins, and its column."""
    text = drawn.content.decode("utf-8-sig", errors="replace")
    _, *rows = [row for row in csv_rows.rows_of(text) if row.text.strip()]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "ROW", SMALL)
        patch.setattr(csv_file, "BLOCK", 4 * SMALL)
        rows_read, message = read(Path(folder), drawn.content, contract)
    if drawn.fault == "none":
        assert message == ""
        assert rows_read == [
            (row.cells[0][0], row.cells[2][0] if row.cells[2][0] or row.cells[2][1] else None) for row in rows
        ]
    else:
        place = f"e.csv, line {rows[drawn.row].line}" + (f", column {drawn.column}" if drawn.column else "")
        assert f"{place}:" in message


SIZES = [200_000, ROW - 200, ROW + 1, 3 * ROW, BLOCK + 5, 20 << 20]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("before", [0, 1, 70_000])
def test_a_large_cell_anywhere(tmp_path: Path, contract: Contract, size: int, before: int) -> None:
    """It is read, or refused by line and column, wherever it stands: in the first row, in the second, behind a block;
    and a bad cell behind one that is read is what the error is about."""
    rows = [f"e{n},{AT},{'a' * 10},1\n" for n in range(before)]
    text = "id,at,s,v\n" + "".join(rows) + f"large,{AT},{'b' * size},2\n"
    rows_read, message = read(tmp_path, text.encode(), contract)
    if size > ROW:
        assert f"e.csv, line {before + 2}, column s: the row has more than 1 MB" in message
        return
    assert len(rows_read) == before + 1
    assert len(rows_read[-1][1] or "") == size
    _, message = read(tmp_path, f"{text}bad,{AT},c,x\n".encode(), contract)
    assert f"e.csv, line {before + 3}, column v: 'x' is no whole number" in message


def test_a_large_cell_that_is_not_asked_for(tmp_path: Path, contract: Contract) -> None:
    """A column that the contract does not have counts too; and so does the header."""
    path = tmp_path / "e.csv"
    path.write_text(f"id,at,s,v,note\ne1,{AT},a,1,{'b' * (ROW + 1)}\n")
    with pytest.raises(SourceFileError, match=r"e\.csv, line 2, column note: the row has more than 1 MB"):
        read_file(path, contract)
    with pytest.raises(SourceFileError, match=r"e\.csv, line 2, column note: the row has more than 1 MB"):
        columns_of(path)
    path.write_text(f"id,at,s,v,{'n' * (BLOCK + 1)}\ne1,{AT},a,1,b\n")
    with pytest.raises(SourceFileError, match=r"e\.csv, line 1: the row has more than 1 MB"):
        read_file(path, contract)


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (b"\n\n  \nid,at,s,v\n\n\t\ne1,2026-01-05,a,1\n \n\n", ["e1"]),
        (b"\xef\xbb\xbf\r\n\r\nid,at,s,v\r\n\r\ne1,2026-01-05,a,1", ["e1"]),
        (b"\nid,at,s,v\n\n \n", []),
        (b"\nid,at,s,v", []),
    ],
)
def test_blank_lines(tmp_path: Path, contract: Contract, content: bytes, ids: Sequence[str]) -> None:
    """Before the header, between rows, at the end, with any line ends: they are no rows."""
    rows_read, message = read(tmp_path, content, contract)
    assert (message, [row[0] for row in rows_read]) == ("", list(ids))
    assert columns_of(tmp_path / "e.csv").names == list(COLUMNS)


def test_a_file_of_blank_lines_is_empty(tmp_path: Path, contract: Contract) -> None:
    """As one without a byte."""
    _, message = read(tmp_path, b"\n  \n\r\n", contract)
    assert re.search(r"e\.csv is empty", message)
