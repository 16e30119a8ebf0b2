"""How-to pages of a project: their files are written and their commands run where the page has them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trendlake.jobs.main import app


def follow(section: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Follows a section in an empty folder: "the file `NAME`:" names the text after it, commands run as typed, and a
    table is held against what was shown last. The number of such tables."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRENDLAKE_STATE", str(folder / "state"))
    named, printed, tables = "", "", 0
    for part in re.split(r"(```\w+\n.*?```|^\|.*?\n\n)", section, flags=re.MULTILINE | re.DOTALL):
        if part.startswith("```sh"):
            for line in part.splitlines()[1:-1]:
                printed = output_of(shlex.split(line)[1:])
        elif part.startswith("```"):
            Path(named).write_text(part.split("\n", 1)[1].removesuffix("```"))
        elif part.startswith("|"):
            names, _, *rows = [
                [cell.strip() for cell in line.strip("|").split("|")] for line in part.strip().splitlines()
            ]
            shown_rows = json.loads(printed)["rows"]
            assert sorted([words(row[name]) for name in names] for row in shown_rows) == sorted(rows)
            tables += 1
        named = (re.findall(r"[Tt]he file `([^`]+)`", part) or [named])[-1]
    return tables


def output_of(command: list[str]) -> str:
    """What a command prints, `show` as JSON."""
    result = CliRunner().invoke(app, [*command, *(["--json"] if command[0] == "show" else [])])
    assert result.exit_code == 0, result.output
    return result.stdout


def words(cell: object) -> str:
    """A cell as the page has it; of a list of ids its items."""
    if isinstance(cell, list):
        return ", ".join(map(words, cell))
    return str(cell).replace("T", " ").removesuffix("Z").removesuffix("+00:00")
