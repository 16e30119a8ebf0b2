"""Names as identifiers of SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column's name as an identifier, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
