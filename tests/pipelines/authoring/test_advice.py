"""What `validate`, `explain` and `try` say of conditions that are legal and rarely meant; none of it is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from tests.support.own_source import ISIG, output_of, project_at
from trendlake.jobs.main import app

RISING = """\
name: rising
kind: trends
source: s
pattern: R x{2,}
select: contiguous
where: [x.isig < NEXT(x).isig]
return: {n: COUNT(*), top: MAX(x.isig)}
within: 1 day
"""
NEVER = """\
name: never
kind: trends
source: s
pattern: R x
where: [x.isig <> NULL]
return: {n: COUNT(*)}
within: 1 day
"""
RULE = """\
    quality:
      - {name: filled, type: custom, engine: trendlake, implementation: "isig <> NULL"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the source `s` of `ISIG` and two patterns; no table, no Spark."""
    project_at(tmp_path, monkeypatch)
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TRENDLAKE_JARS", str(tmp_path / "no jars"))
    (tmp_path / "isig.csv").write_text(ISIG)
    roles = ("--event-id", "id", "--event-time", "at", "--type", "R")
    output_of("new", "source", "s", "--from", tmp_path / "isig.csv", *roles)
    for name, text in (("rising", RISING), ("never", NEVER)):
        (tmp_path / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    return tmp_path


def document_of(*arguments: str) -> Any:
    """The document of a command that succeeds."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def notes(file: str) -> list[str]:
    """What `validate` notes on a good file."""
    (document,) = document_of("validate", file)["files"]
    assert document["good"]
    listed: list[str] = document["notes"]
    return listed


def fill(folder: Path, isig: list[str], **more: Any) -> None:
    """A table of the source with these texts."""
    table = pa.table({"id": [str(i) for i in range(len(isig))], "isig": isig} | more)
    write_deltalake(str(folder / "state" / "warehouse" / "sources" / "s"), table, mode="append")


def test_texts_that_look_like_numbers_in_the_table(folder: Path) -> None:
    """`validate` and `explain` look at the first rows of its newest file."""
    fill(folder, ["8.5", "9.5", "nil"])
    order, top = notes("conf/patterns/rising.yaml")
    assert "conf/patterns/rising.yaml:6:9: " in order
    assert "< compares isig letter by letter, as texts: '10' comes before '9'. isig in the table of s: 2 of 3" in order
    assert "values look like numbers, such as '8.5', and others do not, such as 'nil'" in order
    assert 'for numbers: logicalType: number in the contract, and nullWords: ["nil"]' in order
    assert "MAX compares isig letter by letter" in top
    explained = document_of("explain", "rising")
    assert [text.splitlines()[0].partition("] ")[2] for text in explained["warnings"]] == [
        text.splitlines()[0].partition("] ")[2] for text in (order, top)
    ]
    assert "note      " in output_of("explain", "rising")


def test_texts_that_are_texts(folder: Path) -> None:
    """Their order is meant."""
    fill(folder, ["a1", "b2", "c3"])
    assert notes("conf/patterns/rising.yaml") == []


def test_without_a_table_the_type_is_all_that_is_known(folder: Path) -> None:
    order, _ = notes("conf/patterns/rising.yaml")
    assert "no table of s shows whether its texts look like numbers" in order
    assert output_of("validate", "conf/patterns/rising.yaml").startswith("ok    ")


def test_try_sees_the_events(folder: Path) -> None:
    """Also in its document; the numbers it shows are those of texts."""
    trial = document_of("try", "rising", "--events", "isig.csv")
    assert [(row["n"], row["top"]) for row in trial["rows"]] == [(2, "nil")]
    assert [("3 of 4 values look like numbers" in note) for note in trial["notes"]] == [True, True]
    assert "note      " in output_of("try", "rising", "--events", "isig.csv")


def test_as_numbers_there_is_nothing_to_say(folder: Path) -> None:
    """3 steps and 10.5, which are right."""
    roles = ("--event-id", "id", "--event-time", "at", "--type", "R", "--null-word", "nil", "--overwrite")
    output_of("new", "source", "s", "--from", "isig.csv", *roles)
    assert notes("conf/patterns/rising.yaml") == []
    trial = document_of("try", "rising", "--events", "isig.csv")
    assert [(row["n"], row["top"]) for row in trial["rows"]] == [(3, 10.5)]
    assert trial["notes"] == []


def test_a_comparison_with_null(folder: Path) -> None:
    """In `validate`, `try` and `explain`, in words and `--json`, with exit code 0."""
    (note,) = notes("conf/patterns/never.yaml")
    assert "[BAD_CONDITION] this is never true: nothing equals NULL" in note
    assert note.endswith("write x.isig IS NOT NULL")
    (tried,) = document_of("try", "never", "--events", "isig.csv")["notes"]
    assert tried.endswith("write x.isig IS NOT NULL")
    explained = document_of("explain", "never")
    assert explained["warnings"][0].endswith("write x.isig IS NOT NULL")
    assert output_of("explain", "never").count("write x.isig IS NOT NULL") == 1


def test_conditions_of_contracts(folder: Path) -> None:
    """A rule that no row keeps; `try` says it too."""
    contract = folder / "data_contracts" / "s.yaml"
    contract.write_text(contract.read_text().replace("slaProperties:", f"{RULE}slaProperties:"))
    (note,) = notes("data_contracts/s.yaml")
    assert note.endswith("write isig IS NOT NULL")
    assert note in document_of("try", "never", "--events", "isig.csv")["notes"][-1].replace(
        str(contract), "data_contracts/s.yaml"
    )


def test_an_order_of_texts_in_a_contract(folder: Path) -> None:
    contract = folder / "data_contracts" / "s.yaml"
    rule = RULE.replace("isig <> NULL", "isig < '20'")
    contract.write_text(contract.read_text().replace("slaProperties:", f"{rule}slaProperties:"))
    fill(folder, ["8.5", "9.5"])
    assert "isig in the table of s: 2 of 2 values look like numbers" in notes("data_contracts/s.yaml")[0]


def test_a_sequence_of_texts(folder: Path) -> None:
    """It decides which of two rows counts: '10' comes before '9'."""
    contract = folder / "data_contracts" / "s.yaml"
    text = "logicalType: string\n        customProperties: [{property: eventRole, value: sequence}]\n"
    before = "- name: isig\n        logicalType: string\n"
    assert before in contract.read_text()
    contract.write_text(contract.read_text().replace(before, f"- name: isig\n        {text}"))
    fill(folder, ["9", "10"])
    (note,) = notes("data_contracts/s.yaml")
    assert "the role sequence compares isig letter by letter" in note
