"""Ids that ingestion makes of several columns: one for each key, the same from any file, for ever."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import ContractErrors, SourceFileError
from trendlake.pipelines.ingest.delete import keys_in
from trendlake.pipelines.ingest.readers.event_ids import event_ids
from trendlake.pipelines.ingest.readers.files import read_file

FLIGHTS = "carrier,flight,hour\nUA,1545,01/01/2013 05:00\nA|A,7,01/01/2013 05:00\nA,,01/01/2013 05:00\n"
IDS = [
    "UA|1545|2013-01-01 10:00:00.000000Z",
    r"A\|A|7|2013-01-01 10:00:00.000000Z",
    r"A|\N|2013-01-01 10:00:00.000000Z",
]


def contract_of(folder: Path, **changes: Any) -> Contract:
    """Of the source `ev`, whose id is made of the carrier, the flight's number and the hour."""
    own = {"eventRole": "event_id", "idColumns": ["carrier", "flight", "hour"]} | changes
    hour = {"eventRole": "event_time", "timeFormat": "%m/%d/%Y %H:%M", "timeZone": "America/New_York"}

    def column(name: str, kind: str, custom: dict[str, Any], **keys: Any) -> dict[str, Any]:
        listed = [{"property": key, "value": value} for key, value in custom.items()]
        return {"name": name, "logicalType": kind, "customProperties": listed, **keys}

    properties = [
        column("event_id", "string", own, required=True, unique=True, primaryKey=True, primaryKeyPosition=1),
        column("carrier", "string", {}),
        column("flight", "integer", {}),
        column("hour", "timestamp", hour, required=True),
        column("delay", "number", {}),
    ]
    document = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "ev",
        "version": "1",
        "status": "draft",
        "schema": [
            {"name": "ev", "customProperties": [{"property": "eventType", "value": "E"}], "properties": properties}
        ],
    }
    (folder / "ev.yaml").write_text(json.dumps(document, indent=1))
    return load_contract(folder / "ev.yaml")


VALUES = st.one_of(st.none(), st.text(st.sampled_from("\\|Na,\u00e9\n "), max_size=4))


@examples(500)
@given(width=st.integers(2, 4), data=st.data())
def test_different_keys_have_different_ids(width: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=30))
    ids = event_ids([pa.array(column, pa.string()) for column in zip(*rows, strict=True)]).to_pylist()
    assert len(set(ids)) == len(set(rows))
    assert [split(one) for one in ids] == rows


def split(text: str) -> tuple[str | None, ...]:
    """An id's values again, by another road: character by character."""
    parts = re.findall(r"((?:\\.|[^\\|])*)(?:\||$)", text, re.DOTALL)[: text_bars(text) + 1]
    return tuple(None if part == r"\N" else re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts)


def text_bars(text: str) -> int:
    """How many `|` separate values."""
    return re.sub(r"\\.", "", text, flags=re.DOTALL).count("|")


def test_the_form_of_each_type() -> None:
    """Table in tables: these texts stay what they are."""
    columns = [
        pa.array(["A"]),
        pa.array([-7], pa.int64()),
        pa.array([True]),
        pa.array([date(13, 1, 2)]),
        pa.array([datetime(2013, 1, 2, 3, 4, 5, 60, UTC)], pa.timestamp("us", "UTC")),
        pa.array([datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
    ]
    expected = "A|-7|true|0013-01-02|2013-01-02 03:04:05.000060Z|0001-01-01 00:00:00.000000Z"
    assert event_ids(columns).to_pylist() == [expected]


def test_ids_of_files(tmp_path: Path) -> None:
    """The same in each form, whatever way a time is written; the columns stay."""
    contract = contract_of(tmp_path)
    (tmp_path / "e.csv").write_text(FLIGHTS.replace("\n", ",\n").replace("hour,", "hour,delay", 1))
    table = read_file(tmp_path / "e.csv", contract, others=False)
    assert table.column_names == ["event_id", "carrier", "flight", "hour", "delay"]
    assert table["event_id"].to_pylist() == IDS
    rows = [line.split(",") for line in FLIGHTS.splitlines()[1:]]
    objects = [{"carrier": c, "flight": int(f) if f else None, "hour": h, "delay": None} for c, f, h in rows]
    (tmp_path / "e.json").write_text("".join(json.dumps(row) + "\n" for row in objects))
    moments = [datetime(2013, 1, 1, 10, tzinfo=UTC)] * 3
    pyarrow.parquet.write_table(
        pa.Table.from_pylist(objects).set_column(2, "hour", pa.array(moments)), tmp_path / "e.parquet"
    )
    for form in ("json", "parquet"):
        assert read_file(tmp_path / f"e.{form}", contract).equals(table)


def test_a_file_that_has_the_id(tmp_path: Path) -> None:
    """It would be another one: `ingest` refuses it. A file of `quarantine show` has it, and it is made anew."""
    contract = contract_of(tmp_path)
    path = tmp_path / "e.csv"
    path.write_text("event_id,carrier,flight,hour,delay\nx,UA,1545,2013-01-01T10:00:00Z,\n")
    with pytest.raises(SourceFileError, match="event_id, which ingestion makes of carrier, flight, hour"):
        read_file(path, contract, others=False)
    assert read_file(path, contract, repaired=True)["event_id"].to_pylist() == IDS[:1]


def test_keys_of_rows_to_delete(tmp_path: Path) -> None:
    """They are given as the files give them."""
    (tmp_path / "e.csv").write_text(FLIGHTS)
    keys = keys_in(tmp_path / "e.csv", contract_of(tmp_path)).keys
    assert keys is not None
    assert sorted(keys["event_id"].to_pylist()) == sorted(IDS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"idColumns": "carrier"}, "idColumns is a list of two or more columns, not 'carrier'"),
        ({"idColumns": ["carrier"]}, "is a list of two or more columns"),
        ({"idColumns": ["carrier", "carrier"]}, "is a list of two or more columns"),
        ({"idColumns": ["carrier", 5]}, "is a list of two or more columns"),
        ({"idColumns": ["carrier", "fligt"]}, "there is no other column 'fligt'. did you mean 'flight'?"),
        ({"idColumns": ["carrier", "event_id"]}, "there is no other column 'event_id'"),
        ({"idColumns": ["carrier", "delay"]}, "column 'delay' is a number; expected string, integer"),
        ({"eventRole": "sequence"}, "idColumns is for the column of type string with the role event_id"),
    ],
)
def test_mistakes(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ContractErrors) as raised:
        contract_of(tmp_path, **changes)
    assert said in " | ".join(f"{error.message}. {error.hint}" for error in raised.value.errors)
    assert all(error.place for error in raised.value.errors)
