"""The types that `new source` proposes: a contract made of them reads the file back, each cell as it is."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.pipelines.authoring.scaffold import Roles, new_source
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.read_once import columns_of
from trendlake.pipelines.project.paths import Project

DOUBLE, TEXT, WHOLE = pa.float64(), pa.string(), pa.int64()


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2", ""], WHOLE),
        (["1", "8.5", "NA"], DOUBLE),
        (["1e3", "2"], DOUBLE),
        (["0.1", "0.30000000000000004", "nan"], DOUBLE),
        (["007", "8"], TEXT),
        (["-0", "1"], DOUBLE),
        (["12345678901234567890", "5"], TEXT),
        (["100000000000000000000", "5"], TEXT),
        (["100000000000000.07", "5"], pa.decimal128(18, 2)),
        (["12345678901234567890.5", "-7"], pa.decimal128(38, 1)),
        (["1" * 38 + ".5"], TEXT),
        (["1e400", "5"], TEXT),
        (["+5", "5"], TEXT),
        (["0x1F", "5"], TEXT),
        (["TRUE", "false"], pa.bool_()),
        (["1", "0"], WHOLE),
        (["true", "1"], TEXT),
        (["2026-01-05", "1500-02-28"], pa.date32()),
        (["2026-01-05", "2026-02-30"], TEXT),
        (["2026-01-05", "2026-01-05T10:00:00Z"], pa.timestamp("us", "UTC")),
        (["2026-01-05T10:00:00.0000001Z"], TEXT),
        (["NA", "null", ""], TEXT),
        (["NA", "DE"], TEXT),
        ([], TEXT),
    ],
)
def test_types_of_csv(tmp_path: Path, cells: list[str], kind: pa.DataType) -> None:
    path = tmp_path / "e.csv"
    path.write_text("id,v\n" + "".join(f"e,{cell}\n" for cell in cells))
    assert columns_of(path).field("v").type == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["5", "null"], WHOLE),
        (["5", "0.5"], DOUBLE),
        (["5.0"], DOUBLE),
        (["12345678901234567890"], TEXT),
        (["100000000000000.07"], pa.decimal128(18, 2)),
        (['"5"'], TEXT),
        (['"5"', "5"], TEXT),
        (['"2026-01-05"'], pa.date32()),
        (["true", "null"], pa.bool_()),
        (["null"], TEXT),
    ],
)
def test_types_of_json(tmp_path: Path, values: list[str], kind: pa.DataType) -> None:
    path = tmp_path / "e.json"
    path.write_text("".join(f'{{"id": 1, "v": {value}}}\n' for value in values))
    assert columns_of(path).field("v").type == kind


def test_json_of_two_kinds_is_refused(tmp_path: Path) -> None:
    """No type holds true and x as they are."""
    path = tmp_path / "e.json"
    path.write_text('{"v": true}\n{"v": "x"}\n')
    with pytest.raises(SourceFileError, match="column v: some values are true or false, and others are not"):
        columns_of(path)


NUMBERS = st.one_of(
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda value: format(value, "f")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["007", "-0", ".5", "5.", "00.5", "1e5", "NA", "", "9007199254740993", "9223372036854775808"]),
)
TEXTS = st.one_of(
    NUMBERS,
    st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.sampled_from(["true", "false", "NA", "null", "nan", "inf", "x", " 5", "1_0", "\u0661"]),
    st.text(st.characters(exclude_characters='\r\n",', exclude_categories=["Cs", "Cc", "Z"]), max_size=5),
)


@examples(150)
@given(columns=st.lists(st.one_of(st.lists(NUMBERS, min_size=1, max_size=4), st.lists(TEXTS, min_size=1, max_size=4))))
def test_the_proposed_contract_reads_the_file(tmp_path_factory: pytest.TempPathFactory, columns: Any) -> None:
    """Whatever cells a file has: its number is the cell's to the last digit, its text is the cell."""
    folder = tmp_path_factory.mktemp("proposed")
    rows = max(map(len, columns), default=1)
    names = [f"v{n}" for n in range(len(columns))]
    lines = [",".join(["id", "at", *names])]
    for row in range(rows):
        cells = [column[row] if row < len(column) else "" for column in columns]
        lines.append(",".join([f"e{row}", "2026-01-05", *cells]))
    path = folder / "e.csv"
    path.write_text("\n".join(lines) + "\n")
    project = Project(folder, folder / "state")
    new_source(project, "ev", columns_of(path), Roles("id", "at", constant="E"))
    table = read_file(path, load_contract(project.contract_path("ev")))
    for name, column in zip(names, columns, strict=True):
        for text, value in zip(column, table[name].to_pylist(), strict=False):
            assert _says(text, value), (text, value)


def _says(text: str, value: Any) -> bool:
    """Whether a value is what the cell says."""
    if value is None:
        return text in ("", "NA", "null")
    if isinstance(value, str):
        return value == text
    text = text.strip()
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, float):
        if text.lower() in ("nan", "inf"):
            return repr(value) == text.lower()
        return Decimal(repr(value)) == Decimal(text)
    if isinstance(value, int | Decimal):
        return Decimal(value) == Decimal(text)
    return str(value)[:10] == text[:10]


@pytest.mark.parametrize(
    ("kind", "proposed"),
    [
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.int8(), "tinyint"),
        (pa.float32(), "double"),
        (pa.decimal128(20, 2), "decimal(20,2)"),
    ],
)
def test_types_of_parquet(tmp_path: Path, kind: pa.DataType, proposed: str) -> None:
    """Numbers without a sign get a type that holds the largest of them."""
    project = Project(tmp_path, tmp_path / "state")
    columns = pa.schema([("id", pa.string()), ("at", pa.timestamp("us")), ("v", kind)])
    new_source(project, "ev", columns, Roles("id", "at", constant="E"))
    contract = load_contract(project.contract_path("ev"))
    assert {column.name: column.type for column in contract.columns}["v"] == proposed


def test_a_file_of_ten_thousand_kinds_of_rows(tmp_path: Path) -> None:
    """Types are those of all rows, not of the first ones."""
    path = tmp_path / "e.jsonl"
    path.write_text("".join(json.dumps({"v": n}) + "\n" for n in range(30_000)) + '{"v": 0.5}\n{"w": 1}\n')
    assert columns_of(path) == pa.schema([("v", DOUBLE), ("w", WHOLE)])
