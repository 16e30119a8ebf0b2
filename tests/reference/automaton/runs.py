"""Every run from every event, step by step, as language.md (kind automaton) and AFA (sections 2.2, 2.3, appendix E)
say.

Written for reading, not for speed: O(events^2) at least. Times are microseconds. A run is (state, register); those that
started at one event and agree in both have the same future and are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from tests.reference.automaton.expression import (
    Evaluate,
    OverflowedError,
    Value,
    conjuncts,
    duration,
    microseconds,
    read,
    real,
)

Row: TypeAlias = Mapping[str, Any]
Register: TypeAlias = tuple[Value, ...]
Run: TypeAlias = tuple[str, Register]

LIMITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


MOST = 3000
"""Runs alive at one event that are still enumerated."""


class TooManyRunsError(Exception):
    """More than MOST."""


@dataclass(frozen=True)
class Arc:
    """One arc; `how` is event, epsilon or window_end."""

    source: str
    target: str
    how: str
    when: Evaluate
    needs: tuple[Evaluate, ...]
    """The parts of `when` that do not read the register: where one is not true, the rest is not asked."""
    sets: Mapping[str, Evaluate]
    lives: tuple[int, int]


@dataclass(frozen=True)
class Automaton:
    """A query of kind automaton."""

    fields: Mapping[str, str]
    init: Register
    start: str
    final: frozenset[str]
    arcs: tuple[Arc, ...]
    within: int
    partition_by: tuple[str, ...]


def automaton(query: Mapping[str, Any]) -> Automaton:
    """The query's parts."""
    register = query.get("register") or {}
    fields = {name: field["type"] for name, field in register.items()}
    return Automaton(
        fields=fields,
        init=tuple(fitted(fields[name], field["init"]) for name, field in register.items()),
        start=query["start"],
        final=frozenset(query["final"]),
        arcs=tuple(arc(one) for one in query["arcs"]),
        within=duration(query["within"]),
        partition_by=tuple(query.get("partition_by") or ()),
    )


def arc(one: Mapping[str, Any]) -> Arc:
    how = "window_end" if one.get("at") == "window_end" else "epsilon" if one.get("epsilon") else "event"
    text = one.get("when", "TRUE")
    return Arc(
        source=one["from"],
        target=one["to"],
        how=how,
        when=read(text),
        needs=tuple(part for part in conjuncts(text) if how == "event" and not reads_register(part)),
        sets={name: read(value) for name, value in (one.get("set") or {}).items()},
        lives=(moment(one.get("valid_from"), -(2**63)), moment(one.get("valid_to"), 2**63)),
    )


def reads_register(part: Evaluate) -> bool:
    """Whether an expression names a field of the register."""
    names: list[str | None] = []

    def scope(of: str | None, name: str) -> Value:
        names.append(of)
        return None

    part(scope)
    return None in names


def moment(raw: Any, otherwise: int) -> int:
    if raw is None:
        return otherwise
    if isinstance(raw, date):
        raw = raw.isoformat() if isinstance(raw, datetime) else f"{raw.isoformat()}T00:00:00"
    return microseconds(raw)


def fitted(kind: str, value: Any) -> Value:
    """A value as a field of its type holds it. Raises OverflowedError where a whole number does not fit."""
    if value is None:
        return None
    if kind == "double":
        return real(float(value))
    if kind == "timestamp" and isinstance(value, str):
        return microseconds(value)
    if kind in LIMITS and not -(2 ** LIMITS[kind]) <= value < 2 ** LIMITS[kind]:
        raise OverflowedError(value)
    return value  # type: ignore[no-any-return]


def cell(raw: Any) -> Value:
    """A cell of a row as a value: NaN is NULL, -0.0 is 0.0."""
    return real(raw) if isinstance(raw, float) else raw


class Partition:
    """The ordered events of one partition, and what the automaton does over them."""

    def __init__(self, automaton: Automaton, events: Sequence[Row], reached: int) -> None:
        self.automaton = automaton
        self.events = sorted(events, key=lambda e: (time_of(e), e.get("sequence", 0), e["id"]))
        self.reached = reached

    def steps(self, runs: set[Run], how: str, event: Row | None, now: int) -> set[Run]:
        """The runs one arc further."""
        rows: set[Run] = set()
        names = tuple(self.automaton.fields)
        for state, register in runs:

            def scope(of: str | None, name: str, register: Register = register) -> Value:
                if of == "e":
                    if event is None:
                        raise ValueError("no event here")
                    return cell(event.get(name))
                return register[names.index(name)]

            for one in self.automaton.arcs:
                if one.source != state or one.how != how or not one.lives[0] <= now < one.lives[1]:
                    continue
                if any(need(scope) is not True for need in one.needs) or one.when(scope) is not True:
                    continue
                new = {name: fitted(self.automaton.fields[name], value(scope)) for name, value in one.sets.items()}
                if len(rows) >= MOST:
                    raise TooManyRunsError
                rows.add((one.target, tuple(new.get(n, old) for n, old in zip(names, register, strict=True))))
        return rows

    def settled(self, runs: set[Run], now: int) -> set[Run]:
        """The runs and all that epsilon arcs make of them."""
        while more := self.steps(runs, "epsilon", None, now) - runs:
            runs = runs | more
        return runs

    def from_event(self, i: int) -> Iterator[tuple[int, set[Run], bool]]:
        """(index of the last event consumed, runs there, whether the window has ended) for all that begins at i."""
        began = time_of(self.events[i])
        end = began + self.automaton.within
        runs = self.settled({(self.automaton.start, self.automaton.init)}, began)
        last = i - 1
        for j in range(i, len(self.events)):
            now = time_of(self.events[j])
            if now >= end:
                break
            runs = self.settled(self.steps(runs, "event", self.events[j], now), now)
            yield j, runs, False
            if not runs:
                return
            last = j
        if self.reached >= end:
            yield last, self.settled(self.steps(runs, "window_end", None, end), end), True

    def rows(self) -> Iterator[dict[str, Any]]:
        for i, first in enumerate(self.events):
            for j, runs, _ in self.from_event(i):
                for state, register in runs:
                    if state in self.automaton.final:
                        yield {
                            **{name: cell(first.get(name)) for name in self.automaton.partition_by},
                            "first": first["id"],
                            "last": self.events[j]["id"],
                            "state": state,
                            **dict(zip(self.automaton.fields, register, strict=True)),
                            "lifetime_start": time_of(self.events[j]),
                            "lifetime_end": time_of(first) + self.automaton.within,
                        }


def time_of(event: Row) -> int:
    return int(Fraction(event["time"]) * 1_000_000)


def partitions(query: Mapping[str, Any], rows: Sequence[Row], watermark: int | None) -> list[Partition]:
    """The rows by partition. The data has reached its own latest event, of whatever partition."""
    read = automaton(query)
    reached = max([time_of(row) for row in rows] + ([] if watermark is None else [watermark]), default=0)
    parted: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        parted.setdefault(tuple(cell(row.get(name)) for name in read.partition_by), []).append(row)
    return [Partition(read, events, reached) for events in parted.values()]


def enumerate_runs(query: Mapping[str, Any], rows: Sequence[Row], watermark: int | None = None) -> list[dict[str, Any]]:
    """The rows of the answer, each once. `watermark`: microseconds that the data is known to have reached."""
    runs = [row for partition in partitions(query, rows, watermark) for row in _asked(query, partition)]
    return list({tuple(row.items()): row for row in runs}.values())


def _asked(query: Mapping[str, Any], partition: Partition) -> list[dict[str, Any]]:
    """The rows of a partition; where they must not overlap, the first to end, then to begin, and so on."""
    rows = list(partition.rows())
    if query.get("output") != "non_overlap":
        return rows
    place = {event["id"]: i for i, event in enumerate(partition.events)}
    spans = sorted({(place[row["last"]], place[row["first"]]) for row in rows})
    chosen: set[tuple[int, int]] = set()
    for last, first in spans:
        if all(first > other for other, _ in chosen):
            chosen.add((last, first))
    return [row for row in rows if (place[row["last"]], place[row["first"]]) in chosen]


def partial_runs(query: Mapping[str, Any], rows: Sequence[Row]) -> set[tuple[Any, ...]]:
    """Every (first, event, state, register) that some run is in, final or not: what the paper's operator keeps."""
    return {
        (partition.events[i]["id"], partition.events[j]["id"], state, register)
        for partition in partitions(query, rows, None)
        for i in range(len(partition.events))
        for j, runs, ended in partition.from_event(i)
        if not ended
        for state, register in runs
    }


def reference(query: Mapping[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """`enumerate_runs` without a watermark: the shape every engine has."""
    return enumerate_runs(query, rows)
