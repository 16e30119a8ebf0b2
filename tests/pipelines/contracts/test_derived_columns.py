"""`derive` of a contract: columns that every pattern over the source has."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from tests.support.event_files import contract_of
from tests.support.own_source import output_of, project_at
from trendlake.cep_core import compile_query
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import ContractErrors

COLUMNS = {"price": "double", "size": "bigint", "fee": "double", "g": "string"}
QUERY = {
    "name": "one",
    "source": "ev",
    "kind": "trends",
    "pattern": "E+",
    "return": {"n": "COUNT(*)"},
    "within": "1 day",
}


def with_columns(folder: Path, derive: Any, **more: Any) -> Contract:
    return contract_of(folder, COLUMNS, derive=derive, **more)


def test_what_a_plan_has_of_them(tmp_path: Path) -> None:
    """Those that it reads, and those that a pattern's own are computed of; no other changes what a plan is."""
    plain = contract_of(tmp_path, COLUMNS)
    contract = with_columns(tmp_path, {"net": "price * size - fee", "h": "hour(at)", "small": "lower(g)"})
    assert contract.fingerprint == plain.fingerprint
    schema = contract.event_schema()
    assert compile_query(QUERY, schema).hash == compile_query(QUERY, plain.event_schema()).hash

    read = compile_query({**QUERY, "where": ["E.net > 1"]}, schema)
    assert [one.name for one in read.schema.derived] == ["net"]
    assert set(read.columns) == {"at", "event_type", "price", "size", "fee"}
    own = {**QUERY, "derive": {"twice": "net * 2"}, "group_by": ["h"], "return": {"s": "SUM(E.twice)"}}
    assert [one.name for one in compile_query(own, schema).schema.derived] == ["net", "h", "twice"]
    assert compile_query({**own, "kind": "trends"}, schema).hash != read.hash
    text = {"name": "x", "source": "ev", "kind": "algebra", "pattern": "SELECT net, h FROM E", "within": "1 day"}
    assert [one.name for one in compile_query(text, schema).schema.derived] == ["net", "h"]


@pytest.mark.parametrize(
    ("derive", "said"),
    [
        ("price * size", "derive is a mapping of names to expressions"),
        ({"net": 5}, "derive is a mapping of names to expressions"),
        ({"net": "price *"}, "net"),
        ({"net": "prize * size"}, "did you mean 'price'?"),
        ({"net": "a.price * 2"}, "write price"),
        ({"net": "$x + price"}, "the same for all rows of for_each"),
        ({"net": "1 + 1"}, "reads no column"),
        ({"net": "at - at"}, "seconds(b - a)"),
        ({"g": "price * 2"}, "a column of the source, or of every result"),
        ({"plan_hash": "price * 2"}, "a column of the source, or of every result"),
        ({"a": "price * 2", "A": "price"}, "a derived column already"),
        ({"_change_type": "price * 2"}, "Delta's change feed"),
        ({"a": "net + 1", "net": "price"}, "the source has no column 'net'"),
        ({"two words": "price * 2"}, "two words"),
    ],
)
def test_mistakes(tmp_path: Path, derive: Any, said: str) -> None:
    """One error each, with its line."""
    with pytest.raises(ContractErrors) as caught:
        with_columns(tmp_path, derive)
    (error,) = caught.value.errors
    assert said in str(error)
    assert error.place is not None
    assert error.place.line > 1


def test_misspelt(tmp_path: Path) -> None:
    with pytest.raises(ContractErrors, match="did you mean 'derive'"):
        contract_of(tmp_path, COLUMNS, derived={"net": "price * 2"})


def test_a_run_and_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that groups by one of the contract's columns and adds another."""
    project_at(tmp_path, monkeypatch)
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "state"))
    rows = [
        f"{k},2026-05-04T{k:02}:00:00Z,{price},{size}"
        for k, (price, size) in enumerate([(2, 3), (5, 2), (4, 4), (1, 1)])
    ]
    file = tmp_path / "trades.csv"
    file.write_text("\n".join(["id,at,price,size", *rows]))
    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade"]
    output_of("new", "source", "trades", "--from", file, *columns)
    contract = tmp_path / "data_contracts" / "trades.yaml"
    text = contract.read_text()
    assert "    customProperties:\n" in text
    derive = "      - {property: derive, value: {late: hour(at) >= 2, net: price * size - 1}}\n"
    contract.write_text(text.replace("    customProperties:\n", f"    customProperties:\n{derive}", 1))
    pattern = tmp_path / "conf" / "patterns" / "late.yaml"
    pattern.write_text(
        "name: late\nsource: trades\npattern: Trade T\nreturn: {n: COUNT(*), net: SUM(T.net)}\n"
        "group_by: [late]\nwithin: 1 day\n"
    )
    rows_out = tmp_path / "rows.csv"
    output_of("validate")
    assert "derives   late: " in output_of("explain", "late")
    output_of("ingest", "trades", file)
    output_of("run", "late", "--from", "2026-05-04", "--to", "2026-05-05")
    assert results(rows_out) == {"false": ("2", "14"), "true": ("2", "15")}

    more = tmp_path / "more.csv"
    more.write_text("id,at,price,size\n9,2026-05-04T09:00:00Z,10,1\n")
    output_of("ingest", "trades", more)
    output_of("revise", "late")
    assert results(rows_out) == {"false": ("2", "14"), "true": ("3", "24")}


def results(file: Path) -> dict[str, tuple[str, str]]:
    output_of("show", "late", "--out", file)
    lines = list(csv.DictReader(file.read_text().splitlines()))
    file.unlink()
    return {line["late"]: (line["n"], line["net"].removesuffix(".0")) for line in lines}
