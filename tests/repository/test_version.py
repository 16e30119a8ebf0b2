"""The version of the package is the newest of the changelog."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT


def test_the_changelog_has_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert released[0] == version
    assert released == sorted(released, key=lambda text: [int(part) for part in text.split(".")], reverse=True)
