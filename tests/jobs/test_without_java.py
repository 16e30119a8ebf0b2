"""A small project is used without Java: what each command prints is what the engine says of the same events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.csv import read_csv

from trendlake import evaluate

FIRST = """event_id,event_time,symbol,price
a1,2024-01-01T10:00:00Z,A,5.0
a2,2024-01-01T10:10:00Z,A,4.0
a3,2024-01-01T10:20:00Z,A,3.0
b1,2024-01-01T11:20:00Z,B,3.0
b2,2024-01-01T12:20:00Z,B,2.0
a4,2024-01-02T10:20:00Z,A,1.0
"""
LATER = """event_id,event_time,symbol,price
a2,2024-01-01T10:10:00Z,A,6.5
a7,2024-01-01T13:20:00Z,A,2.5
"""
NOW = """event_id,event_time,symbol,price
a1,2024-01-01T10:00:00Z,A,5.0
a2,2024-01-01T10:10:00Z,A,6.5
a3,2024-01-01T10:20:00Z,A,3.0
b2,2024-01-01T12:20:00Z,B,2.0
a4,2024-01-02T10:20:00Z,A,1.0
a7,2024-01-01T13:20:00Z,A,2.5
"""
PATTERN = """name: falling
kind: trends
source: trades
pattern: Trade E+
where: ["[symbol]", "E.price > NEXT(E).price"]
return: {trends: COUNT(*), low: MIN(E.price)}
group_by: [symbol]
within: 1 day
schedule: "@daily"
"""
COMMANDS = """
new source trades --from first.csv --event-time event_time --event-id event_id --type Trade
ingest trades first.csv
run falling --from 2024-01-01 --to 2024-01-03 --run-id first
ingest trades later.csv
source delete trades --ids gone.csv --yes
revise falling
show falling --json
diff falling --from 1 --to 2 --json
history falling --window 2024-01-01 --group symbol=A --json
runs --json
quarantine show trades
report falling --run-id first
maintain --json
source delete trades --where price=2.5 --yes --json
show falling --json
reset falling --yes --json
"""
SCRIPT = """
import sys
from trendlake.jobs.main import app

for line in sys.argv[1].strip().splitlines():
    print(f"> {line}", flush=True)
    code = app(line.split(), prog_name="trendlake", standalone_mode=False)
    assert not code, (line, code)
"""


def test_a_small_project(tmp_path: Path) -> None:
    """Deliveries, a correction, deletions, a run, a revision, maintenance, a reset; every step says that it was
    done here."""
    files = {
        "first.csv": FIRST,
        "later.csv": LATER,
        "gone.csv": "event_id\nb1\n",
        "conf/patterns/falling.yaml": PATTERN,
    }
    assert run(tmp_path, "init .").splitlines()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = run(tmp_path, COMMANDS)
    shown, maintained = (one["rows"] for one in all_after(said, "show falling --json"))
    names = ("symbol", "trends", "low")
    (tmp_path / "now.csv").write_text(NOW)
    expected = evaluate(
        tmp_path / "conf/patterns/falling.yaml",
        read_csv(tmp_path / "now.csv").append_column("event_type", pa.array(["Trade"] * 6)),
    )
    assert table(shown, names) == table(expected.to_pylist(), names)
    assert {row["road"] for row in after(said, "runs --json")["records"]} - {None} == {"here"}
    assert maintained == shown
    tables = {one["table"]: one["files_after"] for one in after(said, "maintain --json")["tables"]}
    assert tables == dict.fromkeys(("sources/trades", "results/falling", "trendlake_runs"), 1)
    assert after(said, "source delete trades --where price=2.5 --yes --json")["rows"] == 1
    assert after(said, "reset falling --yes --json")["removed"]
    assert not (tmp_path / ".trendlake/warehouse/results/falling").exists()


def test_broken_rows(tmp_path: Path) -> None:
    """The first ones make the quarantine."""
    assert run(tmp_path, "init .").splitlines()
    (tmp_path / "first.csv").write_text(FIRST)
    (tmp_path / "broken.csv").write_text(FIRST.splitlines()[0] + "\na8,,A,2.5\n")
    lines = COMMANDS.strip().splitlines()[:2]
    said = run(tmp_path, "\n".join([*lines, "ingest trades broken.csv", "quarantine show trades --json"]))
    (row,) = after(said, "quarantine show trades --json")["rows"]
    assert (row["event_id"], row["price"], row["event_time"]) == ("a8", 2.5, None)


def run(folder: Path, commands: str) -> str:
    """What the commands print, in one process that finds no Java."""
    environment = os.environ | {"JAVA_HOME": str(folder / "none"), "PATH": "/usr/bin:/bin", "COLUMNS": "300"}
    environment.pop("TRENDLAKE_STATE", None)
    command = [sys.executable, "-c", SCRIPT, commands]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def after(said: str, command: str) -> Any:
    """The JSON that a command has printed."""
    (document,) = all_after(said, command)
    return document


def all_after(said: str, command: str) -> list[Any]:
    """As `after`, each time that it was typed."""
    return [json.loads(text.split("\n> ", 1)[0]) for text in said.split(f"> {command}\n")[1:]]


def table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return sorted(tuple(str(row[name]) for name in names) for row in rows)
