"""docs/troubleshooting.md: each code that a user may see has one section, and no section is of another."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.golden.formats import error_codes

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SECTIONS = dict(re.findall(r"^### (\S+)\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def codes_in_messages() -> set[str]:
    """Codes that begin a message in the source: of errors that have no class of their own, too."""
    files = [path for room in ("cep_core", "pipelines", "jobs", "dags") for path in (ROOT / room).rglob("*.py")]
    return {code for path in files for code in re.findall(r"""["']\[([A-Z][A-Z_]+)\] """, path.read_text())}


def test_each_code_has_a_section() -> None:
    assert {"FAULT", "WORKER_PACKAGE"} <= codes_in_messages()
    assert sorted(re.findall(r"^### (.*)$", PAGE, re.MULTILINE)) == sorted({*error_codes(), *codes_in_messages()})


def test_each_section_says_something() -> None:
    """In sorted order within its part, so that a code is found by eye."""
    assert [code for code, text in SECTIONS.items() if len(text.split()) < 8] == []
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        names = re.findall(r"^### (\S+)$", part, re.MULTILINE)
        assert names
        assert names == sorted(names)
