"""The basis of the work of a stage. Each stage's record and each publication's note hold it.

A step that goes on from another's record compares all of it with what it is about to do itself (`differences`): rows
that were computed or judged on another basis are not published under this one's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

Windows = tuple[int, int]
"""The first window, and the one after the last."""


@dataclass(frozen=True)
class Basis:
    """`contract`: fingerprint of the source's contract; `lateness`: allowed lateness, microseconds; `consistency`: of
    the pattern; `windows`: those asked for; `computed`: those of them that are computed, where the others are right
    already; `source_version`, `source_table`: the version read, and the id (`metadata.id`) of the Delta table that
    it is a version of; `versions`: of the code that computes and judges (`pipelines.runs.code_versions`). None where a
    stage has no such thing, or could not learn it before it failed."""

    contract: str
    lateness: int
    consistency: str | None = None
    windows: Windows | None = None
    computed: Windows | None = None
    source_version: int | None = None
    source_table: str | None = None
    versions: Mapping[str, int] | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Basis:
        """As `as_json` has it. Keys that a later version of Trendlake has added are ignored. Raises ValueError where
        those are missing that every version writes."""
        if not isinstance(stored.get("contract"), str) or not isinstance(stored.get("lateness"), int):
            raise ValueError("the contract's fingerprint and the allowed lateness were expected")
        values: dict[str, Any] = {item.name: stored.get(item.name) for item in fields(cls)}
        for name in ("windows", "computed"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)


def differences(recorded: Basis, present: Basis) -> list[str]:
    """The differences, each a clause such as "the allowed lateness was 1 h and is 3 h". `computed` may differ."""
    facts: tuple[tuple[str, Any, Any], ...] = (
        ("source's contract (fingerprint)", recorded.contract, present.contract),
        ("allowed lateness", _duration(recorded.lateness), _duration(present.lateness)),
        ("consistency", recorded.consistency, present.consistency),
        ("range of windows", _range(recorded.windows), _range(present.windows)),
        ("source's version", recorded.source_version, present.source_version),
        ("source's table id", recorded.source_table, present.source_table),
        ("version of Trendlake's code", _versions(recorded.versions), _versions(present.versions)),
    )
    return [f"the {name} was {then} and is {now}" for name, then, now in facts if then != now]


def _versions(versions: Mapping[str, int] | None) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted((versions or {}).items())) or "not recorded"


def _duration(microseconds: int) -> str:
    seconds = microseconds / 1_000_000
    return f"{seconds / 3600:g} h" if seconds % 60 == 0 else f"{seconds:g} s"


def _range(windows: Windows | None) -> str:
    if windows is None or windows[0] >= windows[1]:
        return "empty"
    return f"{windows[0]} to {windows[1] - 1}"
