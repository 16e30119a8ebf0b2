"""Kind algebra as language-algebra.md has it, sets by definition. Written for reading, not for speed.

Times are microseconds. An event is (partition, start, end, values); a stream has attributes, each with the kind of its
values (as Python has them: int, float, str, bool, NoneType), and a set of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, TypeAlias

from tests.reference.algebra.read import CelReader, Node
from tests.reference.automaton.expression import EPOCH, Evaluate, OverflowedError, Value, duration, real, whole

Row: TypeAlias = Mapping[str, Any]
Event: TypeAlias = tuple[tuple[Any, ...], int, int, tuple[Any, ...]]

MOST = 20_000
"""Events of one stream that are still enumerated."""
SHORT = {"id": "event_id", "type": "event_type", "time": "event_time"}
WITNESS = {int: 7, float: 2.5, str: "a", bool: True, type(None): None}
DAY = 86_400_000_000


class TooManyEventsError(Exception):
    """More than MOST."""


@dataclass
class Stream:
    """`kinds`: its attributes in order, partition columns left out."""

    kinds: dict[str, type]
    events: set[Event] = field(default_factory=set)

    def add(self, event: Event) -> None:
        self.events.add(event)
        if len(self.events) > MOST:
            raise TooManyEventsError


@dataclass
class Query:
    """What is fixed in a query. `partition`: its columns and their kinds."""

    partition: dict[str, type]
    within: int
    every: Stream
    published: dict[str, Stream] = field(default_factory=dict)

    # --- names and types
    def kind(self, value: Evaluate, of: Callable[[str | None, str], type]) -> type:
        """The kind of an expression's value, from what it makes of values of the right kinds."""

        def scope(decorator: str | None, name: str) -> Value:
            return WITNESS[int if name == "DUR" else self.partition.get(name) or of(decorator, name)]

        try:
            return type(value(scope))
        except OverflowedError:
            return int

    def read(self, stream: Stream, event: Event, name: str) -> Value:
        if name in self.partition:
            return event[0][list(self.partition).index(name)]
        return event[3][list(stream.kinds).index(name)]

    # --- operators
    def evaluate(self, node: Node) -> Stream:
        return getattr(self, f"_{node[0]}")(*node[1:])

    def _name(self, name: str) -> Stream:
        if name in self.published:
            return self.published[name]
        if name == "EVENTS":
            return self.every
        kinds = self.every.kinds
        at = list(kinds).index("event_type") if "event_type" in kinds else None
        if at is None:
            at = list(self.partition).index("event_type")
            return Stream(kinds, {event for event in self.every.events if event[0][at] == name})
        return Stream(kinds, {event for event in self.every.events if event[3][at] == name})

    def _filter(self, condition: Evaluate, node: Node) -> Stream:
        stream = self.evaluate(node)
        return Stream(stream.kinds, {e for e in stream.events if condition(self._one(stream, e)) is True})

    def _one(self, stream: Stream, event: Event) -> Callable[[str | None, str], Value]:
        def scope(decorator: str | None, name: str) -> Value:
            return event[2] - event[1] if name == "DUR" else self.read(stream, event, name)

        return scope

    def _select(self, items: list[Node] | None, node: Node, published: str | None) -> Stream:
        stream = self.evaluate(node)
        if items is not None and any(item[0] == "aggregate" for item in items):
            stream = self._aggregated(items, stream)
        elif items is not None:
            stream = self._projected(items, stream)
        if published is not None:
            self.published[published] = stream
        return stream

    def _projected(self, items: list[Node], stream: Stream) -> Stream:
        values: dict[str, Evaluate] = {}
        for item in items:
            if item[0] == "*":
                for name in stream.kinds:
                    values[name] = lambda scope, name=name: scope(None, name)  # type: ignore[misc]
            else:
                values[item[1]] = item[2]
        values = {name: value for name, value in values.items() if name not in self.partition}
        result = Stream({n: self.kind(v, lambda _, name: stream.kinds[name]) for n, v in values.items()})
        for event in stream.events:
            scope = self._one(stream, event)
            result.add((*event[:3], tuple(value(scope) for value in values.values())))
        return result

    def _aggregated(self, items: list[Node], stream: Stream) -> Stream:
        moments: dict[tuple[Any, int], list[Event]] = {}
        for event in stream.events:
            moments.setdefault((event[0], event[2]), []).append(event)
        kinds = {}
        for _, function, arguments, name in items:
            argument = self.kind(arguments[0], lambda _, n: stream.kinds[n]) if arguments else int
            kinds[name] = int if function == "count" else float if function == "avg" else argument
        result = Stream(kinds)
        for (part, end), events in moments.items():
            scopes = [self._one(stream, event) for event in events]
            row = tuple(
                aggregate(function, [[value(scope) for value in arguments] for scope in scopes])
                for _, function, arguments, _ in items
            )
            result.add((part, end, end, row))
        return result

    def _union(self, left: Node, right: Node) -> Stream:
        a, b = self.evaluate(left), self.evaluate(right)
        assert set(a.kinds) == set(b.kinds)
        kinds = {name: wider(kind, b.kinds[name]) for name, kind in a.kinds.items()}
        result = Stream(kinds)
        for stream in (a, b):
            places = [list(stream.kinds).index(name) for name in kinds]
            for event in stream.events:
                row = (fitted(event[3][i], kind) for i, kind in zip(places, kinds.values(), strict=True))
                result.add((*event[:3], tuple(row)))
        return result

    def _next(self, left: Node, right: Node, p: Evaluate) -> Stream:
        r_stream, s_stream = self.evaluate(left), self.evaluate(right)
        moved = renamed(r_stream.kinds, s_stream.kinds)
        kinds = {moved[n]: k for n, k in r_stream.kinds.items()} | s_stream.kinds
        assert len(kinds) == len(r_stream.kinds) + len(s_stream.kinds)
        result = Stream(kinds)
        for r in r_stream.events:
            candidates = []
            for s in s_stream.events:
                if r[0] == s[0] and r[2] < s[1] and s[2] - r[1] < self.within:
                    scope = self._pair(r_stream, r, s_stream, s)
                    if p(scope) is True:
                        candidates.append(s)
            least = min((s[2] for s in candidates), default=None)
            for s in candidates:
                if s[2] == least:
                    result.add((r[0], r[1], s[2], (*r[3], *s[3])))
        return result

    def _pair(self, r_stream: Stream, r: Event, s_stream: Stream, s: Event) -> Callable[[str | None, str], Value]:
        def scope(decorator: str | None, name: str) -> Value:
            if name == "DUR":
                return {None: s[2] - r[1], "$1": r[2] - r[1], "$2": s[2] - s[1]}[decorator]
            if decorator == "$1" or (decorator is None and name in r_stream.kinds):
                return self.read(r_stream, r, name)
            return self.read(s_stream, s, name)

        return scope

    def _fold(
        self, left: Node, right: Node, p: Evaluate, q: Evaluate, aggregates: list[tuple[str, Evaluate]]
    ) -> Stream:
        r_stream, s_stream = self.evaluate(left), self.evaluate(right)
        names = list(r_stream.kinds)
        now = {n: wider(k, s_stream.kinds.get(n, k)) for n, k in r_stream.kinds.items()}
        for _ in range(len(names) + 1):
            for name, value in aggregates:
                given = self.kind(
                    value,
                    lambda decorator, n: (
                        s_stream.kinds[n] if decorator == "$2" else r_stream.kinds[n] if decorator == "$1" else now[n]
                    ),
                )
                now[name] = wider(now[name], given)
        moved = renamed(r_stream.kinds, s_stream.kinds)
        kinds = {moved[n]: now[n] if n not in s_stream.kinds else k for n, k in r_stream.kinds.items()}
        kinds |= s_stream.kinds
        assert len(kinds) == len(r_stream.kinds) + len(s_stream.kinds)
        result = Stream(kinds)
        for r in r_stream.events:
            first = dict(zip(names, r[3], strict=True))
            begin = tuple(fitted(first[name], now[name]) for name in names)
            alive, known = {(r[2], begin)}, {(r[2], begin)}
            while alive:
                longer = set()
                for end, values in alive:
                    for step in self._steps(
                        r, r_stream, end, dict(zip(names, values, strict=True)), s_stream, p, q, aggregates, now
                    ):
                        longer.add(step)
                for end, values in longer:
                    current = dict(zip(names, values, strict=True))
                    own = (first[n] if n in s_stream.kinds else current[n] for n in names)
                    last = (
                        int(current[n]) if k is int and now[n] is float and current[n] is not None else current[n]
                        for n, k in s_stream.kinds.items()
                    )
                    result.add((r[0], r[1], end, (*own, *last)))
                alive = longer - known
                known |= longer
        return result

    def _steps(
        self,
        r: Event,
        r_stream: Stream,
        end: int,
        now: dict[str, Any],
        s_stream: Stream,
        p: Evaluate,
        q: Evaluate,
        aggregates: Sequence[tuple[str, Evaluate]],
        kinds: Mapping[str, type],
    ) -> Iterable[tuple[int, tuple[Any, ...]]]:
        """The instances one step longer: their end and values."""

        def scope_of(s: Event) -> Callable[[str | None, str], Value]:
            def scope(decorator: str | None, name: str) -> Value:
                if name == "DUR":
                    return {None: s[2] - r[1], "$": end - r[1], "$1": r[2] - r[1], "$2": s[2] - s[1]}[decorator]
                if decorator == "$2" or name in self.partition:
                    return self.read(s_stream, s, name)
                return self.read(r_stream, r, name) if decorator == "$1" else now[name]

            return scope

        candidates = []
        for s in s_stream.events:
            if r[0] == s[0] and end < s[1] and s[2] - r[1] < self.within:
                scope = scope_of(s)
                if p(scope) is True:
                    candidates.append((s, scope))
        least = min((s[2] for s, _ in candidates), default=None)
        for s, scope in candidates:
            if s[2] == least and q(scope) is True:
                after = now | {n: fitted(v, kinds[n]) for n, v in zip(s_stream.kinds, s[3], strict=True)}
                after |= {name: fitted(value(scope), kinds[name]) for name, value in aggregates}
                yield s[2], tuple(after.values())


def renamed(left: Mapping[str, type], right: Mapping[str, type]) -> dict[str, str]:
    """What R's attributes are called in the output of NEXT and FOLD."""
    moved = {name: name + "_1" for name in left if name in right}
    while True:
        in_the_way = [name for name in left if name in moved.values() and name not in moved]
        if not in_the_way:
            return {name: moved.get(name, name) for name in left}
        moved |= {name: name + "_1" for name in in_the_way}


def wider(a: type, b: type) -> type:
    """The kind that holds values of both."""
    if a is b or b is type(None):
        return a
    if a is type(None):
        return b
    assert {a, b} == {int, float}, (a, b)
    return float


def fitted(value: Any, kind: type) -> Any:
    return float(value) if kind is float and value is not None else value


def aggregate(function: str, rows: list[list[Any]]) -> Any:
    """An aggregate of the values of its arguments, a row for each event."""
    if function == "count" and rows and not rows[0]:
        return len(rows)
    if function in ("max_by", "min_by"):
        present = [row for row in rows if row[1] is not None]
        if not present:
            return None
        goal = (max if function == "max_by" else min)(row[1] for row in present)
        return min((row[0] for row in present if row[1] == goal and row[0] is not None), default=None)
    values = [row[0] for row in rows if row[0] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    if all(isinstance(value, int) for value in values):
        return whole(sum(values)) if function == "sum" else sum(values) / len(values)
    if any(value in (float("inf"), float("-inf")) for value in values):
        return real(sum(values)) if function == "sum" else real(sum(values) / len(values))
    exact = sum(map(Fraction, values))
    return float(exact) if function == "sum" else float(exact) / len(values)


def cell(raw: Any) -> Any:
    """A cell of a row as a value: NaN is NULL, -0.0 is 0.0, times are microseconds."""
    if isinstance(raw, float):
        return real(raw)
    if isinstance(raw, datetime):
        return round((raw - EPOCH).total_seconds() * 1_000_000)
    return raw


def micros(seconds: Any) -> int:
    return int(Fraction(seconds) * 1_000_000)


def reference(
    query: Mapping[str, Any], rows: Sequence[Row], kinds: Mapping[str, type] | None = None
) -> list[dict[str, Any]]:
    """The rows of a query over events as the worked cases have them; times in microseconds. `kinds`: of columns that
    the rows do not show."""
    by = list(query.get("partition_by") or ())
    begins = query.get("interval_start")
    names = list(dict.fromkeys(["id", "type", "time", *(n for row in rows for n in row), *(kinds or ())]))
    plain = [n for n in names if SHORT.get(n, n) not in by and n not in ("start", "end")]
    shown = {n: (kinds or {}).get(n) or _kind_of([cell(row.get(n)) for row in rows]) for n in names}
    shown["time"] = int
    every = Stream({SHORT.get(n, n): shown[n] for n in plain})
    for row in rows:
        values = {n: micros(row[n]) if n == "time" else fitted(cell(row.get(n)), shown[n]) for n in names}
        end = values["time"]
        start = end if begins is None or row.get(begins) is None else micros(row[begins])
        part = tuple(values[next(n for n in names if SHORT.get(n, n) == name)] for name in by)
        every.add((part, start, end, tuple(values[n] for n in plain)))
    partition = {name: shown[next(n for n in names if SHORT.get(n, n) == name)] for name in by}
    asked = Query(partition, duration(query["within"]), every)
    last = Stream({})
    for statement in CelReader(query["pattern"]).file():
        last = asked.evaluate(statement)
    return [
        {**dict(zip(by, part, strict=True)), "start": start, "end": end, **dict(zip(last.kinds, values, strict=True))}
        for part, start, end, values in last.events
        if end - start < asked.within
    ]


def _kind_of(cells: list[Any]) -> type:
    seen = {type(one) for one in cells if one is not None}
    return float if seen == {int, float} else seen.pop() if len(seen) == 1 else type(None)
