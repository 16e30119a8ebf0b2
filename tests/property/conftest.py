"""A line for each theme at the end of the run."""

from __future__ import annotations

import sys

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What each theme compared and what it could not."""
    agreement = sys.modules.get("tests.property.agreement")
    for theme, tally in agreement.TALLIES.items() if agreement else ():
        for line in [f"{theme}: {tally.lines()[0]}", *tally.lines()[1:]]:
            terminalreporter.write_line(line)
