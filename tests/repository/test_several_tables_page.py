"""docs/how-to/several-tables.md: its commands are run as typed, and show the rows of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.typed_pages import follow, output_of

PAGE = (ROOT / "docs" / "how-to" / "several-tables.md").read_text()


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
def test_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(PAGE.split("\n## What to know")[0], tmp_path, monkeypatch) == 2
    difference = output_of(["diff", "unpaid", "--from", "1", "--to", "2"])
    assert all(text in difference for text in ("orders:o3", "1 retracted", "orders@1 payments@2"))
