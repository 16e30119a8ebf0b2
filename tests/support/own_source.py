"""A project of one's own made by the command's words: a source `trades` out of a file, a pattern over it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from trendlake.jobs.main import app

FALLING = """\
name: falling
source: trades
pattern: Trade E+
where: ["[company]", "E.price > NEXT(E).price"]
return: {trends: COUNT(*), lowest: MIN(E.price)}
group_by: [company]
within: 1 minute
"""


ISIG = """\
id,at,isig
1,2026-01-01T00:00:00Z,8.5
2,2026-01-01T00:05:00Z,9.5
3,2026-01-01T00:10:00Z,10.5
4,2026-01-01T00:15:00Z,nil
"""
"""A file in which one cell decides a type."""


def output_of(*arguments: str | Path, code: int = 0) -> str:
    """What the command prints, ending with the exit code `code`."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def project_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new project in the folder, where commands are typed."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRENDLAKE_PROJECT", str(folder))
    output_of("init", folder)


def start(folder: Path, file: Path, rows: str) -> None:
    """A project in `folder` with the source `trades`, whose events are all of the type Trade: `rows`, put in `file`."""
    file.write_text(rows)
    output_of("init", folder)
    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade"]
    output_of("new", "source", "trades", "--from", file, *columns, "--project-dir", folder)


def pair_of_a_batch(patterns: Path) -> list[Path]:
    """The files of two patterns as `FALLING` that run together, in the folder `patterns`."""
    files = [patterns / f"{name}_of_two.yaml" for name in ("first", "second")]
    for file in files:
        file.write_text(FALLING.replace("name: falling", f"name: {file.stem}\nbatch: two"))
    return files
