"""A year of real flights backfilled by the command, as a user does: 365 daily windows, with Spark's own start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.measured import Measured, show
from bench.trades import timed
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.spark.jars import jars_folder

PATTERN = "delay_snowball"
FROM, TO = "2013-01-01T09:00:00", "2014-01-01T09:00:00"
BAR = 240.0
"""Seconds."""


def flights_backfill(state: Path) -> Measured:
    """Wall-clock seconds of one `trendlake backfill` into an empty results table, the flights already ingested."""
    shutil.rmtree(state, ignore_errors=True)
    trendlake(state, "ingest", "flights")
    lines: list[str] = []
    seconds = timed(lambda: lines.extend(trendlake(state, "backfill", PATTERN, "--from", FROM, "--to", TO)))
    again = timed(lambda: trendlake(state, "backfill", PATTERN, "--from", FROM, "--to", TO))
    note = f"{lines[-1]}; the same once more, all there already: {again:.0f} s; wall clock"
    return Measured("365 daily windows of flights backfilled", seconds, "s", BAR, note, at_most=True)


def trendlake(state: Path, *arguments: str) -> list[str]:
    """The lines that a command prints. Raises SystemExit with its words where it fails."""
    env = os.environ | {"TRENDLAKE_STATE": str(state), "TRENDLAKE_JARS": str(jars_folder(find_project()))}
    command = [sys.executable, "-m", "trendlake.command", *arguments]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"trendlake {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout.splitlines()


if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show([flights_backfill(folder / "bench" / "flights")], "flights_backfill")
