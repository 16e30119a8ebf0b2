"""Pages lead somewhere: their links, what `docs/index.md` lists, and what `docs/api.md` describes. `make docs` sees
more, and takes longer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trendlake
from tests.conftest import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(
    [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]
)


def links(path: Path) -> list[tuple[str, str]]:
    """File and anchor of each link to a file of the project; a link within the page has no file."""
    addresses = re.findall(r"\]\(([^)\s]+)[^)]*\)", path.read_text())
    return [(file, anchor) for file, _, anchor in (each.partition("#") for each in addresses if "://" not in each)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert [file for file, _ in links(path) if not (path.parent / file).exists()] == []


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings get on a Git server."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_anchors_of_links_are_headings(path: Path) -> None:
    targets = [(path.parent / file if file else path, anchor) for file, anchor in links(path) if anchor]
    assert [(file.name, anchor) for file, anchor in targets if anchor not in anchors(file)] == []


def test_every_page_is_in_the_index() -> None:
    """Once, and decisions through their own page: the site's navigation is made of this list."""
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    files = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    pages = [str(path.relative_to(DOCS)) for path in files if path.parent.name != "adr"]
    assert sorted(listed) == sorted(set(pages) - {"index.md"})


def test_the_page_of_the_api_has_every_public_name() -> None:
    described = re.findall(r"^\.\. auto\w+:: trendlake\.(\w+)", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(described) == sorted(set(trendlake.__all__) - {"__version__"})
