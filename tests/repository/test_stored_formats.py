"""Table data outlives code: formats are those of the golden file."""

from __future__ import annotations

import json

import pytest

from tests.golden.formats import FORMATS, formats

STORED = json.loads(FORMATS.read_text())
NOW = formats()


@pytest.mark.parametrize("name", STORED)
def test_a_format_stays(name: str) -> None:
    """Where it is meant to change: `python -m tests.golden.formats`, and a line in CHANGELOG.md."""
    assert NOW[name] == STORED[name]


def test_no_format_came_or_went() -> None:
    assert list(NOW) == list(STORED)
