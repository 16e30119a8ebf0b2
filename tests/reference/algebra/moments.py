"""Kind algebra evaluated moment by moment: what each operator holds, and which events it gives at each end.

The second of two slow evaluators. The first takes streams as whole sets; this one goes through the moments at which an
event ends, in order, and never looks back: NEXT holds the events that wait for their next, FOLD the instances that may
go on. It has a parser of its own (`moments_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from tests.reference.algebra.moments_text import Filter, Fold, Item, Named, Next, Select, Stream, Text, Union
from tests.reference.automaton.expression import Evaluate, Scope, Value, duration, real

Row: TypeAlias = Mapping[str, Any]
Give: TypeAlias = Callable[[int], "frozenset[Event]"]
"""The events of a stream that end at a moment; asked once for each moment, in order."""


@dataclass(frozen=True)
class Event:
    """Attributes (sorted by name) and an interval in microseconds. It is what it says: equal events are one."""

    start: int
    end: int
    attributes: tuple[tuple[str, Value], ...]

    def get(self, name: str) -> Value:
        return self.end - self.start if name == "DUR" else dict(self.attributes)[name]


@dataclass(frozen=True)
class Output:
    """A stream: the names of its attributes and how its events come."""

    names: tuple[str, ...]
    give: Give


def event(start: int, end: int, values: Mapping[str, Value]) -> Event:
    tidy = {name: real(value) if isinstance(value, float) else value for name, value in values.items()}
    return Event(start, end, tuple(sorted(tidy.items())))


def by_moments(query: Mapping[str, Any], events: Sequence[Row], names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The result rows of a query over events as the worked cases have them (`id`, `type`, `time` and the interval's
    start in seconds): the partition's columns, `start` and `end` in microseconds and the attributes, in no order.
    `names`: columns that no event may show."""
    keys = tuple(query.get("partition_by") or ())
    columns = dict.fromkeys([*names, *(name for row in events for name in row)])
    rows = [as_row({name: row.get(name) for name in columns}, query.get("interval_start")) for row in events]
    partitions: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        key = tuple(real(value) if isinstance(value := row[name], float) else value for name in keys)
        partitions.setdefault(key, []).append(row)
    results = []
    for key, members in partitions.items():
        evaluation = Evaluation(query, dict(zip(keys, key, strict=True)), members)
        results += evaluation.rows()
    return results


def as_row(given: Row, begins: str | None) -> Row:
    """One event with the names of columns and times in microseconds."""
    row = {f"event_{name}" if name in ("id", "type", "time") else name: cell for name, cell in given.items()}
    for name in ("event_time", begins):
        if name is not None and row.get(name) is not None:
            row[name] = round(row[name] * 1_000_000)
    return row


class Evaluation:
    """Of one partition."""

    def __init__(self, query: Mapping[str, Any], partition: Mapping[str, Value], rows: Sequence[Row]) -> None:
        self.within = duration(str(query["within"]))
        self.partition = partition
        column = query.get("interval_start")
        names = [name for name in (rows[0] if rows else ()) if name not in ("start", "end") and name not in partition]
        self.base: dict[str, dict[int, set[Event]]] = {"EVENTS": {}}
        for row in rows:
            end = row["event_time"]
            start = end if column is None or row[column] is None else row[column]
            if start > end:
                raise ValueError(f"{row['event_id']} starts after its end")
            one = event(start, end, {name: row[name] for name in names})
            for kind in ("EVENTS", row["event_type"]):
                self.base.setdefault(kind, {}).setdefault(end, set()).add(one)
        self.moments = sorted(self.base["EVENTS"])
        self.names = tuple(names)
        self.published: dict[str, Output] = {}
        statements = Text(str(query["pattern"])).statements()
        self.last = [self.output(statement) for statement in statements][-1]

    def rows(self) -> list[dict[str, Any]]:
        events = [one for moment in self.moments for one in self.last.give(moment)]
        short = [one for one in events if one.end - one.start < self.within]
        return [{**self.partition, "start": one.start, "end": one.end, **dict(one.attributes)} for one in short]

    def output(self, stream: Stream) -> Output:
        match stream:
            case Named():
                if stream.name in self.published:
                    return self.published[stream.name]
                ends = self.base.get(stream.name, {})
                return Output(self.names, lambda moment: frozenset(ends.get(moment, ())))
            case Filter():
                return self.filtered(stream)
            case Select():
                return self.selected(stream)
            case Union():
                left, right = self.output(stream.left), self.output(stream.right)
                return Output(left.names, once(lambda moment: left.give(moment) | right.give(moment)))
            case Next():
                return self.next(stream)
            case Fold():
                return self.fold(stream)

    def scope(self, default: Mapping[str, Event], streams: Mapping[str, Event], whole: int) -> Scope:
        """`default`: which event an attribute without a decorator is of; `whole`: DUR without one."""

        def read(decorator: str | None, name: str) -> Value:
            if decorator is None and name == "DUR":
                return whole
            if name in self.partition:
                return self.partition[name]
            return (default[name] if decorator is None else streams[decorator]).get(name)

        return read

    def filtered(self, stream: Filter) -> Output:
        inner = self.output(stream.inner)

        def give(moment: int) -> frozenset[Event]:
            return frozenset(one for one in inner.give(moment) if holds(stream.condition, self.alone(one)))

        return Output(inner.names, once(give))

    def alone(self, one: Event) -> Scope:
        return self.scope(dict.fromkeys(dict(one.attributes), one), {"$1": one}, one.end - one.start)

    def selected(self, stream: Select) -> Output:
        inner = self.output(stream.inner)
        items = stream.items
        if items is None:
            output = inner
        elif any(item.aggregate for item in items):
            output = Output(tuple(item.name for item in items), once(self.instants(inner, items)))
        else:
            own = [item for item in items if item.star or item.name not in self.partition]
            names = [name for item in own for name in (inner.names if item.star else (item.name,))]

            def give(moment: int) -> frozenset[Event]:
                return frozenset(self.projected(one, own) for one in inner.give(moment))

            output = Output(tuple(names), once(give))
        if stream.publish:
            self.published[stream.publish] = output
        return output

    def projected(self, one: Event, items: Iterable[Item]) -> Event:
        values: dict[str, Value] = {}
        for item in items:
            if item.star:
                values |= dict(one.attributes)
            else:
                assert item.value is not None
                values[item.name] = item.value(self.alone(one))
        return event(one.start, one.end, values)

    def instants(self, inner: Output, items: Sequence[Item]) -> Give:
        def give(moment: int) -> frozenset[Event]:
            events = inner.give(moment)
            if not events:
                return frozenset()
            scopes = [self.alone(one) for one in events]
            values = {
                item.name: aggregate(item.aggregate, [[of(scope) for of in item.arguments] for scope in scopes])
                for item in items
            }
            return frozenset({event(moment, moment, values)})

        return give

    def next(self, stream: Next) -> Output:
        left, right = self.output(stream.left), self.output(stream.right)
        renamed = moved(left.names, right.names)
        waiting: set[Event] = set()

        def give(moment: int) -> frozenset[Event]:
            seconds, results = right.give(moment), set()
            for first in list(waiting):
                if moment - first.start >= self.within:
                    waiting.discard(first)
                    continue
                reached = [
                    second
                    for second in seconds
                    if first.end < second.start and holds(stream.condition, self.pair(first, second, left, right))
                ]
                if reached:
                    waiting.discard(first)
                for second in reached:
                    values = {renamed[name]: value for name, value in first.attributes} | dict(second.attributes)
                    results.add(event(first.start, moment, values))
            waiting.update(left.give(moment))
            return frozenset(results)

        return Output((*(renamed[name] for name in left.names), *right.names), once(give))

    def pair(self, first: Event, second: Event, left: Output, right: Output) -> Scope:
        default = {name: first for name in left.names if name not in right.names}
        default |= {name: second for name in right.names if name not in left.names}
        return self.scope(default, {"$1": first, "$2": second}, second.end - first.start)

    def fold(self, stream: Fold) -> Output:
        left, right = self.output(stream.left), self.output(stream.right)
        renamed = moved(left.names, right.names)
        going: set[tuple[Event, Event]] = set()

        def give(moment: int) -> frozenset[Event]:
            seconds, longer = right.give(moment), set()
            for first, now in list(going):
                if moment - first.start >= self.within:
                    going.discard((first, now))
                    continue
                scopes = {
                    second: self.scope(
                        dict.fromkeys(left.names, now), {"$1": first, "$": now, "$2": second}, moment - first.start
                    )
                    for second in seconds
                    if now.end < second.start
                }
                reached = [second for second, scope in scopes.items() if holds(stream.skip, scope)]
                if reached:
                    going.discard((first, now))
                for second in reached:
                    if holds(stream.stop, scopes[second]):
                        sets = {name: value(scopes[second]) for name, value in stream.sets}
                        values = dict(now.attributes) | dict(second.attributes) | sets
                        longer.add((first, event(first.start, moment, values)))
            going.update(longer)
            going.update((one, one) for one in left.give(moment))
            return frozenset(self.folded(first, now, right, renamed) for first, now in longer)

        names = (*right.names, *renamed.values())
        return Output(names, once(give))

    def folded(self, first: Event, now: Event, right: Output, renamed: Mapping[str, str]) -> Event:
        values = {}
        for name, value in now.attributes:
            if name in right.names:
                values[name] = value
                values[renamed[name]] = first.get(name)
            else:
                values[renamed[name]] = value
        return event(now.start, now.end, values)


def once(give: Give) -> Give:
    """A stream that is named twice is asked twice at a moment, and moves on once."""
    last: list[tuple[int, frozenset[Event]]] = []

    def again(moment: int) -> frozenset[Event]:
        if not last or last[0][0] != moment:
            last[:] = [(moment, give(moment))]
        return last[0][1]

    return again


def holds(condition: Evaluate | None, scope: Scope) -> bool:
    return condition is None or condition(scope) is True


def moved(left: Sequence[str], right: Sequence[str]) -> dict[str, str]:
    """How the left stream's attributes are called in the output of NEXT and FOLD."""
    names = {name: name for name in left}
    for name in left:
        if name in right:
            while name in left:
                names[name] = f"{name}_1"
                name = f"{name}_1"
    return names


def aggregate(function: str, arguments: Sequence[Sequence[Value]]) -> Value:
    """`arguments`: of each event, those of the function."""
    if function == "COUNT" and not arguments[0]:
        return len(arguments)
    if function.endswith("_BY"):
        pairs: list[Any] = [(y, x) for x, y in arguments if y is not None]
        if not pairs:
            return None
        best = max(y for y, _ in pairs) if function == "MAX_BY" else min(y for y, _ in pairs)
        candidates = [x for y, x in pairs if y == best and x is not None]
        return min(candidates) if candidates else None
    values: list[Any] = [value for (value,) in arguments if value is not None]
    if function == "COUNT":
        return len(values)
    if not values:
        return None
    match function:
        case "MIN":
            return min(values)
        case "MAX":
            return max(values)
        case "SUM" if all(isinstance(value, int) for value in values):
            return sum(values)
        case "SUM":
            return float(sum(map(Fraction, values)))
        case _:
            return float(sum(map(Fraction, values)) / len(values))
