"""tests/cases holds copies of the shared worked cases, where these stand beside the checkout."""

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
}


@pytest.mark.parametrize("file", _ORIGINALS)
def test_cases_are_the_shared_ones(file: str) -> None:
    """A copy is the original, byte for byte."""
    original = _SHARED / _ORIGINALS[file]
    if not original.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    assert (CASES / file).read_bytes() == original.read_bytes()


def test_no_case_of_our_own() -> None:
    """No file stands in tests/cases that is not a copy."""
    assert {path.name for path in CASES.iterdir()} == set(_ORIGINALS)
