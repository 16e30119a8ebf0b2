"""Numbers that decide whether this process or Spark does a thing have one home, and a line each in docs/limits.md."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from trendlake.pipelines.lake import limits

NUMBERS = {name: value for name, value in vars(limits).items() if name.isupper()}


def test_each_is_told_with_its_value() -> None:
    page = (ROOT / "docs" / "limits.md").read_text()
    stated = dict(re.findall(r"^\| `([A-Z_]+)` \| ([\d,]+(?: MB)?) \|", page, re.MULTILINE))
    assert stated == {
        name: f"{value >> 20} MB" if name.endswith("BYTES") else f"{value:,}" for name, value in NUMBERS.items()
    }
