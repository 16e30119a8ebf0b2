"""From a file to rows in one command, and the question that a first pattern answers asked for."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.own_source import output_of, start
from trendlake.jobs.main import app

ROWS = "id,at,company,price\n" + "".join(
    f"t{n:02},2026-01-05T09:{n:02}:00Z,{'AB'[n % 2]},{[3, 9][n // 8 % 2] + n}\n" for n in range(40)
)
SOURCE = [
    "new",
    "source",
    "trades",
    "--from",
    "trades.csv",
    "--event-id",
    "id",
    "--event-time",
    "at",
    "--type",
    "Trade",
]
TIMES_ONLY = "id,at,user\n" + "".join(f"c{n:02},2026-01-05T{n:02}:00:00Z,u{n % 2}\n" for n in range(20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with no source, where commands are typed, and a file in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRENDLAKE_PROJECT", str(tmp_path))
    output_of("init", tmp_path)
    (tmp_path / "trades.csv").write_text(ROWS)
    return tmp_path


def test_rows_in_one_command(folder: Path) -> None:
    """Each line says what has been done; what it names is there, and can be tried and tested by itself."""
    out = output_of(*SOURCE, "--try")
    lines = out.splitlines()
    assert lines[0] == "reading trades.csv"
    assert "trades_streak on trades.csv: tried, nothing written" in lines
    assert lines[-1] == "next: trendlake ingest trades trades.csv"
    rows = out[out.index("trades_streak: ") :]
    assert rows == rows_of(output_of("try", "trades_streak", "--events", "trades.csv")) + lines[-1] + "\n"
    assert "1 passed, 0 failed" in output_of("test")
    assert output_of("validate").count("ok ") == 9


def rows_of(out: str) -> str:
    return out[out.index("trades_streak: ") :]


def test_the_document(folder: Path) -> None:
    """Nothing beside it but what people read, and rows as of `try`."""
    result = CliRunner().invoke(app, [*SOURCE, "--try", "--json"])
    document = json.loads(result.stdout)
    assert [Path(one).name for one in document["wrote"]] == ["trades.yaml", "trades_streak.yaml", "trades_streak.yaml"]
    tried = json.loads(CliRunner().invoke(app, ["try", "trades_streak", "--events", "trades.csv", "--json"]).stdout)
    assert document["tried"] == tried
    assert tried["rows"]


def test_a_file_of_a_pattern_stays(folder: Path) -> None:
    """With --overwrite the contract is written again, the pattern, which may have been edited, is not."""
    output_of(*SOURCE, "--try")
    file = folder / "conf" / "patterns" / "trades_streak.yaml"
    edited = file.read_text().replace("{3,}", "{4,}")
    file.write_text(edited)
    assert "trades_streak: " in output_of(*SOURCE, "--try", "--overwrite")
    assert file.read_text() == edited


def test_without_numbers(folder: Path) -> None:
    (folder / "clicks.csv").write_text(TIMES_ONLY)
    words = ["--from", "clicks.csv", "--event-id", "id", "--event-time", "at", "--type", "Click"]
    assert "clicks_sessions: " in output_of("new", "source", "clicks", *words, "--try")


@pytest.mark.parametrize("more", [["--reference"], ["--table", "/lake/t", "--event-id", "i", "--event-time", "t"]])
def test_try_is_for_files_of_events(folder: Path, more: list[str]) -> None:
    columns = ["--from", "trades.csv"] if more == ["--reference"] else []
    assert "--try is for files of events" in output_of("new", "source", "x", *columns, *more, "--try", code=2)


def test_the_questions_in_a_pipe(tmp_path: Path) -> None:
    """All templates, each in a line; the exit code is that of a missing argument."""
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    out = output_of("new", "pattern", "x", "--events", tmp_path / "trades.csv", "--project-dir", tmp_path, code=2)
    listed = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(listed) == 8
    assert max(map(len, listed)) <= 80
    assert [line.split()[0] for line in listed if "(does not fit)" in line] == ["funnel"]
    assert not (tmp_path / "conf" / "patterns" / "x.yaml").exists()


def test_the_question_on_a_terminal(tmp_path: Path) -> None:
    """It is asked for, with one that fits as the default."""
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    child, terminal = pty.openpty()
    words = ["new", "pattern", "x", "--events", str(tmp_path / "trades.csv"), "--project-dir", str(tmp_path)]
    command = [sys.executable, "-m", "trendlake.command", *words]
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    out = ""
    while "like [streak]:" not in out:
        assert select.select([child], [], [], 60)[0], out
        out += os.read(child, 4096).decode()
    os.write(child, b"sessions\n")
    assert process.wait(60) == 0
    os.close(child)
    assert "Which " in (tmp_path / "conf" / "patterns" / "x.yaml").read_text()


def test_constants_out_of_a_table(tmp_path: Path) -> None:
    """Without --events they come out of the source's table, if there is one; else some templates do not fit."""
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    at = ("--project-dir", tmp_path)
    out = output_of("new", "pattern", "high", "--like", "streak", *at, code=1)
    assert "its constant comes out of data, and --events FILE, or ingest some" in out
    output_of("new", "pattern", "calm", "--like", "sessions", *at)
    assert "INTERVAL '30' MINUTE" in (tmp_path / "conf" / "patterns" / "calm.yaml").read_text()
    output_of("ingest", "trades", tmp_path / "trades.csv", *at)
    output_of("new", "pattern", "high", "--like", "streak", *at)
    assert "in the table trades a quarter" in (tmp_path / "conf" / "patterns" / "high.yaml").read_text()
    assert "2 passed" in output_of("test", *at)


def test_a_zone_of_a_place(folder: Path) -> None:
    """Days are those of the zone that the contract states."""
    (folder / "trades.csv").write_text(ROWS.replace(":00Z", ":00"))
    output_of(*SOURCE, "--time-zone", "America/New_York")
    output_of("new", "pattern", "daily", "--like", "per-day", "--events", "trades.csv")
    assert "time_zone: America/New_York\n" in (folder / "conf" / "patterns" / "daily.yaml").read_text()
    assert "1 passed" in output_of("test")


def test_which_source(folder: Path) -> None:
    """The only one; of none or several it says what to type."""
    assert "the project has 0 sources" in output_of("new", "pattern", "x", "--like", "sessions", code=1)
    for name in ("trades", "others"):
        output_of("new", "source", name, *SOURCE[3:])
    out = output_of("new", "pattern", "x", "--like", "sessions", code=1)
    assert "--source others or --source trades" in out


COUNT = "name: all\nsource: trades\npattern: Trade E+\nreturn: {n: COUNT(*)}\nwithin: 1 day\n"
NOTE = "of n events a count is of all choices, about 2^n"


@pytest.mark.parametrize(
    ("edit", "noted"),
    [
        (("", ""), True),
        (("within", "group_by: [company]\nwhere: ['[company]']\nwithin"), True),
        (("Trade E+", "SEQ(Trade a, (SEQ(Trade b, Trade c))+)"), True),
        (("within", "where: [E.price < NEXT(E).price]\nwithin"), False),
        (("within", "where: [E.price > 3]\nwithin"), False),
        (("within", "select: contiguous\nwithin"), False),
        (("Trade E+", "Trade E{1,3}"), False),
        (("COUNT(*)", "MAX(LENGTH(*))"), False),
        (("COUNT(*)", "COUNT(*) FILTER (WHERE LENGTH(*) <= 2)"), False),
    ],
)
def test_a_count_without_a_condition(tmp_path: Path, edit: tuple[str, str], noted: bool) -> None:
    """One note of `validate` and `try`, where it is true."""
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    file = tmp_path / "conf" / "patterns" / "all.yaml"
    file.write_text(COUNT.replace(*edit))
    at: tuple[Any, ...] = ("--project-dir", tmp_path)
    for words in (["validate", file], ["try", "all", "--events", tmp_path / "trades.csv"]):
        assert " ".join(output_of(*words, *at).split()).count(NOTE) == int(noted)


@pytest.mark.parametrize(
    ("word", "near"), [("tries", "try"), ("vlidate", "validate"), ("runn", "run"), ("exec", None), ("median", None)]
)
def test_a_misspelt_command(word: str, near: str | None) -> None:
    """It is told which one is meant, or none: never one that does something else."""
    out = output_of(word, code=2)
    assert f"No such command '{word}'." in out
    assert (f"Did you mean '{near}'?" in out) == (near is not None)
    assert out.count("Did you mean") == int(near is not None)


def test_patterns_without_a_test(folder: Path) -> None:
    """They are named; with --require they are a fault."""
    output_of(*SOURCE, "--try")
    assert "without a test" not in output_of("test", "--require")
    output_of("new", "pattern", "plain", "--kind", "trends")
    assert "without a test: plain\n1 passed, 0 failed" in output_of("test")
    assert "without a test: plain" in output_of("test", "--require", code=1)
    assert "1 passed" in output_of("test", "trades_streak")


def test_errors_of_a_source_are_printed_once(folder: Path) -> None:
    """Those of a pattern whose results another one reads."""
    output_of(*SOURCE)
    patterns = folder / "conf" / "patterns"
    for name, source, kind in (("day", "trades", "Trade"), ("days", "results/day", "day")):
        text = f"name: {name}\nsource: {source}\npattern: {kind} e\nreturn: {{n: SUM(e.prise)}}\nwithin: 1 day\n"
        (patterns / f"{name}.yaml").write_text(text)
    out = output_of("validate", code=1)
    assert out.count("wrong ") == 2
    assert out.count("[UNKNOWN_ATTRIBUTE]") == 1
    assert "1 error shown above" in out
