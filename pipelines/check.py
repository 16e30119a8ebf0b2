"""The verdict of one check of a run, as steps pass it on and the run record stores it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Check:
    """`success`: None if the check could not be evaluated. `observed`, `expected`: sentences for people, which no code
    reads. `data`: the values in them (counts, windows, versions) as JSON types; empty in records written before 0.2.
    `column`: the checked column or columns, None if the check is about none."""

    name: str
    success: bool | None
    observed: str
    expected: str
    column: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether it was evaluated and does not hold."""
        return self.success is False

    def as_json(self) -> dict[str, Any]:
        """As the column `checks` of the run record holds it. Without values there is no key `data`."""
        return {
            "check": self.name,
            "column": self.column,
            "success": self.success,
            "observed": self.observed,
            "expected": self.expected,
            **({"data": dict(self.data)} if self.data else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Check:
        """Reads what any version of Trendlake has stored; keys that a later version added are ignored."""
        success, data = stored.get("success", False), stored.get("data") or {}
        if not isinstance(data, dict):
            raise ValueError(f"the values of a check are a JSON object, not {data!r}")
        return cls(
            str(stored.get("check", "")),
            None if success is None else success is True,
            _text(stored.get("observed")),
            _text(stored.get("expected")),
            None if stored.get("column") is None else _text(stored["column"]),
            data,
        )


def checks_of(text: str | None) -> list[Check]:
    """The checks in a run record's column `checks`; none for NULL. Raises ValueError for other texts."""
    stored = json.loads(text or "[]")
    if not isinstance(stored, list) or not all(isinstance(item, dict) for item in stored):
        raise ValueError("a JSON list of checks was expected")
    return [Check.from_json(item) for item in stored]


def _text(value: Any) -> str:
    """Early versions stored some values as numbers and lists."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
