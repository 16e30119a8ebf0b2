"""At the end of the tests: what random queries compared, the kills by place, the histories by pattern."""

from __future__ import annotations

import sys
from typing import Any

import pytest

COUNTS = (
    ("kills", "tests.support.kills", "TALLY"),
    ("histories", "tests.support.promises", "HISTORIES"),
    ("revisions", "tests.support.promises", "REVISIONS"),
)


def _of(module: str, name: str) -> Any:
    """What a module of the tests has counted; nothing if no test imported it."""
    return getattr(sys.modules.get(module), name, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each theme, a section for each count."""
    for theme, tally in _of("tests.random.agreement", "TALLIES").items():
        for line in [f"{theme}: {tally.lines()[0]}", *tally.lines()[1:]]:
            terminalreporter.write_line(line)
    for what, module, name in COUNTS:
        if counted := _of(module, name):
            terminalreporter.section(f"{counted.total()} {what}")
            for place, number in sorted(counted.items()):
                terminalreporter.write_line(f"{number:5d}  {place}")
