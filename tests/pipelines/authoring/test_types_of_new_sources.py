"""What `new source` says of types that a few cells decide, and of ids that corrections would change."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.own_source import ISIG, output_of, project_at
from trendlake.jobs.main import app
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.ingest.readers.files import read_file

GLUCOSE = """\
at,glucose
2026-01-01 09:46:00,250
2026-01-01 09:51:00,255
2026-01-01 09:56:00,260
2026-01-01 10:01:00,-5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project_at(tmp_path, monkeypatch)
    return tmp_path


def new(file: Path, *options: str, event_id: str = "id", code: int = 0) -> Any:
    ids = ("--event-id", event_id) if event_id else ()
    options = (*ids, "--event-time", "at", "--type", "R", *options, "--json")
    result = CliRunner().invoke(app, ["new", "source", "s", "--from", str(file), *options])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def contract(folder: Path) -> Contract:
    return load_contract(folder / "data_contracts" / "s.yaml")


def file_of(folder: Path, **columns: list[str]) -> Path:
    """A file with these columns, an id and a time."""
    rows = zip(*columns.values(), strict=True)
    lines = [f"{i},2026-01-01T00:{i:02}:00Z,{','.join(row)}" for i, row in enumerate(rows)]
    path = folder / "rows.csv"
    path.write_text("\n".join([",".join(["id", "at", *columns]), *lines]) + "\n")
    return path


def test_a_word_among_numbers_is_named_and_the_command_reads_it_as_null(folder: Path) -> None:
    """The command that is printed works as typed: the column becomes one of numbers, the word NULL."""
    (folder / "isig.csv").write_text(ISIG)
    document = new(folder / "isig.csv")
    (note,) = document["notes"]
    assert note.startswith("note: isig: text, since 1 of 4 cells are no numbers: nil (1).")
    assert 'as numbers with --null-word nil (nullWords: ["nil"])' in note
    assert document["null_words"] == ["nil"]
    assert {item.name: item.type for item in contract(folder).columns}["isig"] == "string"

    typed = shlex.split(document["again"])
    assert typed[0] == "trendlake"
    output_of(*typed[1:])
    written = contract(folder)
    assert written.null_words == {"isig": ("nil",)}
    assert read_file(folder / "isig.csv", written)["isig"].to_pylist() == [8.5, 9.5, 10.5, None]


def test_a_dash_among_numbers(folder: Path) -> None:
    """A word that looks like an option."""
    document = new(file_of(folder, added=["3", "-", "12", "7"]))
    output_of(*shlex.split(document["again"])[1:])
    assert read_file(folder / "rows.csv", contract(folder))["added"].to_pylist() == [3, None, 12, 7]


@pytest.mark.parametrize(
    ("cells", "said", "words"),
    [
        (["1", "2", "nil", "nil"], "text, since 2 of 4 cells are no numbers: nil (2)", ["nil"]),
        (["nil", "nil", "nil", "4"], "text, since 3 of 4 cells are no numbers: nil (3)", ["nil"]),
        (["1", "NA", "?", "4"], "text, since 1 of 3 cells are no numbers: ? (1)", ["?"]),
        (["1", "2", "5 mg", "4"], "text, since 1 of 4 cells are no numbers: '5 mg' (1)", []),
        (["1", "2", "007", "4"], "no numbers: 007 (1), whose zeros a number would lose", []),
        (["true", "false", "true", "maybe"], "text, since 1 of 4 cells are no booleans: maybe (1)", ["maybe"]),
        (["2026-01-01", "2026-01-02", "never", "2026-01-03"], "no times: never (1)", ["never"]),
        (["2026-01-01T10:00:00Z", "-", "2026-01-03T10:00:00Z", "-"], "no times: - (2)", ["-"]),
        (["1", "2", "99999999999999999999", "4"], "text, since some of 4 cells have more digits than a number", []),
        (["1"] * 19 + ["2.5"], "double, since 1 of 20 cells are no whole numbers: 2.5 (1)", []),
        (["1.5"] * 19 + ["100000000000000.07"], "since 1 of 20 cells have more digits than a double holds", []),
        (["a", "b", "c", "4"], None, []),
        (["1", "2.5", "3", "4.5"], None, []),
        (["x", "x", "x", "x"], None, []),
        (["a", "b", "1", "2"], None, None),
        (['"0,5"', '"1,5"', '"-12,25"'], "since some of 3 cells are numbers with commas, such as 0,5; a number", []),
        (['"1,234.50"', '"2,000,000.00"', '"3"'], "some of 3 cells are numbers with commas", []),
        (['"1,234.50"', '"2,000,000.00"'], "numbers with commas, such as 1,234.50", []),
        (['"0,5"', "a"], None, []),
    ],
)
def test_why_a_column_has_its_type(folder: Path, cells: list[str], said: str | None, words: list[str] | None) -> None:
    """Where a few cells decide it; words that may mean NULL are proposed, cells with digits are not."""
    document = new(file_of(folder, v=cells))
    notes = [note for note in document["notes"] if note.startswith("note: v:")]
    if words is not None:
        assert (said in notes[0]) if said else not notes
        assert document["null_words"] == words


@pytest.mark.parametrize("rows", ["1;2026-01-01;5\n", "1;2026-01-01;5,5\n"], ids=["whole numbers", "decimal commas"])
@pytest.mark.parametrize(("separator", "named"), [(";", "';'"), ("\t", "a tab"), ("|", "'|'")])
def test_a_file_whose_cells_no_comma_separates(folder: Path, separator: str, named: str, rows: str) -> None:
    """As a spreadsheet saves it in many countries; no column is proposed whose name holds all others."""
    file = folder / "rows.csv"
    file.write_text(f"id;at;v\n{rows}".replace(";", separator))
    assert new(file, code=1)["error"]["hint"] == f"its cells are separated by {named}: save it with commas"


def test_a_text_among_numbers_of_json(folder: Path) -> None:
    """A text is no number in JSON, and a null word is a text."""
    file = folder / "rows.jsonl"
    rows = [{"id": i, "at": f"2026-01-01T00:0{i}:00Z", "v": v} for i, v in enumerate([8.5, "nil", 9.5])]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    document = new(file)
    assert document["notes"][0].startswith("note: v: text, since 1 of 3 cells are no numbers: nil (1)")
    output_of(*shlex.split(document["again"])[1:])
    assert read_file(file, contract(folder))["v"].to_pylist() == [8.5, None, 9.5]


def test_words_of_other_columns_stay_what_they_are(folder: Path) -> None:
    """A stated word is NULL in each column that has it, which a note says of texts; the usual words stay NULL."""
    file = file_of(folder, v=["1", "nil", "NA", "4"], city=["nil", "Oslo", "NA", "Bergen"])
    notes = new(file, "--null-word", "nil")["notes"]
    assert "note: --null-word nil also makes texts NULL: city (1)" in notes
    table = read_file(file, contract(folder))
    assert table["v"].to_pylist() == [1, None, None, 4]
    assert table["city"].to_pylist() == [None, "Oslo", "NA", "Bergen"]


def test_a_word_that_no_cell_is(folder: Path) -> None:
    notes = new(file_of(folder, v=["1", "2"]), "--null-word", "nil")["notes"]
    assert notes == ["note: --null-word nil has no effect: no cell is nil"]


def test_a_contract_is_replaced_only_on_request(folder: Path) -> None:
    """Without --overwrite nothing changes; a file that ingestion would refuse replaces nothing."""
    file = file_of(folder, v=["1", "2"])
    new(file)
    before = (folder / "data_contracts" / "s.yaml").read_text()
    assert "--overwrite" in new(file, code=1)["error"]["hint"]
    bad = file_of(folder, at=["1", "x"])
    output_of(
        "new",
        "source",
        "s",
        "--from",
        bad,
        "--event-id",
        "id",
        "--event-time",
        "at",
        "--type",
        "R",
        "--overwrite",
        code=1,
    )
    assert (folder / "data_contracts" / "s.yaml").read_text() == before


def test_a_few_cells_that_are_no_times(folder: Path) -> None:
    """In the event time: the error says how rows without a time are taken."""
    file = folder / "rows.csv"
    file.write_text("id,at\n1,2026-01-01 10:00\n2,nil\n3,2026-01-01 11:00\n")
    error = new(file, code=1)["error"]
    assert error["message"] == "column 'at' cannot be the event time: it holds 'nil'"
    assert error["hint"].startswith("1 of 3 cells are no times: nil (1). With --null-word nil")
    new(file, "--null-word", "nil")
    assert read_file(file, contract(folder))["at"].null_count == 1


def test_the_first_contract_states_its_tolerance(folder: Path) -> None:
    new(file_of(folder, v=["1", "2"]))
    assert contract(folder).tolerance == 0
    lines = (folder / "data_contracts" / "s.yaml").read_text().splitlines()
    value = lines[lines.index("      - property: quarantineTolerance") + 1]
    assert value.startswith("        value: 0  # one broken row stops runs and revisions")


def test_a_time_is_the_id_where_it_is_unique(folder: Path) -> None:
    """In one form, however files write the time: a correction in another zone and format has the same id."""
    file = folder / "rows.csv"
    file.write_text(GLUCOSE)
    new(file, "--time-zone", "America/New_York", event_id="at")
    written = contract(folder)
    assert (written.id_columns, written.roles["event_id"], written.key) == (("at",), "event_id", ("event_id",))
    ids = read_file(file, written)["event_id"].to_pylist()
    assert ids[:2] == ["2026-01-01 14:46:00.000000Z", "2026-01-01 14:51:00.000000Z"]
    file.write_text("at,glucose\n2026-01-01T15:46:00+01:00,251\n")
    assert read_file(file, written)["event_id"].to_pylist() == ids[:1]


def test_a_time_that_is_not_unique_is_no_id(folder: Path) -> None:
    file = folder / "rows.csv"
    file.write_text(f"{GLUCOSE}2026-01-01 09:46:00,99\n")
    error = new(file, event_id="at", code=1)["error"]
    assert error["message"] == "column 'at' cannot be the id: 5 rows have 4 distinct values"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "at identifies each row without it: --event-id at"),
        ("2026-01-01 09:46:00,99\n", "at has 4 distinct values"),
    ],
)
def test_a_measured_value_in_the_id(folder: Path, more: str, said: str) -> None:
    """A correction of it would be another event."""
    file = folder / "rows.csv"
    file.write_text(f"{GLUCOSE}{more}")
    (note, *_) = new(file, event_id="at,glucose")["notes"]
    assert note.startswith("note: glucose is part of the id and varies like a measured value")
    assert said in note


@pytest.mark.parametrize(
    ("minutes", "numbers"),
    [
        ([0, 0, 1, 2], [0, 1, 0, 0]),
        ([0, 0, 0, 0], [1545, 1714, 1141, 725]),
        ([0, 1, 2, 3], [7, 12, 15, 40]),
        ([0, 1, 2, 3], [5, 5, 5, 5]),
    ],
    ids=["of equal times", "of flights", "ever larger", "of one machine"],
)
def test_numbers_that_name(folder: Path, minutes: list[int], numbers: list[int]) -> None:
    """A number that counts, or without which few rows are known, is no measured value."""
    file = folder / "rows.csv"
    rows = [f"2026-01-01 09:{minute:02}:00,{n}\n" for minute, n in zip(minutes, numbers, strict=True)]
    file.write_text("at,n\n" + "".join(rows))
    assert not [note for note in new(file, event_id="at,n")["notes"] if "measured" in note]


def test_a_decimal_is_refused_in_an_id(folder: Path) -> None:
    error = new(file_of(folder, v=["1.5", "2.5"]), event_id="id,v", code=1)["error"]
    assert error["message"].startswith("column 'v' is a number: an id is made of columns of type")
    assert "corrected would be another event" in error["hint"]


def test_without_an_id_the_unique_columns_are_named(folder: Path) -> None:
    """`--event-id` may be forgotten; the hint works as typed."""
    error = new(file_of(folder, v=["1", "1"]), event_id="", code=1)["error"]
    assert error["message"].startswith("--event-id is missing")
    assert error["hint"] == "unique in this file: id, at; --event-id id"
    new(folder / "rows.csv", event_id="id")


def test_without_an_id_and_without_a_unique_column(folder: Path) -> None:
    file = folder / "rows.csv"
    file.write_text("at,v\n2026-01-01,1\n2026-01-01,2\n2026-01-02,2\n")
    assert "no column is unique" in new(file, event_id="", code=1)["error"]["hint"]
