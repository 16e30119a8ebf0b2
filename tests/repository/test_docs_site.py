"""The site of the documentation: what breaks its build, on a site of two pages, and search from a file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.browser import browser, opened

STATE = Path(os.environ.get("TRENDLAKE_STATE", ROOT / ".trendlake"))
PYTHON = STATE / "tools" / "docs" / "bin" / "python"
INDEX = "# First\n\n## Pages\n\n- [second](second.md)\n"
FAULTS = {
    "[a page](gone.md)": "'gone.md'",
    "[an anchor](second.md#gone)": "'gone'",
    "[an anchor here](#gone)": "'gone'",
    "[a file](../gone.py)": "'../gone.py'",
    "![of another site](https://example.org/a.png)": "a page fetches from the network",
}


def build(folder: Path, index: str) -> tuple[bool, str]:
    """Whether the site of two pages was built, and what was said."""
    if not PYTHON.exists():
        pytest.skip("no environment that builds the site: `make docs` makes it")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(index)
    (folder / "docs" / "second.md").write_text("# Second\n\nThe watermark is here.\n")
    words = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "scripts/docs", folder / "docs", folder / "site"]
    done = subprocess.run([PYTHON, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def test_faults_break_the_build(tmp_path: Path) -> None:
    built, said = build(tmp_path, INDEX + "".join(f"\n{fault}\n" for fault in FAULTS))
    assert not built
    assert [fault for fault, word in FAULTS.items() if word not in said] == []


def test_a_search_needs_no_server(tmp_path: Path) -> None:
    built, said = build(tmp_path, f"{INDEX}\n```mermaid\nflowchart LR\n  first --> second\n```\n")
    assert built, said
    with browser() as chromium, opened(chromium, tmp_path / "site" / "index.html") as (page, seen):
        assert page.locator(".diagram svg").count() == 1
        page.fill("input[name=q]", "watermark")
        page.press("input[name=q]", "Enter")
        page.click("#search-results a:has-text('Second')")
        assert page.inner_text("h1").startswith("Second")
        assert seen.complaints == []
        assert [address for address in seen.asked if not address.startswith("file:")] == []
