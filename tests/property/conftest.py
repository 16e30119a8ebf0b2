"""Settings of the property tests, and a line for each theme at the end of the run."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What each theme compared and what it could not."""
    agreement = sys.modules.get("tests.property.agreement")
    for theme, tally in agreement.TALLIES.items() if agreement else ():
        for line in [f"{theme}: {tally.lines()[0]}", *tally.lines()[1:]]:
            terminalreporter.write_line(line)
