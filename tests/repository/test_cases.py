"""tests/cases holds copies of the shared worked cases, where these stand beside the checkout, and cases of our own."""

from __future__ import annotations

import pytest

from tests.support.cases import CASES

_SHARED = CASES.parents[2] / "shared"
_ORIGINALS = {
    "trends.yaml": "cases/trends.yaml",
    "matches.yaml": "cases/matches.yaml",
    "automaton.yaml": "cases/automaton.yaml",
    "algebra.yaml": "algebra/cases.yaml",
    "match_recognize.yaml": "match_recognize/cases.yaml",
    "xml_join.yaml": "xml/cases.yaml",
    "calendar_and_length.yaml": "time/cases.yaml",
}
_OWN = {
    "absence.yaml",
    "derive.yaml",
    "having.yaml",
    "intervals.yaml",
    "lookups.yaml",
    "occurrences.yaml",
    "operators.yaml",
    "sources.yaml",
    "ties.yaml",
}


@pytest.mark.parametrize("file", _ORIGINALS)
def test_cases_are_the_shared_ones(file: str) -> None:
    """A copy is the original, byte for byte."""
    original = _SHARED / _ORIGINALS[file]
    if not original.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    assert (CASES / file).read_bytes() == original.read_bytes()


def test_files() -> None:
    """No copy and no file of our own stands in tests/cases unknown to these tests."""
    assert {path.name for path in CASES.iterdir()} == set(_ORIGINALS) | _OWN
