"""Table data outlives code: what commits note keeps its keys and types."""

from __future__ import annotations

import json

import pytest

from tests.golden.commit_notes import NOTES, commit_notes
from tests.support.flights import Flights

pytestmark = pytest.mark.spark


def test_commit_notes_keep_their_form(lake: Flights) -> None:
    """Where they are meant to change: `python -m tests.golden.commit_notes`, and a line in CHANGELOG.md."""
    assert commit_notes(lake) == json.loads(NOTES.read_text())
