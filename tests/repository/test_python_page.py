"""docs/how-to/python.md: its files, its commands and its Python, in one session from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.repository.test_frames_page import shows
from tests.support.typed_pages import follow

PAGE = (ROOT / "docs" / "how-to" / "python.md").read_text()
SET_UP, TYPED = PAGE.split("\n## Run, ")
STEPS = re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", TYPED, re.MULTILINE | re.DOTALL)


def test_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(SET_UP, tmp_path, monkeypatch)
    names: dict[str, Any] = {}
    assert len(STEPS) == PAGE.count("```python") == 4
    shows([(code, printed.replace(" in conf/", f" in {tmp_path}/conf/")) for code, printed in STEPS], names)
    names["project"].close()
