"""The worked cases of kind trends: query, events and expected rows, as in tests/cases/trends.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.conftest import ROOT
from trendlake.cep_core.yaml.source import plain, read_yaml

CASES = ROOT / "tests" / "cases"
_GENERATE = re.compile(r"(\d+) events of type (\w+), one a second from (-?\d+)")


@dataclass(frozen=True)
class Case:
    """One worked case. `generated`: its events are too many to enumerate; `sequence`: the column that numbers those of
    one time."""

    name: str
    query: Mapping[str, Any]
    events: list[dict[str, Any]]
    expect: list[dict[str, Any]]
    generated: bool
    sequence: str | None = None
    error: str | None = None
    """The message of the error that the query ends with, in place of rows."""


@cache
def load(file: str = "trends.yaml") -> list[Case]:
    """The cases of a file under tests/cases."""
    raw = plain(read_yaml(CASES / file).data)
    return [
        Case(
            name=one["name"],
            query=one["query"],
            events=generate(one["events"]["generate"]) if isinstance(one["events"], dict) else one["events"],
            expect=one.get("expect", []),
            generated=isinstance(one["events"], dict),
            sequence=one.get("sequence"),
            error=one.get("error"),
        )
        for one in raw
    ]


def generate(text: str) -> list[dict[str, Any]]:
    """`126 events of type S, one a second from 0` as rows."""
    if not (match := _GENERATE.fullmatch(text)):
        raise ValueError(f"no such way to generate events: {text!r}")
    count, kind, first = int(match[1]), match[2], int(match[3])
    return [{"id": f"e{n:06}", "type": kind, "time": first + n} for n in range(count)]


def unexpected(case: Case, rows: list[dict[str, Any]]) -> list[str]:
    """How the rows differ from the expected ones; a case gives only the columns it is about."""
    if len(case.expect) != len(rows):
        return [f"{len(case.expect)} rows expected, found {len(rows)}: {rows}"]
    keys = [name for name in ("window_start", *case.query.get("group_by", ())) if name in case.expect[0]]
    faults = []
    for wanted in case.expect:
        row = next((row for row in rows if all(_is(row[name], wanted[name], name) for name in keys)), None)
        if row is None:
            faults.append(f"no row for {wanted}")
            continue
        faults += [
            f"{name}: {value} expected, found {row[name]}"
            for name, value in wanted.items()
            if not _is(row[name], value, name)
        ]
    return faults


def _is(value: Any, wanted: Any, name: str) -> bool:
    if name in ("window_start", "window_end"):
        return bool(value == wanted * 1_000_000)
    if isinstance(wanted, str) and isinstance(value, int):
        return value == int(wanted)
    if isinstance(wanted, float) and value is not None:
        digits = 1e-9 if name.endswith("_log10") and wanted > 38 else 1e-12
        return bool(abs(value - wanted) <= digits * abs(wanted))
    return bool(value == wanted)
