"""Trendlake is on no package index: no page, hint or script asks pip for it but as a wheel."""

from __future__ import annotations

import re

from tests.conftest import ROOT

FROM_AN_INDEX = re.compile(
    r"\b(?:pip3?|uv|uvx|pipx|conda)\s+(?:install|add|run)\b[^`\n]*?[\s'\"]trendlake(?![-/\w]|\.whl)"
)
FOLDERS = ("trendlake", "cep_core", "pipelines", "jobs", "dags", "docs", "examples", "bench", "conf", "scripts")
SUFFIXES = {".md", ".py", ".sh", ".yaml", ".ipynb"}


def test_a_package_of_an_index_is_seen() -> None:
    for hint in (
        "pip install trendlake",
        "pip install 'trendlake[spark]'",
        "uv add trendlake",
        "pip install -U trendlake",
    ):
        assert FROM_AN_INDEX.search(f"| {hint}, as typed"), hint
    for hint in (
        "pip install trendlake-*.whl",
        'pip install "$(ls dist/trendlake-*.whl)[spark]"',
        "pip install dist/t.whl",
    ):
        assert not FROM_AN_INDEX.search(f"| {hint}, as typed"), hint


def test_no_hint_asks_an_index() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    assert len(files) > 500
    files += [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / ".ci" / "run"]
    assert [str(path.relative_to(ROOT)) for path in files if FROM_AN_INDEX.search(path.read_text())] == []
