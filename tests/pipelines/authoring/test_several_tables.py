"""Mistakes of a pattern with `sources` in a project: those of the file come before those of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendlake.cep_core import PatternErrors
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.project.paths import Project

FILE = """name: unpaid
kind: matches
sources: {Order: orders, Payment: payments}
pattern: SEQ(Order o, NOT Payment p within 1 hour)
within: 1 day
"""


def project_with(tmp_path: Path, text: str) -> tuple[Project, Path]:
    file = tmp_path / "conf" / "patterns" / "unpaid.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return Project(tmp_path, tmp_path / ".trendlake"), file


def test_a_table_without_a_contract(tmp_path: Path) -> None:
    with pytest.raises(PatternErrors) as caught:
        compiled(*project_with(tmp_path, FILE))
    (error,) = caught.value.errors
    assert (error.code, "'orders' has no contract" in error.message) == ("PROJECT", True)
    assert error.place is not None
    assert error.place.line == 3


def test_mistakes_of_the_file_come_first(tmp_path: Path) -> None:
    with pytest.raises(PatternErrors) as caught:
        compiled(*project_with(tmp_path, FILE.replace("within: 1 day", "ties: [orders]\nwithin: 1 day")))
    assert [error.message for error in caught.value.errors] == ["ties lists orders, not payments"]


def test_neither_source_nor_sources(tmp_path: Path) -> None:
    with pytest.raises(PatternErrors) as caught:
        compiled(*project_with(tmp_path, FILE.replace("sources: {Order: orders, Payment: payments}\n", "")))
    assert [error.message for error in caught.value.errors] == ["'source' is missing"]
