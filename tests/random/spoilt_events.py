"""Files of events as a stranger, a slip or an attacker may leave them, and what must come of each: rows, or one error
that names the file. Rows that are read have the contract's types, and what is written to be repaired is read back.
"""

from __future__ import annotations

import gzip
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.random.bad_files import PATIENCE, deadline
from tests.support.event_files import TYPES, contract_of
from trendlake.pipelines.authoring.scaffold import Roles
from trendlake.pipelines.authoring.source_file import TimeOptions, new_source_of_file
from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import ContractErrors, ProjectError, SourceFileError
from trendlake.pipelines.ingest.readers.csv_texts import write_csv
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.project.paths import Project

COLUMNS = {f"v{number}": kind for number, kind in enumerate(TYPES)}
NEW = "drawn"
"""The source that a file is taken on as."""
NAMES = ("id", "at", *COLUMNS)


@dataclass(frozen=True)
class EventsFile:
    """A file's name and its bytes."""

    name: str
    content: bytes


CELLS = st.sampled_from(
    [
        "",
        "NA",
        "null",
        "None",
        "\\N",
        "-",
        "=1+1",
        "+1",
        "-1",
        "@x",
        "'x",
        "'",
        "''",
        "\t1",
        "5",
        "5.0",
        "007",
        "1e5",
        "1e400",
        "0x1F",
        "12345678901234567890",
        "100000000000000.07",
        "9" * 400,
        "1e999",
        "-0",
        ".5",
        "5.",
        "nan",
        "inf",
        "-Infinity",
        "true",
        "False",
        "2026-01-05",
        "1500-02-29",
        "0000-01-01",
        "9999-12-31T23:59:59.999999-14:00",
        "2026-01-05T09:00:00Z",
        "2026-01-05 09:00:00.1234567",
        "2026-01-05T24:00:00",
        "1767571200",
        "x" * 300,
        "\x00",
        "\u202e",
        "\U0001f600",
        "é",
    ]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
GOOD = {
    "string": ["", "NA", "x", "=1+1", "'", "-", "\U0001f600", 'a"b', "a\nb"],
    "boolean": ["true", "FALSE", "1", ""],
    "date": ["2026-01-05", "1500-02-28", "null"],
    "timestamp": ["2026-01-05T09:00:00Z", "1582-10-10 01:02:03.000004"],
    "tinyint": ["-128", "NA"],
    "smallint": ["7", ""],
    "int": ["007", ""],
    "bigint": ["9223372036854775807", "NULL"],
    "float": ["0.1", "nan"],
    "double": ["-0", "inf", "1e-400"],
    "decimal(20,2)": ["100000000000000.07", "5", ".5"],
}
"""Cells that the types take."""
KINDS = {"id": "string", "at": "timestamp"} | COLUMNS
HEADERS = st.sampled_from(
    [*NAMES, "", " ", "ID", "V1", "sel ect", "a,b", "a\nb", "=1", "'id", "quarantine_id", "\ufeffid"]
)


@st.composite
def _header(draw: DrawFn) -> list[str]:
    """The contract's columns, now and then with one doubled, dropped, added or renamed."""
    names = list(NAMES)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(names) - 1))
        what = draw(st.sampled_from(["double", "drop", "add", "rename", "swap"]))
        if what == "double":
            names.append(names[at])
        elif what == "drop" and len(names) > 1:
            del names[at]
        elif what == "add":
            names.insert(at, draw(HEADERS))
        elif what == "rename":
            names[at] = draw(HEADERS)
        else:
            names[0], names[at] = names[at], names[0]
    return names


def _cells(draw: DrawFn, names: list[str]) -> list[str]:
    """A row: of cells that fit their columns, now and then one that need not."""
    cells = [draw(st.sampled_from(GOOD[KINDS.get(name, "string")])) for name in names]
    if draw(st.integers(0, 3)) == 0:
        cells[draw(st.integers(0, len(cells) - 1))] = draw(CELLS)
    return cells


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _as_needed(cell: str) -> str:
    return _quoted(cell) if set(cell) & set('",;\t\r\n') else cell


@st.composite
def csv_files(draw: DrawFn) -> EventsFile:
    """Cells of any sort, quoted or not, ragged rows, delimiters and line ends of others."""
    names = draw(_header())
    rows = [names] + [_cells(draw, names) for _ in range(draw(st.integers(0, 3)))]
    if draw(st.integers(0, 7)) == 0:
        rows[-1] = rows[-1][1:]
    delimiter, end = draw(st.sampled_from([",", ",", ",", ";", "\t"])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quotes = draw(st.sampled_from([_quoted, str, _as_needed, _as_needed]))
    text = end.join(delimiter.join(map(quotes, row)) for row in rows) + draw(st.sampled_from([end, ""]))
    return _bytes(draw, "e.csv", text.encode())


def _deep(depth: int, what: str) -> str:
    return '{"a":' * depth + "1" + "}" * depth if what == "{" else "[" * depth + "]" * depth


VALUES = st.one_of(
    CELLS.map(json.dumps),
    st.sampled_from(
        [
            "5",
            "5.0",
            "1e400",
            "12345678901234567890",
            "-0",
            "true",
            "null",
            "NaN",
            "-Infinity",
            "9" * 5000,
            '"\\ud800"',
            '"\\u0000"',
            "[]",
            "{}",
            "01",
            "'x'",
            '"[[[["',
            '"\\"[["',
            "tru",
        ]
    ),
    st.builds(_deep, st.sampled_from([1, 49, 50, 60, 1000, 100_000]), st.sampled_from("[{")),
)


@st.composite
def json_files(draw: DrawFn) -> EventsFile:
    """Objects a line with values of any sort, keys that are missing or there twice, and nesting."""
    lines = []
    for _ in range(draw(st.integers(0, 3))):
        names = draw(_header())
        values = [json.dumps(cell) for cell in _cells(draw, names)]
        if draw(st.integers(0, 2)) == 0:
            values[draw(st.integers(0, len(values) - 1))] = draw(VALUES)
        lines.append(
            "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in zip(names, values, strict=True)) + "}"
        )
    extra = draw(st.sampled_from(["", "", "", "", "\n", "[1]", "[" * 100_000, "1", "\ufeff", "{", "null"]))
    return _bytes(draw, draw(st.sampled_from(["e.json", "e.jsonl"])), "\n".join([*lines, extra]).encode())


ARRAYS = (
    pa.array([1], pa.int8()),
    pa.array([2**63], pa.uint64()),
    pa.array([0.1]),
    pa.array([float("nan")], pa.float32()),
    pa.array(["x"]),
    pa.array(["NA"]).dictionary_encode(),
    pa.array([True]),
    pa.array([b"\xff"]),
    pa.array([[1]]),
    pa.array([{"a": 1}]),
    pa.array([None]),
    pa.array([1], pa.timestamp("ns")),
    pa.array([2**62], pa.timestamp("us")),
    pa.array([0], pa.timestamp("s", "Asia/Kolkata")),
    pa.array([-(2**31)], pa.int32()).cast(pa.date32()),
    pa.array([0], pa.timestamp("us", "Mars/Olympus")),
    pa.array([[10**15]], pa.list_(pa.timestamp("s"))),
    pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xe9"]).buffers()),
    pa.array(["2026-01-05"]),
    pa.array([1], pa.duration("s")),
    pa.array([1], pa.time64("us")),
    pa.array([12345], pa.int64()).cast(pa.decimal128(38, 0)),
)


@st.composite
def parquet_files(draw: DrawFn) -> EventsFile:
    """Columns of any type."""
    names = draw(_header())
    sink = pa.BufferOutputStream()
    columns = [draw(st.sampled_from(ARRAYS)) for _ in names]
    pyarrow.parquet.write_table(pa.table(columns, names=names), sink)
    return _bytes(draw, "e.parquet", sink.getvalue().to_pybytes())


def _bytes(draw: DrawFn, name: str, content: bytes) -> EventsFile:
    """Now and then with a bit flipped, the end missing, in another encoding or compressed."""
    what = draw(st.sampled_from(["", "", "", "flip", "cut", "utf-16", "bom"]))
    if what == "flip" and content:
        at = draw(st.integers(0, len(content) - 1))
        content = content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
    elif what == "cut":
        content = content[: draw(st.integers(0, len(content)))]
    elif what == "utf-16" and not name.endswith("parquet"):
        content = content.decode().encode("utf-16")
    elif what == "bom":
        content = b"\xef\xbb\xbf" + content
    if name == "e.csv" and draw(st.integers(0, 3)) == 0:
        content = gzip.compress(content)
        return EventsFile("e.csv.gz", content[: draw(st.sampled_from([len(content), len(content) - 4]))])
    return EventsFile(name, content)


EVENT_FILES = csv_files() | json_files() | parquet_files()


def contract_in(folder: Path) -> Contract:
    """A contract with a column of each type, one of which has words of its own for NULL."""
    own = {"v0": {"customProperties": [{"property": "nullWords", "value": ["-", "NA"]}]}}
    return contract_of(folder, COLUMNS, own)


def checked_events(contract: Contract, folder: Path, file: EventsFile) -> bool:
    """Read the file as `ingest`, `try`, `quarantine replay` and `new source` do; whether any of them refused it. Raises
    AssertionError for an error that does not help and for a row that does not come back, TooSlow, and whatever else
    than a SourceFileError was raised."""
    path = folder / file.name
    path.write_bytes(file.content)
    refused = False
    with deadline(PATIENCE), warnings.catch_warnings():
        warnings.simplefilter("error")
        for ways in ({"others": False}, {"also": ("quarantine_id",), "repaired": True}, None):
            try:
                if ways is None:
                    _take_on(folder, path)
                else:
                    _reread(contract, folder, read_file(path, contract, **ways))
            except SourceFileError as error:
                refused = True
                _helps(error, path)
    return refused


def _take_on(folder: Path, path: Path) -> None:
    """By the contract that `new source` writes for it, a file is read."""
    project = Project(folder, folder / "state")
    project.contracts.mkdir(exist_ok=True)
    (project.contracts / f"{NEW}.yaml").unlink(missing_ok=True)
    try:
        written, _ = new_source_of_file(project, NEW, path, Roles("id", "at", constant="E"), TimeOptions())
    except (ProjectError, ContractErrors):
        return
    try:
        read_file(path, load_contract(written))
    except SourceFileError as error:
        raise AssertionError(f"the contract is wrong: {error}") from error


def _helps(error: SourceFileError, path: Path) -> None:
    assert str(path) in error.message
    assert len(error.message) < 3000
    for line in str(error).split("\n"):
        assert line.isprintable(), f"not printable: {line!r}"


def _reread(contract: Contract, folder: Path, table: pa.Table) -> None:
    """The types are the contract's; written to be repaired, the rows come back as they are."""
    for column in contract.columns:
        assert table.schema.field(column.name).type == arrow_type(column.type)
    broken = folder / "broken.csv"
    write_csv(table, broken)
    back = read_file(broken, contract, also=("quarantine_id",), repaired=True)
    assert repr(back.to_pylist()) == repr(table.to_pylist())
