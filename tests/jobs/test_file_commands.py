"""Every command that reads a file of events refuses a bad one with one error, before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.own_source import FALLING, output_of, start

ROWS = "id,at,company,price\nt1,2026-01-05T09:00:00,A,10\nt2,2026-01-05T09:00:01Z,A,9.5\n"
NEW = ["new", "source", "other", "--event-id", "id", "--event-time", "at", "--type", "Trade", "--from"]
INGEST, TRY, REPLAY = ["ingest", "trades"], ["try", "falling", "--events"], ["quarantine", "replay", "trades"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the source `trades` and a pattern over it."""
    folder = tmp_path_factory.mktemp("mine")
    start(folder, folder / "trades.csv", ROWS)
    (folder / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    return folder


@pytest.mark.parametrize(
    ("name", "text", "message", "commands"),
    [
        (
            "deep.json",
            '{"id": ' + "[" * 100_000,
            "line 1: lists and objects nested deeper than 50",
            [NEW, INGEST, TRY, REPLAY],
        ),
        ("twice.csv", "id,at,company,price,price\n", "has the column 'price' twice", [NEW, INGEST, TRY, REPLAY]),
        (
            "case.csv",
            "id,at,company,price,Price\n",
            "'price' and 'Price', which differ in upper and lower case only",
            [NEW, INGEST, TRY, REPLAY],
        ),
        ("empty.csv", "id,at,company,price,\n", "column 5 of 5 has no name", [NEW, INGEST, TRY, REPLAY]),
        (
            "more.csv",
            ROWS.replace("price\n", "price,note\n"),
            "has the column note, which the contract of 'trades'",
            [INGEST],
        ),
        ("names.csv", "id,at,sel ect\n", "column 'sel ect': Delta tables take no space", [NEW]),
        ("latin.csv", "id,at,company,price\nt1,2026-01-05,Caf\udce9,1\n", "UTF-8", [INGEST, TRY, REPLAY]),
    ],
    ids=lambda part: part if isinstance(part, str) and "." in part and len(part) < 12 else "",
)
def test_bad_files(project: Path, name: str, text: str, message: str, commands: list[list[str]]) -> None:
    file = project / name
    file.write_text(text, errors="surrogateescape")
    for command in commands:
        out = " ".join(output_of(*command, file, "--project-dir", project, code=1).split())
        assert f"[SOURCE_FILE] {file}" in out, command
        assert message in out, command
        assert "Traceback" not in out
    assert not (project / "data_contracts" / "other.yaml").exists()


def test_a_contract_with_a_column_that_delta_refuses(project: Path) -> None:
    """`validate` says it, with its place."""
    file = project / "data_contracts" / "trades.yaml"
    good = file.read_text()
    file.write_text(good.replace("name: company", 'name: "sel ect"'))
    out = output_of("validate", file, "--project-dir", project, code=1)
    file.write_text(good)
    assert "trades.yaml:" in out
    assert "column 'sel ect': Delta tables take no space in a column's name" in out
    assert "such as sel_ect" in out
