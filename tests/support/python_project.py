"""A project with a run and a revision, as callers from Python have it."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner

from tests.jobs.test_without_java import FIRST, LATER, PATTERN
from trendlake.jobs.main import app

DAYS = ("2024-01-01", "2024-01-03")
SOURCE = """
init .
new source trades --from first.csv --event-time event_time --event-id event_id --type Trade
ingest trades first.csv
"""
RUNS = f"""
run falling --from {DAYS[0]} --to {DAYS[1]} --run-id first
ingest trades later.csv
revise falling --run-id second
"""


def make_project(folder: Path, commands: str = SOURCE + RUNS) -> None:
    """In `folder`, which is the working directory."""
    assert Path.cwd() == folder
    assert "TRENDLAKE_STATE" not in os.environ
    for name, text in {"first.csv": FIRST, "later.csv": LATER, "conf/patterns/falling.yaml": PATTERN}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for line in filter(None, commands.split("\n")):
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == 0, result.output
