"""Files of events, read into a contract's types: each cell as it is, or a refusal that names file, line and column."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.event_files import TYPES, WHOLE, contract_of
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import ContractErrors, SourceFileError
from trendlake.pipelines.ingest.readers import json_lines, parquet_file, spool, unpacking
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.read_once import read_once

AT = "2026-01-05T00:00:00Z"
Read = Callable[..., Any]


def csv(folder: Path, text: str | bytes, name: str = "e.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture(scope="module")
def contracts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Contract]:
    """Of each type one, with a column `v` of it."""
    return {kind: contract_of(tmp_path_factory.mktemp("ev"), {"v": kind}) for kind in TYPES}


def cell(folder: Path, contract: Contract, form: str, value: Any) -> Any:
    """What the column `v` holds after reading the one cell `value` of a file; "refused" where it is."""
    if form == "csv":
        path = csv(folder, f"id,at,v\ne1,{AT},{value}\n")
    elif form == "json":
        path = csv(folder, f'{{"id": "e1", "at": "{AT}", "v": {value}}}\n', "e.json")
    else:
        path = folder / "e.parquet"
        columns = {"id": ["e1"], "at": [datetime(2026, 1, 5, tzinfo=UTC)], "v": value}
        pyarrow.parquet.write_table(pa.table(columns), path)
    try:
        return read_file(path, contract)["v"].to_pylist()[0]
    except SourceFileError as error:
        return "refused" if path.name in error.message and "column v" in error.message else error


def expected(by_type: dict[str, Any], kind: str) -> Any:
    """The value for a type; of whole numbers and for those without an entry what `whole` and `else` say."""
    if kind in by_type:
        return by_type[kind]
    if kind in WHOLE and "whole" in by_type:
        return by_type["whole"]
    return by_type.get("else", "refused")


JAN_5 = datetime(2026, 1, 5, tzinfo=UTC)
NOTHING = dict.fromkeys(TYPES)
TEXTS: dict[str, dict[str, Any]] = {
    "5": {"string": "5", "whole": 5, "float": 5.0, "double": 5.0, "decimal(20,2)": Decimal("5.00")},
    "5.0": {"string": "5.0", "float": 5.0, "double": 5.0, "decimal(20,2)": Decimal("5.00")},
    "007": {"string": "007", "whole": 7, "float": 7.0, "double": 7.0, "decimal(20,2)": Decimal("7.00")},
    "0x1F": {"string": "0x1F"},
    "1e400": {"string": "1e400"},
    "1e39": {"string": "1e39", "double": 1e39},
    "100000000000000.07": {
        "string": "100000000000000.07",
        "double": 100000000000000.07,
        "float": 100000000376832.0,
        "decimal(20,2)": Decimal("100000000000000.07"),
    },
    "1.005": {"string": "1.005", "double": 1.005, "float": 1.0049999952316284},
    "12345678901234567890": {
        "string": "12345678901234567890",
        "double": 12345678901234567890.0,
        "float": 12345679395506094080.0,
    },
    "true": {"string": "true", "boolean": True},
    "1": {"string": "1", "whole": 1, "float": 1.0, "double": 1.0, "decimal(20,2)": Decimal(1), "boolean": True},
    "2026-01-05": {"string": "2026-01-05", "date": date(2026, 1, 5), "timestamp": JAN_5},
    "1500-02-28": {"string": "1500-02-28", "date": date(1500, 2, 28), "timestamp": datetime(1500, 2, 28, tzinfo=UTC)},
    "2026-01-05T01:00:00+01:00": {"string": "2026-01-05T01:00:00+01:00", "timestamp": JAN_5},
    "2026-01-05 00:00:00.000001": {
        "string": "2026-01-05 00:00:00.000001",
        "timestamp": datetime(2026, 1, 5, 0, 0, 0, 1, UTC),
    },
    "2026-01-05T00:00:00.0000001Z": {"string": "2026-01-05T00:00:00.0000001Z"},
    "0001-01-01T00:00:00+14:00": {"string": "0001-01-01T00:00:00+14:00"},
    "0000-01-01": {"string": "0000-01-01"},
    "2026-02-30": {"string": "2026-02-30"},
    "inf": {"string": "inf", "float": float("inf"), "double": float("inf")},
    "NA": NOTHING | {"string": "NA"},
    "null": NOTHING | {"string": "null"},
    "NULL": NOTHING | {"string": "NULL"},
    "-": {"string": "-"},
    "x": {"string": "x"},
}
"""A text -> its value by the column's type; refused by all others."""


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("text", TEXTS)
def test_texts(tmp_path: Path, contracts: dict[str, Contract], text: str, kind: str) -> None:
    """The same in CSV, quoted or not, in JSON, and in a Parquet column of texts."""
    wanted = expected(TEXTS[text], kind)
    assert cell(tmp_path, contracts[kind], "csv", text) == wanted
    assert cell(tmp_path, contracts[kind], "csv", f'"{text}"') == wanted
    assert cell(tmp_path, contracts[kind], "json", json.dumps(text)) == wanted
    assert cell(tmp_path, contracts[kind], "parquet", pa.array([text])) == wanted


JSON: dict[str, dict[str, Any]] = {
    "5": {"string": "5", "whole": 5, "float": 5.0, "double": 5.0, "decimal(20,2)": Decimal("5.00")},
    "5.0": {"string": "5.0", "float": 5.0, "double": 5.0, "decimal(20,2)": Decimal("5.00")},
    "1e2": {"string": "1e2", "float": 100.0, "double": 100.0, "decimal(20,2)": Decimal("100.00")},
    "12345678901234567890": TEXTS["12345678901234567890"],
    "9223372036854775807": {"string": "9223372036854775807", "bigint": 2**63 - 1, "double": 2.0**63, "float": 2.0**63},
    "100000000000000.07": TEXTS["100000000000000.07"],
    "1e400": {"string": "1e400"},
    "NaN": {},
    "true": {"boolean": True},
    "null": NOTHING,
    "[1]": {},
    '{"a": 1}': {},
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("value", JSON)
def test_values_of_json(tmp_path: Path, contracts: dict[str, Contract], value: str, kind: str) -> None:
    """A number is what is written, never a double on its way; true is no 1, and 1 not true."""
    if value == "NaN" and kind in ("float", "double"):
        read = cell(tmp_path, contracts[kind], "json", value)
        assert read != read
        return
    assert cell(tmp_path, contracts[kind], "json", value) == expected(JSON[value], kind)


PARQUET: list[tuple[pa.Array, dict[str, Any]]] = [
    (
        pa.array([5], pa.int64()),
        {"string": "5", "whole": 5, "float": 5.0, "double": 5.0, "decimal(20,2)": Decimal("5.00")},
    ),
    (pa.array([2**63], pa.uint64()), {"string": str(2**63)}),
    (
        pa.array([2**53 + 1], pa.int64()),
        {"string": str(2**53 + 1), "bigint": 2**53 + 1, "decimal(20,2)": Decimal(2**53 + 1)},
    ),
    (pa.array([5.0]), {"whole": 5, "float": 5.0, "double": 5.0}),
    (pa.array([5.5]), {"float": 5.5, "double": 5.5}),
    (pa.array([0.1]), {"double": 0.1}),
    (pa.array([0.5], pa.float32()), {"float": 0.5, "double": 0.5}),
    (pa.array([2.0**53]), {"float": 2.0**53, "double": 2.0**53}),
    (
        pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        {"float": 1.5, "double": 1.5, "decimal(20,2)": Decimal("1.50")},
    ),
    (pa.array([Decimal("1.5000000000000001")], pa.decimal128(20, 16)), {}),
    (pa.array([Decimal(12345678901234567890)], pa.decimal128(20, 0)), {"string": "12345678901234567890"}),
    (pa.array([True]), {"boolean": True}),
    (pa.array([date(2026, 1, 5)]), {"date": date(2026, 1, 5), "timestamp": JAN_5}),
    (pa.array([datetime(2026, 1, 5)], pa.timestamp("us")), {"timestamp": JAN_5}),
    (pa.array([JAN_5], pa.timestamp("ms", "America/New_York")), {"timestamp": JAN_5}),
    (pa.array([JAN_5], pa.timestamp("s", "Mars/Olympus")), {"timestamp": JAN_5}),  # the zone says nothing of the moment
    (pa.array([1], pa.timestamp("ns")), {}),
    (pa.array([[10**15]], pa.list_(pa.timestamp("s"))), {}),
    (pa.array([{"a": 1}], pa.struct([("a", pa.timestamp("us", "Mars/Olympus"))])), {}),
    (pa.array([-719_163], pa.int32()).cast(pa.date32()), {}),
    (pa.array([time(1)]), {}),
    (pa.array([b"x"]), {}),
    (pa.array([[1]]), {}),
    (pa.array([None]), NOTHING),
    (pa.array(["a"]).dictionary_encode(), {"string": "a"}),
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("values", "by_type"), PARQUET, ids=lambda part: str(getattr(part, "type", "")))
def test_values_of_parquet(
    tmp_path: Path, contracts: dict[str, Contract], values: pa.Array, by_type: dict[str, Any], kind: str
) -> None:
    """A value goes into another type only where that holds exactly this value."""
    assert cell(tmp_path, contracts[kind], "parquet", values) == expected(by_type, kind)


@pytest.mark.parametrize("kind", ["string", "double"])
@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_texts_of_parquet_are_utf_8(
    tmp_path: Path, contracts: dict[str, Contract], form: pa.DataType, kind: str
) -> None:
    """A program that does not look wrote the bytes of another encoding: named at ingestion and by who looks first."""
    first, second = pa.array([b"1"] * parquet_file.ROWS), pa.array([None, "caf\xe9".encode("latin-1")])
    stored = pa.concat_arrays([first, second])
    texts = pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())
    columns = {"id": [f"e{n}" for n in range(len(texts))], "at": [JAN_5] * len(texts), "v": recoded(texts, form)}
    path = tmp_path / "e.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    place = f"{path}, row {parquet_file.ROWS + 2}: column v: b'caf\\xe9' is not UTF-8"
    with pytest.raises(SourceFileError) as refused:
        read_file(path, contracts[kind])
    assert refused.value.message.startswith(place)
    with read_once(path) as file, pytest.raises(SourceFileError, match="is not UTF-8"):
        list(file.blocks(["v"]))


def recoded(texts: pa.Array, form: pa.DataType) -> pa.Array:
    """The texts, whatever their bytes, in another form that Parquet has for texts."""
    if pa.types.is_dictionary(form):
        return texts.dictionary_encode()
    return texts if form == texts.type else texts.view(pa.binary()).cast(pa.large_binary()).view(form)


def rows(path: Path, contract: Contract, **how: Any) -> list[Any]:
    return read_file(path, contract, **how)["v"].to_pylist()


def test_what_is_null_in_a_text(tmp_path: Path) -> None:
    """Only an empty cell without quotation marks: Namibia stays Namibia, and Null is a surname."""
    path = csv(tmp_path, f'id,at,v\n1,{AT},NA\n2,{AT},null\n3,{AT},"NA"\n4,{AT},""\n5,{AT},\n')
    assert rows(path, contract_of(tmp_path, {"v": "string"})) == ["NA", "null", "NA", "", None]


def test_words_that_the_contract_declares(tmp_path: Path) -> None:
    """For all columns, or for one; in texts they count without quotation marks only."""
    path = csv(tmp_path, f'id,at,v,w,n\n1,{AT},-,-,-\n2,{AT},"-",NA,"-"\n3,{AT},,"",7\n')
    own = {"w": {"customProperties": [{"property": "nullWords", "value": []}]}}
    table = read_file(path, contract_of(tmp_path, {"v": "string", "w": "string", "n": "int"}, own, nullWords=["-"]))
    assert table["v"].to_pylist() == [None, "-", None]
    assert table["w"].to_pylist() == ["-", "NA", ""]
    assert table["n"].to_pylist() == [None, None, 7]
    with pytest.raises(SourceFileError, match=r"line 2, column n: 'NA' is no whole number"):
        read_file(csv(tmp_path, f"id,at,n\n1,{AT},NA\n"), contract_of(tmp_path, {"n": "int"}, nullWords=["-"]))


@pytest.mark.parametrize("value", ["NA", [1], [None], {"a": "b"}, None])
def test_null_words_are_a_list_of_texts(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ContractErrors, match="nullWords is a list of texts"):
        contract_of(tmp_path, {"v": "string"}, nullWords=value)


def test_the_fingerprint_stays(tmp_path: Path) -> None:
    """The words decide how files are read, not which rows keep the contract."""
    plain = contract_of(tmp_path, {"v": "string"}).fingerprint
    assert contract_of(tmp_path, {"v": "string"}, nullWords=["-"]).fingerprint == plain


def test_ids_of_twenty_digits(tmp_path: Path) -> None:
    """Two events stay two."""
    lines = [f'{{"id": {n}, "at": "{AT}", "v": null}}\n' for n in (12345678901234567890, 12345678901234567891)]
    table = read_file(csv(tmp_path, "".join(lines), "e.jsonl"), contract_of(tmp_path, {"v": "string"}))
    assert table["id"].to_pylist() == ["12345678901234567890", "12345678901234567891"]


def test_numbers_and_texts_in_one_column_of_json(tmp_path: Path) -> None:
    lines = [f'{{"id": {n}, "at": "{AT}", "v": {v}}}\n' for n, v in (("1", '"0.50"'), ('"b"', "0.25"), ("3", "null"))]
    table = read_file(csv(tmp_path, "".join(lines), "e.json"), contract_of(tmp_path, {"v": "decimal(20,2)"}))
    assert table["id"].to_pylist() == ["1", "b", "3"]
    assert table["v"].to_pylist() == [Decimal("0.50"), Decimal("0.25"), None]


def test_the_line_of_a_bad_cell(tmp_path: Path) -> None:
    """Counted as an editor counts, whatever lines break within cells, and blank ones."""
    contract = contract_of(tmp_path, {"s": "string", "v": "int"})
    path = csv(tmp_path, f'id,at,s,v\n1,{AT},"a\nb",1\n\n2,{AT},"c\nd",x\n')
    with pytest.raises(SourceFileError, match=r"e\.csv, line 5, column v: 'x' is no whole number from -2147483648 to"):
        read_file(path, contract)
    path = csv(tmp_path, f'{{"id": 1, "at": "{AT}", "s": "a", "v": 1}}\n\n{{"id": 2, "v": "x"}}\n', "e.json")
    with pytest.raises(SourceFileError, match=r"e\.json, line 3, column v: 'x' is no whole number"):
        read_file(path, contract)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", "id,at,v,at\n", "has the column 'at' twice"),
        ("e.csv", "id,at,v,V\n", "columns 'v' and 'V', which differ in upper and lower case only"),
        ("e.csv", "id,at,v,\n", "column 4 of 4 has no name"),
        ("e.csv", "\ufeffid,at,v,note\n", "has the column note, which the contract of 'ev' does not have"),
        ("e.csv", "id,at\n", "has no column v"),
        ("e.csv", "id;at;v\n", "has no column id, at, v"),
        ("e.csv", "", "is empty"),
        ("e.csv", f"id,at,v\n1,{AT}\n", "line 2: 2 cells, expected 3, as in the header"),
        ("e.csv", "id,at,v\n1,\xe9,\n".encode("latin-1"), "UTF-?8"),
        ("e.csv", "id,at,v\n".encode("utf-16"), "UTF-8"),
        ("e.csv", 'id,at,v\n1,"x,2\n3,4,5\n', "line 2, column at: a quotation mark has no pair"),
        ("e.csv.gz", gzip.compress(b"id,at,v\n" * 9, mtime=0)[:-9], "ended before"),
        ("e.csv.gz", b"id,at,v\n", "cannot be read: Not a gzipped file"),
        ("e.parquet", b"PAR1", "cannot be read"),
        ("e.json", "[1]", "line 1: not an object"),
        ("e.json", "{", "line 1, column 2: not JSON"),
        ("e.json", '\n{"id": 1, "id": 2}', "line 2: the key 'id' is there twice"),
        ("e.json", '{"id": 1, "at": null, "v": "\\ud800"}', "line 1, column v: half of a surrogate pair"),
        ("e.json", b'{"id": "\xe9"}', "line 1: not UTF-8"),
        ("e.json", '{"id": 1, "at": null, "v": 1, "V": 1}', "columns 'v' and 'V'"),
        ("e.json", '{"id": 1, "at": null, "v": 1, "note": [1]}', "has the column note"),
        ("e.json", "", "has no column id, at, v"),
        ("e.txt", "", "no form that is read"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    """One error each, with the file and what is wrong with it."""
    path = csv(tmp_path, text, name)
    with pytest.raises(SourceFileError, match=message) as raised:
        read_file(path, contract_of(tmp_path, {"v": "string"}), others=False)
    assert str(path) in raised.value.message


@pytest.mark.parametrize(("delimiter", "shown"), [(";", "';'"), ("\t", "a tab")])
def test_cells_that_no_comma_separates(tmp_path: Path, delimiter: str, shown: str) -> None:
    """As a spreadsheet saves them in many countries."""
    with pytest.raises(SourceFileError, match="has no column id, at, v") as raised:
        read_file(csv(tmp_path, delimiter.join(["id", "at", "v\n"])), contract_of(tmp_path, {"v": "string"}))
    assert raised.value.hint == f"its cells are separated by {shown}: save it with commas"


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    contract = contract_of(tmp_path, {"v": "string"})
    assert rows(csv(tmp_path, f"\ufeffid,at,v\n1,{AT},a\n"), contract) == ["a"]
    path = csv(tmp_path, f'\ufeff{{"id": "1", "at": "{AT}", "v": "a"}}\n', "e.json")
    assert rows(path, contract) == ["a"]


def test_columns_come_in_the_contracts_order(tmp_path: Path) -> None:
    path = csv(tmp_path, f"v,note,at,id\na,b,{AT},1\n")
    contract = contract_of(tmp_path, {"v": "string"})
    assert read_file(path, contract).column_names == ["id", "at", "v"]
    assert read_file(path, contract, also=("note", "other")).column_names == ["id", "at", "v", "note"]
    assert read_file(csv(tmp_path, "id,at,v"), contract).num_rows == 0


@pytest.mark.parametrize(
    ("line", "deep"),
    [
        (b"[" * 51, True),
        (b"[" * 50 + b"]" * 50, False),
        (b'{"a": "' + b"[" * 100 + b'"}', False),
        (b'{"a": "\\"' + b"[" * 100 + b'"}', False),
        (b'{"a": "\\\\"' + b"[" * 51, True),
        (b"[]" * 100, False),
        (b'{"a":' * 25 + b"[" * 26, True),
    ],
)
def test_depth_is_looked_at_before_it_is_parsed(line: bytes, deep: bool) -> None:
    """Brackets within texts do not count, whatever is escaped there."""
    assert json_lines.too_deep(line) is deep


def test_deep_json_is_refused(tmp_path: Path) -> None:
    """A parser that recurses would end the process."""
    path = csv(tmp_path, f'{{"id": "1", "at": "{AT}", "v": {"[" * 100_000}{"]" * 100_000}}}\n', "e.json")
    with pytest.raises(SourceFileError, match="line 1: lists and objects nested deeper than 50"):
        read_file(path, contract_of(tmp_path, {"v": "string"}))


def test_a_compressed_file_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it the error says how much, and the way out."""
    contract = contract_of(tmp_path, {"v": "string"})
    text = "id,at,v\n" + f"1,{AT},{'x' * 100}\n" * 20_000
    path = csv(tmp_path, gzip.compress(text.encode()), "e.csv.gz")
    assert len(rows(path, contract)) == 20_000
    monkeypatch.setattr(unpacking, "UNPACKED", 100_000)
    monkeypatch.setattr(unpacking, "RATIO", 1)
    with pytest.raises(SourceFileError, match="unpacks to more than 100,000 bytes") as raised:
        read_file(path, contract)
    assert "gunzip" in str(raised.value.hint)
    pyarrow.parquet.write_table(
        pa.table({"id": ["1"], "at": [AT], "v": ["x"]}).take([0] * 20_000), tmp_path / "e.parquet"
    )
    with pytest.raises(SourceFileError, match="unpacks to more than"):
        read_file(tmp_path / "e.parquet", contract)


def test_many_rows_lie_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is the same, and no file of it is left behind."""
    contract = contract_of(tmp_path, {"v": "int"})
    path = csv(tmp_path, "id,at,v\n" + "".join(f"e{n},{AT},{n}\n" for n in range(50_000)))
    whole = read_file(path, contract)
    monkeypatch.setattr(spool, "IN_MEMORY", 1000)
    monkeypatch.setattr(spool.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("trendlake.pipelines.ingest.readers.csv_file.BLOCK", 100_000)
    mapped = read_file(path, contract)
    assert mapped.equals(whole)
    assert mapped["v"].num_chunks > 5
    with path.open("a") as file:
        file.write(f"e0,{AT},x\n")
    with pytest.raises(SourceFileError, match="line 50002, column v: 'x'"):
        read_file(path, contract)
    assert not list(tmp_path.glob("*.arrow"))
