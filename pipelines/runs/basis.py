"""The basis of the work of a stage. Each stage's record and each publication's note hold it.

A step that goes on from another's record compares all of it with what it is about to do itself (`differences`): rows
that were computed or judged on another basis are not published under this one's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trendlake.pipelines.contracts.sources import SOURCE
from trendlake.pipelines.runs.source_versions import Versions

Windows = tuple[int, int]
"""The first window, and the one after the last."""
WINDOWS = ("windows", "computed")


class Terms(NamedTuple):
    """The terms by which one of several tables counts: its `contract` (fingerprint), allowed `lateness` and `idle`,
    microseconds, None where the table holds the others."""

    contract: str
    lateness: int
    idle: int | None = None


@dataclass(frozen=True)
class Basis:
    """`contract`: fingerprint of the sources' contracts; `lateness`: allowed lateness, microseconds, the longest of all
    tables; `consistency`: of the pattern; `windows`: those asked for; `computed`: those of them that are computed,
    where the others are right already; `sources`: the versions read; `versions`: of the code that computes and judges
    (`pipelines.runs.code_versions`); `tables`: the terms of each table of a pattern with `sources`. None where a stage
    has no such thing, or could not learn it before it failed."""

    contract: str
    lateness: int
    consistency: str | None = None
    windows: Windows | None = None
    computed: Windows | None = None
    sources: Versions | None = None
    versions: Mapping[str, int] | None = None
    tables: Mapping[str, Terms] | None = None

    @property
    def read(self) -> Versions:
        """The versions read, of a stage that knows them. Raises ValueError for another."""
        if self.sources is None:
            raise ValueError("the stage has read no version")
        return self.sources

    def as_json(self) -> dict[str, Any]:
        """The keys in the order in which they have always been written."""
        sources = self.sources
        values = {
            "contract": self.contract,
            "lateness": self.lateness,
            "consistency": self.consistency,
            "windows": self.windows,
            "computed": self.computed,
            "source_version": None if sources is None else sources.version,
            "source_table": None if sources is None else sources.table_id,
            "versions": self.versions,
        }
        values |= {} if sources is None or not sources.named else {"sources": sources.as_json()}
        tables = {} if self.tables is None else {name: terms._asdict() for name, terms in self.tables.items()}
        return values if self.tables is None else values | {"tables": tables}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Basis:
        """As `as_json` has it. Keys that a later version of Trendlake has added are ignored. Raises ValueError where
        those are missing that every version writes."""
        if not isinstance(stored.get("contract"), str) or not isinstance(stored.get("lateness"), int):
            raise ValueError("the contract's fingerprint and the allowed lateness were expected")
        windows, computed = (None if (pair := stored.get(name)) is None else tuple(pair) for name in WINDOWS)
        about = stored["contract"], stored["lateness"], stored.get("consistency")
        tables = None
        if stored.get("tables") is not None:
            tables = {
                name: Terms(*(terms.get(key) for key in Terms._fields)) for name, terms in stored["tables"].items()
            }
        return cls(*about, windows, computed, Versions.stored(stored), stored.get("versions"), tables)


def differences(recorded: Basis, present: Basis) -> list[str]:
    """The differences, each a clause such as "the allowed lateness was 1 h and is 3 h". `computed` may differ."""
    facts: tuple[tuple[str, Any, Any], ...] = (
        *_of_terms(recorded, present),
        ("consistency", recorded.consistency, present.consistency),
        ("range of windows", _range(recorded.windows), _range(present.windows)),
        *_of_tables(recorded.sources, present.sources),
        ("version of Trendlake's code", _versions(recorded.versions), _versions(present.versions)),
    )
    return [f"the {name} was {then} and is {now}" for name, then, now in facts if then != now]


def _of_terms(recorded: Basis, present: Basis) -> Iterator[tuple[str, Any, Any]]:
    """The facts about contracts and lateness: of one source, or of each table that both have."""
    if recorded.tables is None or present.tables is None or recorded.tables.keys() != present.tables.keys():
        yield "source's contract (fingerprint)", recorded.contract, present.contract
        yield "allowed lateness", _duration(recorded.lateness), _duration(present.lateness)
        return
    for name, now in present.tables.items():
        then = recorded.tables[name]
        yield f"contract of '{name}' (fingerprint)", then.contract, now.contract
        yield f"allowed lateness of '{name}'", _duration(then.lateness), _duration(now.lateness)
        yield f"`idle` of '{name}'", _idle(then.idle), _idle(now.idle)


def _idle(microseconds: int | None) -> str:
    return "none" if microseconds is None else _duration(microseconds)


def _of_tables(recorded: Versions | None, present: Versions | None) -> Iterator[tuple[str, Any, Any]]:
    """The facts about each table of either."""
    then, now = ({} if some is None else {table.name: table for table in some.tables} for some in (recorded, present))
    for name in sorted({*then, *now}):
        old, new = then.get(name), now.get(name)
        version, table_id = "source's version", "source's table id"
        if name != SOURCE:
            version, table_id = f"version of '{name}'", f"table id of '{name}'"
        yield version, old and old.version, new and new.version
        yield table_id, old and old.table_id, new and new.table_id


def _versions(versions: Mapping[str, int] | None) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted((versions or {}).items())) or "not recorded"


def _duration(microseconds: int) -> str:
    seconds = microseconds / 1_000_000
    return f"{seconds / 3600:g} h" if seconds % 60 == 0 else f"{seconds:g} s"


def _range(windows: Windows | None) -> str:
    if windows is None or windows[0] >= windows[1]:
        return "empty"
    return f"{windows[0]} to {windows[1] - 1}"
