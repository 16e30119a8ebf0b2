"""What `run` says below the line of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.own_source import output_of, project_at

CONTIGUOUS = """\
name: next_ones
source: trades
pattern: SEQ(Trade A, Trade B)
select: contiguous
return: {n: COUNT(*)}
within: 1 day
"""
SILENT = """\
name: silent
source: trades
kind: matches
pattern: SEQ(Trade a, NOT(Trade b))
within: 2 hours
"""
ROWS = ["1,2026-05-04T23:00:00Z,1", "2,2026-05-04T23:00:00Z,2", "3,2026-05-04T23:30:00Z,3"]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three trades, two of them at one time."""
    project_at(tmp_path, monkeypatch)
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "state"))
    file = tmp_path / "trades.csv"
    file.write_text("\n".join(["id,at,price", *ROWS]))
    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade"]
    output_of("new", "source", "trades", "--from", file, *columns)
    output_of("ingest", "trades", file)
    return tmp_path


def day_of(folder: Path, text: str, date: str = "2026-05-04", end: str = "2026-05-05") -> str:
    name = text.split()[1]
    (folder / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    return output_of("run", name, "--from", date, "--to", end)


def test_order_of_ids(typed: Path) -> None:
    """A pattern that asks which event is next, over events of one time. Once the contract names a sequence, it is
    silent."""
    text = "ids alone order 1 pair of neighbours of one time: give a column of the source the role sequence"
    assert text in day_of(typed, CONTIGUOUS)
    contract = typed / "data_contracts" / "trades.yaml"
    role = "        customProperties: [{property: eventRole, value: sequence}]\n"
    lines = contract.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "- name: price" in line)
    contract.write_text("".join([*lines[: at + 1], role, *lines[at + 1 :]]))
    assert "ids alone" not in day_of(typed, CONTIGUOUS.replace("next_ones", "in_order"))


def test_a_number_that_does_not_fit_stops_no_other_pattern(typed: Path) -> None:
    """A derived column of one pattern of a run overflows where ids are counted, too."""
    patterns = typed / "conf" / "patterns"
    lines = "derive: {far: price * 9000000000000000000}\nwhere: [A.far > 0]"
    bad = CONTIGUOUS.replace("next_ones", "overflows").replace("select:", f"{lines}\nselect:")
    (patterns / "overflows.yaml").write_text(bad)
    (patterns / "next_ones.yaml").write_text(CONTIGUOUS)
    interval = ("--from", "2026-05-04", "--to", "2026-05-05")
    printed = output_of("run", "overflows", "next_ones", *interval, code=1)
    assert "overflow" in printed
    assert "next_ones: " in output_of("show", "next_ones")


def test_rows_that_come_later(typed: Path) -> None:
    """A NOT at the end of a pattern decides at midnight what happened before: that is no zero."""
    output = day_of(typed, SILENT)
    assert "no result row yet" in output
    assert (
        "rows whose start is after 4 May 2026, 22:00 UTC come with later windows: the last NOT decides them" in output
    )
    assert "0 result rows" not in output
    later = day_of(typed, SILENT, "2026-05-05", "2026-05-06")
    assert "1 result row staged" in later
