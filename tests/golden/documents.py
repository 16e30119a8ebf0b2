"""The keys of `--json` documents, which programs of users read.

`python -m tests.end_to_end.test_json` runs every command, and writes the keys that its documents have now to
`documents.json`; the test of that module compares. A key that goes, or is renamed, is a change of format and a line in
CHANGELOG.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DOCUMENTS = Path(__file__).parent / "documents.json"
BY_DATA = frozenset(
    {"broken", "broken_rules", "open", "counts", "result_columns", "row", "rows", "note", "basis", "data"}
)
"""Keys whose value has keys of the user's own (columns, rules) or of a stored format that `formats.json` holds."""


def keys(documents: Iterable[Any]) -> list[str]:
    """The paths of all keys of a command's documents, such as `stages[].run_id`."""
    return sorted({path for document in documents for path in _paths(document, "")})


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            inner = f"{path}.{name}" if path else name
            yield inner
            if name not in BY_DATA:
                yield from _paths(item, inner)
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, f"{path}[]")


def stored() -> dict[str, list[str]]:
    """The golden keys by command."""
    by_command: dict[str, list[str]] = json.loads(DOCUMENTS.read_text())
    return by_command


def write(by_command: dict[str, list[str]]) -> None:
    """Makes `by_command` the golden keys."""
    DOCUMENTS.write_text(json.dumps(by_command, indent=1) + "\n")
