"""`trendlake try` over the first and the last moment of the calendar, and over more windows than memory holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.own_source import output_of, start

ROWS = """\
id,at,company,price
a0,0001-01-01T00:00:00Z,A,9
a1,0001-01-01T00:00:00.000001Z,A,8
a2,2026-01-05T09:00:00Z,A,7
a3,2026-01-05T09:00:01Z,A,6
a4,9999-12-31T23:59:59.999998Z,A,5
a5,9999-12-31T23:59:59.999999Z,A,4
"""
KINDS = {
    "trends": "pattern: Trade E+\nwhere: ['[company]']\nreturn: {n: COUNT(*)}\ngroup_by: [company]\n",
    "matches": "kind: matches\npattern: SEQ(Trade a, Trade b)\nwhere: ['[company]']\nreturn: {n: SUM(b.price)}\n",
    "automaton": "kind: automaton\nregister: {n: {type: int, init: 0}}\nstart: p\nfinal: [q]\n"
    "arcs: [{from: p, to: q, when: 'e.price > 0'}]\npartition_by: [company]\n",
    "algebra": "kind: algebra\npartition_by: [company]\n"
    "pattern: SELECT price, price_1 AS n FROM EVENTS NEXT{$2.price < $1.price} EVENTS\n",
}
"""One pattern of each kind that reads events in a row."""
EARLY, LATE = ("--from", "0001-01-01", "--to", "0001-02-01"), ("--from", "9999-12-01", "--to", "9999-12-31")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far")
    start(folder, folder / "trades.csv", ROWS)
    return folder


def tried(project: Path, text: str, *options: str) -> Any:
    """What `try --json` prints of a pattern."""
    (project / "conf" / "patterns" / "far.yaml").write_text(f"name: far\nsource: trades\n{text}")
    events = ("--events", project / "trades.csv", "--project-dir", project)
    printed = output_of("try", "far", *events, *options)
    assert "FAULT" not in printed
    return json.loads(output_of("try", "far", *events, *options, "--json"))


ROWS_OF = {
    ("trends", "1 microsecond"): 5,
    ("trends", "1 day"): 2,
    ("trends", "3285000 days"): 0,
    ("matches", "1 microsecond"): 0,
    ("matches", "1 day"): 2,
    ("matches", "3285000 days"): 3,
    ("automaton", "1 microsecond"): 4,
    ("automaton", "1 day"): 4,
    ("automaton", "3285000 days"): 0,
    ("algebra", "1 microsecond"): 0,
    ("algebra", "1 day"): 2,
    ("algebra", "3285000 days"): 3,
}
"""How many rows: those of windows of 9,000 years end with panes, and windows that begin in 1970 end too late."""


@pytest.mark.parametrize(("kind", "within"), ROWS_OF)
def test_all_of_time(project: Path, kind: str, within: str) -> None:
    """Every width works; windows that end in the year 10000 or begin before the year 1 are counted as left out."""
    trial = tried(project, f"{KINDS[kind]}within: {within}\n")
    assert trial["rows_of_source"] == 6
    assert trial["windows_outside"] > 0
    assert len(trial["rows"]) == ROWS_OF[kind, within]


@pytest.mark.parametrize("kind", KINDS)
def test_the_ends_of_the_calendar(project: Path, kind: str) -> None:
    """The first month has the rows of its first day; the last month is whole but for its last day."""
    text = f"{KINDS[kind]}within: 1 day\n"
    first, last = tried(project, text, *EARLY), tried(project, text, *LATE)
    assert first["rows"]
    assert first["from"] == "0001-01-01T00:00:00Z"
    assert not last["rows"]
    assert last["to"] == "9999-12-31T00:00:00Z"


def test_windows_that_begin_before_the_year_1(project: Path) -> None:
    """Of windows that overlap those with a start in the calendar have rows, and the others are counted."""
    text = f"{KINDS['trends']}within: 10 days\nslide: 1 day\norigin: 2026-01-05T00:00:00Z\n"
    trial = tried(project, text, *EARLY)
    assert [(row["window_start"], row["n"]) for row in trial["rows"]] == [("0001-01-01T00:00:00Z", 3)]
    assert trial["windows_outside"] == 9 + 10
    printed = output_of("try", "far", "--events", project / "trades.csv", "--project-dir", project)
    assert "left out  19 windows outside the years 1 to 9999, which no run computes" in printed


@pytest.mark.parametrize("end", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "10000-01-01"])
def test_an_interval_outside_the_calendar_is_refused(project: Path, end: str) -> None:
    """A time that is in the calendar where it was written, and not in UTC, too."""
    (project / "conf" / "patterns" / "far.yaml").write_text(
        f"name: far\nsource: trades\n{KINDS['trends']}within: 1 day\n"
    )
    printed = output_of(
        "try", "far", "--events", project / "trades.csv", "--from", end, "--to", end, "--project-dir", project, code=1
    )
    assert "outside the years 1 to 9999" in printed or "is no ISO 8601 time" in printed
