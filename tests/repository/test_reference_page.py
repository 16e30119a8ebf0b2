"""docs/reference.md is in step with the grammar, the models and the worked cases; the pages' links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.reference import page
from tests.conftest import ROOT
from tests.support.cases import load

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Those to files of the project."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
    broken = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert broken == []


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings get on a Git server."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_anchors_of_links_are_headings(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", path.read_text())
    targets = [(path.parent / file if file else path, anchor) for file, anchor in links]
    assert [(file.name, anchor) for file, anchor in targets if anchor not in anchors(file)] == []
