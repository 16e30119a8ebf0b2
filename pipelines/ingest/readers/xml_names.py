"""Which files hold XML documents: by the end of their names."""

from __future__ import annotations

from pathlib import Path

ENDS = (".xml", ".rss", ".atom")
FORMS = (*ENDS, *(f"{end}.gz" for end in ENDS), ".zip")


def is_xml(path: Path) -> bool:
    """Whether XML documents are read from it: by the end of its name, or a folder."""
    return path.is_dir() or path.name.lower().endswith(FORMS)
