"""docs/reference.md is in step with the grammar, the models and the worked cases."""

from __future__ import annotations

import re

from scripts.reference import page
from tests.conftest import ROOT
from tests.support.cases import load


def test_it_is_in_step() -> None:
    """Else: `python -m scripts.reference > docs/reference.md`."""
    assert (ROOT / "docs" / "reference.md").read_text() == page()


def test_nothing_of_the_grammar_is_left_out() -> None:
    """Each production and each keyword is on the page."""
    files = ("language/grammar.lark", "algebra/compile/grammar.lark")
    grammar, said = "\n".join((ROOT / "cep_core" / file).read_text() for file in files), page()
    for rule in re.findall(r"^\??([a-z_]+):", grammar, flags=re.MULTILINE):
        assert re.search(rf"^{rule}:", said, flags=re.MULTILINE), rule
    for word in re.findall(r"^_([A-Z]+)\.3:", grammar, flags=re.MULTILINE):
        assert f'"{word}"' in said
    assert said.count("\n#### ") == sum(
        len(load(f"{kind}.yaml")) for kind in ("trends", "matches", "automaton", "algebra", "match_recognize")
    )
