"""docs/how-to/frames.md: its Python prints what it shows, in one session from top to bottom."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pandas as pd

from tests.conftest import ROOT
from trendlake.cep_core import TrendlakeError

PAGE = (ROOT / "docs" / "how-to" / "frames.md").read_text()
STEPS = re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_shows() -> None:
    assert len(STEPS) == PAGE.count("```python") == 4
    names: dict[str, Any] = {}
    for code, printed in STEPS:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pd.option_context("display.width", 80):
            try:
                exec(compile(code, "frames.md", "exec"), names)
            except TrendlakeError as error:
                out.write("\n".join(error._render_traceback_()))
        assert out.getvalue().strip("\n") == printed.strip("\n")
