"""The CSV file that broken rows are repaired in: read back, every cell that nobody edited is what it was."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.support.event_files import TYPES, contract_of
from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.readers.csv_texts import escaped, unescaped, unescaped_name, write_csv
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.replay import ID

pytestmark = pytest.mark.random

ODD = (
    "",
    "'",
    "''",
    "'=1",
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    "NA",
    "null",
    "NULL",
    "nan",
    '"',
    '""',
    "a,b",
    "a\r\nb",
    " x ",
    "\u200b",
    "\uff1dx",
    "\x00",
    "'tis",
    "\ufeffx",
    "\U0001f600",
    "1e5",
    "007",
    "#N/A",
)
TEXTS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
MOMENTS = st.datetimes(timezones=st.just(UTC))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats() | st.sampled_from([0.1 + 0.2, -0.0, 5e-324, 1.7976931348623157e308]),
    "decimal(20,2)": st.decimals(-(10**17), 10**17, places=2),
    "decimal(38,20)": st.decimals(-(10**17), 10**17, places=20),
    "boolean": st.booleans(),
    "date": st.dates() | st.just(date(1582, 10, 10)),
    "timestamp": MOMENTS | st.just(datetime(1582, 10, 10, 1, 2, 3, 123457, UTC)),
}
assert VALUES.keys() > set(TYPES)
COLUMNS = {f"c_{number}": kind for number, kind in enumerate(VALUES)}


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    """A column of each type; words that mean NULL in files, which a repaired text may be all the same."""
    return contract_of(tmp_path_factory.mktemp("ev"), COLUMNS, nullWords=["NA", "x", "=1+1"])


ROWS = st.fixed_dictionaries(
    {"id": TEXTS, "at": MOMENTS, "reason": TEXTS} | {name: st.none() | VALUES[kind] for name, kind in COLUMNS.items()}
)


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {ID: "string", "reason": "string", "id": "string", "at": "timestamp"} | COLUMNS
    columns = {ID: [f"{number:016x}" for number in range(len(rows))]}
    columns |= {name: [row[name] for row in rows] for name in kinds if name != ID}
    return pa.table({name: pa.array(columns[name], arrow_type(kind)) for name, kind in kinds.items()})


def same(one: Any, other: Any) -> bool:
    """Equal to the bit: 0.0 is not -0.0; one NaN is another."""
    return repr(one) == repr(other)


@examples(150)
@given(rows=st.lists(ROWS, min_size=1, max_size=5))
def test_what_nobody_edits_stays(contract: Contract, tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    """All types, odd texts, NULL beside the empty text, days before 1582, the last microsecond."""
    table = as_table(rows)
    path = tmp_path_factory.mktemp("repair") / "broken.csv"
    write_csv(table, path)
    back = read_file(path, contract, also=(ID,), repaired=True)
    wanted = table.select([*back.column_names]).to_pylist()
    for row, expected in zip(back.to_pylist(), wanted, strict=True):
        for name, value in expected.items():
            assert same(row[name], value), (name, row[name], value)
    _no_formulas(path)
    # as a spreadsheet would save it again: quotation marks only where they are needed
    with path.open(newline="") as file:
        cells = list(csv.reader(file))
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(cells)
    path.write_text(text.getvalue(), newline="")
    assert same(read_file(path, contract, also=(ID,), repaired=True).to_pylist(), back.to_pylist())


def _no_formulas(path: Path) -> None:
    """No cell but a number's begins as a formula does."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    for row in rows:
        for name, cell in zip(header, row, strict=True):
            if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
                assert COLUMNS.get(name, "string") not in ("string", "boolean", "date", "timestamp"), cell
                Decimal(cell)


@examples(300)
@given(texts=st.lists(st.none() | TEXTS))
def test_the_mark_comes_off_again(texts: list[str | None]) -> None:
    array = pa.array(texts, pa.string())
    assert unescaped(escaped(array)).to_pylist() == texts
    assert [text if text is None else unescaped_name(text) for text in escaped(array).to_pylist()] == texts


@pytest.mark.parametrize(
    ("written", "meant"), [("'tis", "'tis"), ("''tis", "'tis"), ("'=1", "=1"), ("=1", "=1"), ("'", ""), ("'x'", "'x'")]
)
def test_what_is_written_by_hand(written: str, meant: str) -> None:
    """A mark comes off only where `escaped` would have put it."""
    assert unescaped(pa.array([written])).to_pylist() == [meant]


def test_only_the_edited_cell_changes(contract: Contract, tmp_path: Path) -> None:
    """NA, null, the empty text and none beside a cell that is corrected."""
    place = next(name for name, kind in COLUMNS.items() if kind == "string")
    empty = dict.fromkeys(COLUMNS) | {"at": datetime(2026, 1, 5, tzinfo=UTC), "reason": "place_known"}
    table = as_table([empty | {"id": f"e{n}", place: text} for n, text in enumerate(("NA", "zz", "", None, "=1"))])
    path = tmp_path / "broken.csv"
    write_csv(table, path)
    path.write_text(path.read_text().replace('"zz"', '"x"'))
    back = read_file(path, contract, also=(ID,), repaired=True)
    assert back[place].to_pylist() == ["NA", "x", "", None, "=1"]
    assert back.drop_columns([place]).equals(table.select(back.column_names).drop_columns([place]))
