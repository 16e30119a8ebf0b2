"""Digests of the keys of a pattern's file, which publications note: they show later which keys an edit has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from trendlake.cep_core import Pattern
from trendlake.cep_core.yaml.source import plain

DIGITS = 8
"""Hexadecimal digits of a digest."""
MOST = 200
"""Digests of a note: of a file with more keys, a mapping has one digest and not one for each of its keys."""


def keys_of(pattern: Pattern) -> dict[str, str]:
    """The digest of each key of a pattern's file: `{"where": "5f0c12ab", "return.falls": "..."}`."""
    rows = None if pattern.parameters is None else pattern.parameters.keys
    return digests(pattern.document.data, rows)


def digests(data: Any, rows: Any = None) -> dict[str, str]:
    """As `keys_of`, of the `data` of a file; `rows`: those of `for_each`, which a CSV file may hold."""
    texts = texts_of(data)
    if rows is not None and isinstance(data, Mapping) and "file" in (data.get("for_each") or {}):
        texts["for_each.rows"] = json.dumps(list(map(str, rows)))
    return {key: hashlib.sha256(text.encode()).hexdigest()[:DIGITS] for key, text in texts.items()}


def texts_of(data: Any) -> dict[str, str]:
    """The value of each key as text: words as they are, all else as JSON. The keys of a mapping have a text each."""
    values = plain(data)
    if not isinstance(values, dict):
        return {}
    every: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            every |= {f"{key}.{name}": item for name, item in value.items()}
        else:
            every[key] = value
    chosen = every if len(every) <= MOST else values
    return {key: value if isinstance(value, str) else _json(value) for key, value in chosen.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
