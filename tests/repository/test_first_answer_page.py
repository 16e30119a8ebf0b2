"""docs/how-to/first-answer.md: its commands, as typed, print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.own_source import output_of, project_at
from trendlake.pipelines.authoring.templates import TEMPLATES

PAGE = (ROOT / "docs" / "how-to" / "first-answer.md").read_text()
FILE = re.compile(r"cat > (\S+) <<'END'\n(.*?)END\n", re.DOTALL)


def typed(block: str) -> str:
    """What the lines of a block print."""
    for name, text in FILE.findall(block):
        Path(name).write_text(text)
    out = ""
    for line in FILE.sub("", block).splitlines():
        program, *words = shlex.split(line)
        out += Path(words[0]).read_text() if program == "cat" else output_of(*words)
    return out


def plain(line: str) -> str:
    return " ".join(line.split())


def test_each_block_prints_what_follows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_at(tmp_path, monkeypatch)
    blocks = re.findall(r"```sh\n(.*?)```\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    for commands, shown in blocks:
        printed = [plain(line) for line in typed(commands).splitlines()]
        assert [line for line in map(plain, shown.splitlines()) if line not in printed] == []


def test_all_questions_are_there() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == [one.name for one in TEMPLATES]
