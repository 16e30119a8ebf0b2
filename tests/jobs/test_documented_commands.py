"""What the pages tell people to type are words and options that the command has."""

from __future__ import annotations

import re
import shlex
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.conftest import ROOT
from trendlake.jobs.main import app

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def typed(text: str) -> list[str]:
    """The `trendlake` commands of blocks of shell and of code in a line."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for part in block.splitlines() for line in part.split("&&")]
    lines += re.findall(r"`(trendlake [a-z][^`|\n]*)`", text)
    matches = (re.search(r"(?:^|/|\s)trendlake (\S.*)$", line.strip()) for line in lines)
    return [match[1].split("  #")[0] for match in matches if match and not line_is_prose(match[1])]


def line_is_prose(words: str) -> bool:
    return re.search(r"\[|\.\.\.", words) is not None


@cache
def commands() -> Any:
    return get_command(app)


def unknown(command: str) -> str | None:
    """The word or option of a command that there is not."""
    words = shlex.split(command, comments=True)
    node = commands()
    while hasattr(node, "commands"):
        if not words or words[0] not in node.commands:
            return None if not words else words[0]
        node = node.commands[words.pop(0)]
    if not node.context_settings.get("allow_interspersed_args", True):  # from its first word on they are Airflow's
        words = list(takewhile(lambda word: word.startswith("-"), words))
    options = {name for parameter in node.params for name in parameter.opts} | {"--help"}
    return next((word for word in words if word.startswith("--") and word not in options), None)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_are_there(path: Path) -> None:
    wrong = {command: word for command in typed(path.read_text()) if (word := unknown(command))}
    assert wrong == {}


def test_they_are_looked_for() -> None:
    assert len(typed((ROOT / "README.md").read_text())) > 20
    assert unknown("run x --form 2013-01-01") == "--form"
    assert unknown("quarantine shoe flights") == "shoe"
    assert unknown("ru") == "ru"
    assert unknown("airflow --prt") == "--prt"
    assert unknown("airflow dags list --output json") is None
