"""docs/tutorial.md does what it says: each block of commands is run, each line it promises is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"
ANYTHING = "…"


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each block of commands, with the lines of the block of output that follows it."""
    for commands, output in re.findall(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL):
        yield commands, output.splitlines()


def missing(promised: list[str], printed: str) -> list[str]:
    """Promised lines that do not come, in their order: `…` stands for anything, runs of spaces for one."""
    rest, actual = " ".join(printed.split()), []
    for line in promised:
        pieces = [re.escape(" ".join(piece.split())) for piece in line.split(ANYTHING)]
        match = re.search(".*?".join(pieces), rest)
        if match is None:
            actual.append(line)
        else:
            rest = rest[match.end() :]
    return actual


def test_missing_lines_are_seen() -> None:
    assert missing(["a b", "c … d"], "x a   b\nc 1 2 d") == []
    assert missing(["c", "a"], "a c") == ["a"]


def test_every_promise_is_kept_by_a_command() -> None:
    """The walk is all there: a source, a pattern, a day, a month, a late reading, a broken one."""
    commands = "\n".join(block for block, _ in steps(TUTORIAL.read_text()))
    words = (
        "init",
        "new source",
        "validate",
        "test",
        "try",
        "ingest",
        "run",
        "backfill",
        "revise",
        "history",
        "quarantine show",
        "quarantine replay",
    )
    assert [
        word for word in words if f"trendlake {word} " not in commands and f"trendlake {word}\n" not in commands
    ] == []
    assert all(promised for block, promised in steps(TUTORIAL.read_text()) if "trendlake run" in block)


@pytest.mark.chaos
@pytest.mark.spark
@pytest.mark.slow
def test_the_tutorial(tmp_path: Path) -> None:
    """As a new user would, from nothing: only the page's commands, in one folder, each in a process of its own."""
    command = tmp_path / "bin" / "trendlake"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trendlake.jobs.main "$@"\n')
    command.chmod(0o755)
    left_out = ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment.setdefault("TRENDLAKE_JARS", str(Path(os.environ.get("TRENDLAKE_STATE", ROOT / ".trendlake")) / "jars"))
    folder = tmp_path
    for commands, promised in steps(TUTORIAL.read_text()):
        done = subprocess.run(
            ["bash", "-euc", f"{commands}\npwd > '{tmp_path}/where'"],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        assert missing(promised, done.stdout) == [], f"{commands}\n{done.stdout}"
        folder = Path((tmp_path / "where").read_text().strip())
