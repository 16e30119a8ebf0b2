"""`trendlake try --events FILE`: a pattern over a file, without Spark, and what is said of the sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.own_source import FALLING, output_of, start

ROWS = """\
id,at,company,price
t1,2026-01-05T09:00:00,A,10
t2,2026-01-05T09:00:01Z,A,9
t3,2026-01-05 09:00:02,A,8.5
t4,2026-01-05T09:01:03,B,7
t4,2026-01-05T09:01:05,B,3
,2026-01-05T09:01:06,B,2
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a warehouse, where Spark could not start: Delta's jars are not there."""
    monkeypatch.setenv("TRENDLAKE_JARS", str(tmp_path / "no jars"))
    monkeypatch.setenv("TRENDLAKE_PROJECT", str(tmp_path))
    start(tmp_path, tmp_path / "trades.csv", ROWS.replace("t4,2026-01-05T09:01:05,B,3\n", ""))
    (tmp_path / "trades.csv").write_text(ROWS)
    (tmp_path / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    return tmp_path


def as_json(*arguments: str | Path) -> Any:
    return json.loads(output_of("try", "falling", *arguments, "--json"))


def test_a_file_is_all_there_is(project: Path) -> None:
    """Rows that break the contract are told and do not count; of the doubled id neither row counts."""
    trial = as_json("--events", project / "trades.csv")
    assert [(row["company"], row["trends"], row["lowest"]) for row in trial["rows"]] == [("A", 7, 8.5)]
    assert trial["broken"] == {"id_required": 1, "id_unique": 2}
    assert (trial["windows"], trial["events"], trial["rows_taken"], trial["rows_of_source"]) == (2, 3, 6, 6)
    assert (trial["from"], trial["open_windows"]) == ("2026-01-05T09:00:00Z", 1)


def test_what_is_left_out_is_said(project: Path) -> None:
    """Three rows are the newest minute's, so three events take that one only."""
    out = output_of("try", "falling", "--events", project / "trades.csv", "--max-events", "3")
    assert "took      3 of 6 rows, all of 1 window: 2026-01-05 09:01 to 2026-01-05 09:02 (UTC)" in out
    assert "left out  1 older window" in out
    assert "broken    3 rows that broke the contract did not count: id_required 1, id_unique 2" in out
    assert "│" not in out  # a pipe gets no frame
    first = as_json("--events", project / "trades.csv", "--from", "2026-01-05T09:00", "--to", "2026-01-05T09:01")
    assert [row["company"] for row in first["rows"]] == ["A"]


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--from", "2026-01-05"], "one end of the interval is missing", 1),
        (["--from", "2026-01-05", "--to", "2026-01-05"], "the interval is empty", 1),
        (["--sample"], "leave out --from, --to, --events and --table", 2),
    ],
)
def test_mistakes(project: Path, options: list[str], message: str, code: int) -> None:
    out = output_of("try", "falling", "--events", project / "trades.csv", *options, code=code)
    assert message in " ".join(out.replace("│", " ").split())
    assert "Traceback" not in out


def test_every_rule_is_judged(project: Path) -> None:
    """Conditions with logarithms, and regular expressions."""
    contract = project / "data_contracts" / "trades.yaml"
    rules = "\n".join(
        [
            "        logicalTypeOptions: {pattern: '^[^X]'}",
            "    quality:",
            "      - {name: far, type: custom, engine: trendlake, implementation: log10(price) < 9}",
            "      - {name: paid, type: custom, engine: trendlake, implementation: price > 8.7}",
        ]
    )
    text = contract.read_text()
    at = text.index("slaProperties")
    lines = text[:at].replace(
        "- name: company\n        logicalType: string", "- name: company\n        logicalType: string\nHERE"
    )
    assert "HERE" in lines
    first, rest = rules.split("\n", 1)
    contract.write_text(lines.replace("HERE", first).rstrip() + "\n" + rest + "\n" + text[at:])
    trial = as_json("--events", project / "trades.csv")
    assert trial["unjudged"] == []
    assert trial["broken"] == {"paid": 3, "id_required": 1}


SILENT = """\
name: falling
source: trades
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [r]
arcs:
  - {from: p, to: q, when: "e.price > 0", set: {n: n + 1}}
  - {from: q, to: r, at: window_end}
partition_by: [company]
within: 1 minute
"""


def test_an_event_of_the_far_future_does_not_end_windows(project: Path) -> None:
    """As in a run (`maxFuture`): what waits for time to come waits for an event that is not too far ahead."""
    (project / "conf" / "patterns" / "falling.yaml").write_text(SILENT)
    interval = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T09:05")
    matches = []
    for last in ("2026-01-05T09:00:20", "2999-01-05T09:00:00", "2026-01-05T09:02:00"):
        file = project / "more.csv"
        file.write_text(
            f"id,at,company,price\nt1,2026-01-05T09:00:00,A,10\nt2,2026-01-05T09:00:10,A,9\nt3,{last},A,8\n"
        )
        matches.append({row["first"] for row in as_json("--events", file, *interval)["rows"]})
    assert matches == [set(), set(), {"t2"}]  # t2 ends what t1 began
