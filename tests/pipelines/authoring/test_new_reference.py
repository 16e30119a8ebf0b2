"""`new source --reference`: the contract of a file whose rows are no events, and what commands do with such a table."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.own_source import output_of, project_at
from trendlake.jobs.main import app
from trendlake.pipelines.contracts.contract import Contract, load_contract

ROWS = """\
customer,segment,since,score,code
ann,small,2025-01-01T00:00:00Z,1.5,007
bob,small,2025-02-01T00:00:00Z,,008
cid,large,2025-02-01T00:00:00Z,2,009
"""
PRICES = """\
item,since,price
a,03/14/2025,1
a,03/15/2025,2
b,03/14/2025,2
b,03/15/2025,1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project_at(tmp_path, monkeypatch)
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "state"))
    return tmp_path


def new(name: str, text: str, *options: str, code: int = 0) -> str:
    Path(f"{name}.csv").write_text(text)
    return output_of("new", "source", name, "--from", f"{name}.csv", "--reference", *options, code=code)


def contract(name: str) -> Contract:
    return load_contract(Path("data_contracts") / f"{name}.yaml")


def test_columns_and_key() -> None:
    """Types by the values, the first unique column as the key, and no lateness."""
    said = new("customers", ROWS)
    assert "the key of a row is customer, which is unique in this file; --key COLUMN,COLUMN names another" in said
    of_rows = contract("customers")
    assert of_rows.is_reference
    kinds = {"customer": "string", "segment": "string", "since": "timestamp", "score": "double", "code": "string"}
    assert {column.name: column.type for column in of_rows.columns} == kinds
    assert of_rows.key == ("customer",)
    assert {rule.name for rule in of_rows.rules} == {"customer_required", "customer_unique"}
    assert of_rows.replaces


def test_a_key_of_several_columns() -> None:
    """Is stated; the file says which would do."""
    said = new("prices", PRICES)
    assert (
        "no column is unique in this file, and the contract names no key; these identify each row: --key item,since"
        in said
    )
    assert contract("prices").rules == ()
    new("prices", PRICES, "--key", "item,since", "--overwrite")
    of_rows = contract("prices")
    assert of_rows.key == ("item", "since")
    assert [(rule.kind, rule.columns) for rule in of_rows.rules] == [("unique", ("item", "since"))]
    assert {column.name: column.type for column in of_rows.columns}["since"] == "date"
    assert output_of("ingest", "prices", "prices.csv").startswith("  prices.csv  4 rows: 4 new")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--key", "item"], "column 'item' cannot be the key: 4 rows have 2 distinct values"),
        (["--key", "thing"], "there is no column 'thing' to be the key"),
        (["--event-id", "item"], "--reference is for rows that are no events"),
        (["--event-time", "since"], "--reference is for rows that are no events"),
        (["--type", "Price"], "--reference is for rows that are no events"),
    ],
)
def test_what_does_not_fit(options: list[str], said: str) -> None:
    out = new("prices", PRICES, *options, code=2 if "no events" in said else 1)
    assert said in " ".join(out.replace("│", " ").split())
    assert not Path("data_contracts/prices.yaml").exists()


def test_events_need_a_time(folder: Path) -> None:
    (folder / "e.csv").write_text(PRICES)
    out = output_of("new", "source", "prices", "--from", "e.csv", "--event-id", "item", code=2)
    assert "--event-time is missing" in out
    out = output_of("new", "source", "e", "--from", "e.csv", "--event-time", "since", "--key", "item", code=2)
    assert "--key is for --reference" in out


def test_the_command_with_null_words() -> None:
    """That is printed writes the same contract again."""
    text = ROWS.replace(",2,", ",nil,").replace(",,008", ",2.5,008")
    said = new("customers", text, "--key", "customer")
    (again,) = [line for line in said.splitlines() if line.startswith("with these words as NULL: ")]
    assert " --key customer " in again
    assert " --reference --null-word nil --overwrite" in again
    output_of(*again.partition("trendlake ")[2].split())
    assert {column.name: column.type for column in contract("customers").columns}["score"] == "double"


def test_ingested_and_replaced(folder: Path) -> None:
    """Files together are the whole table."""
    new("customers", ROWS)
    output_of("ingest", "customers", "customers.csv")
    head, *rows = ROWS.splitlines()
    (folder / "a.csv").write_text(f"{head}\n{rows[0]}\n")
    (folder / "b.csv").write_text(f"{head}\n{rows[1].replace('small', 'large')}\n")
    said = output_of("ingest", "customers", "a.csv", "b.csv", "--replace")
    assert said.startswith("  a.csv, b.csv  2 rows: 2 in place of 3\ncustomers: 2 rows in the table, version 2")
    said = output_of("ingest", "customers", "a.csv", "b.csv", "--replace")
    assert "there already" in said
    about = json.loads(CliRunner().invoke(app, ["ingest", "customers", "b.csv", "--replace", "--json"]).stdout)
    (record,) = about["ingested"]
    assert (about["rows"], record["file"], record["rows_inserted"], record["rows_deleted"]) == (1, "b.csv", 1, 2)
    assert "--replace needs files" in output_of("ingest", "customers", "--replace", code=2)


def test_a_row_is_repaired(folder: Path) -> None:
    """Also one without a time, by the key that the rows have."""
    new("customers", ROWS)
    file = folder / "data_contracts" / "customers.yaml"
    file.write_text(
        file.read_text().replace("      - name: segment\n", "      - name: segment\n        required: true\n")
    )
    (folder / "broken.csv").write_text(ROWS.replace("bob,small", "bob,"))
    assert "1 quarantined (segment_required)" in output_of("ingest", "customers", "broken.csv")
    shown = output_of("quarantine", "show", "customers")
    assert "bob" in shown
    output_of("quarantine", "show", "customers", "--out", "open.csv")
    with (folder / "open.csv").open() as opened:
        (row,) = csv.DictReader(opened)
    with (folder / "open.csv").open("w") as opened:
        writer = csv.DictWriter(opened, list(row))
        writer.writeheader()
        writer.writerow({**row, "segment": "small"})
    assert "1 row repaired" in output_of("quarantine", "replay", "customers", "open.csv")
    assert "0 quarantined rows are open" in output_of("quarantine", "show", "customers")
    (folder / "gone.csv").write_text("customer\nbob\n")
    assert "1 row deleted" in output_of("source", "delete", "customers", "--ids", "gone.csv", "--yes")
    assert "2 rows deleted" in output_of("source", "delete", "customers", "--where", "1 = 1", "--yes")
