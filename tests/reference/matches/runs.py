"""`reference`: the matches of a query, by building every run of NFA^b (Agrawal et al. 2008, section 3) on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.reference.matches.query import EACH, FIRST, LAST, LATER, Negated, Query, read
from tests.reference.matches.reading import holds, measure
from tests.reference.trends.events import Event, events_of
from tests.reference.trends.values import OutsideLanguageError

LIMIT = 100_000


class TooManyRunsError(Exception):
    """More runs at one moment, or more matches, than the enumeration was given leave to build."""


@dataclass(frozen=True)
class Run:
    """The events bound so far: one tuple for each part that has begun; and `stops`, those that it could not ignore: it
    binds no event that is later than one of them."""

    bound: tuple[tuple[Event, ...], ...]
    stops: tuple[Event, ...] = ()

    @property
    def first(self) -> Event:
        return self.bound[0][0]

    @property
    def last(self) -> Event:
        return self.bound[-1][-1]


def reference(
    query: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, sequence: str | None = None, limit: int = LIMIT
) -> list[dict[str, Any]]:
    """Rows: `start` and `end` (microseconds), for each variable the ids of its events, measures. In no order.

    `rows` are as in the worked cases. Raises OutsideLanguageError for what has no meaning, TooManyRunsError.
    """
    asked = read(query)
    events = events_of(rows, sequence)
    names = set(asked.shared) | {name for name, _ in asked.scoped}
    if events and names - set(events[0].values):
        raise OutsideLanguageError(f"no attributes {names}")
    runs = [run for run in _finished(asked, events, limit) if not _ruled_out(asked, events, run)]
    if asked.output == "non_overlap":
        runs = _non_overlapping(asked, events, runs)
    known = max((event.time for event in events), default=0)
    limits = [one.within for one in asked.negated if one.after == len(asked.parts) and one.within is not None]
    return [_row(asked, run) for run in runs if run.last.time + max(limits, default=0) <= known]


def _row(query: Query, run: Run) -> dict[str, Any]:
    bound = _named(query, run)
    row: dict[str, Any] = {"start": run.first.time, "end": run.last.time}
    row |= {name: [event.values["event_id"] for event in events] for name, events in bound.items()}
    return row | {name: measure(text, bound, _kleene(query)) for name, text in query.measures.items()}


def _named(query: Query, run: Run) -> dict[str, tuple[Event, ...]]:
    return {part.variable: events for part, events in zip(query.parts, run.bound, strict=False)}


def _kleene(query: Query) -> set[str]:
    return {part.variable for part in query.parts if part.kleene}


def _finished(query: Query, events: Sequence[Event], limit: int) -> Iterator[Run]:
    """Every accepting run: all runs are kept, each reads each event."""
    runs: list[Run] = []
    count = 0
    for event in events if query.possible else ():
        after: list[Run] = []
        for run in (*runs, Run(())):
            if run.bound and event.time - run.first.time >= query.within:
                continue
            if any(_later(query, event, stop) for stop in run.stops):
                continue
            if run.bound and not _later(query, event, run.last):
                after.append(run)
                continue
            taken, begun = _take(query, run, event), _begin(query, run, event)
            for moved in (taken, begun):
                if moved is not None:
                    after.append(moved)
                    if _accepts(query, moved):
                        count += 1
                        yield moved
            if run.bound:
                ignored = _may_ignore(query, run, event, taken, begun)
                after.append(run if ignored else replace(run, stops=(*run.stops, event)))
        runs = [run for run in after if _goes_on(query, run)]
        if len(runs) > limit or count > limit:
            raise TooManyRunsError


def _later(query: Query, event: Event, other: Event) -> bool:
    """Whether an event is later than another: by its time, or its number; by its place where none may be ignored."""
    if query.select in ("contiguous", "partition_contiguous"):
        return event.place > other.place
    if event.time != other.time:
        return event.time > other.time
    numbers = event.sequence, other.sequence
    return None not in numbers and bool(event.sequence > other.sequence)


def _goes_on(query: Query, run: Run) -> bool:
    return len(run.bound) < len(query.parts) or query.parts[-1].kleene


def _take(query: Query, run: Run, event: Event) -> Run | None:
    """At a Kleene part: the event as one more of its events."""
    number = len(run.bound) - 1
    if number < 0 or not query.parts[number].kleene:
        return None
    moved = Run((*run.bound[:-1], (*run.bound[-1], event)))
    return moved if _binds(query, moved, number, (EACH, LATER)) else None


def _begin(query: Query, run: Run, event: Event) -> Run | None:
    """The event as the first of the next part."""
    number = len(run.bound)
    if number == len(query.parts) or (number and not _may_leave(query, run)):
        return None
    moved = Run((*run.bound, (event,)))
    return moved if _binds(query, moved, number, (EACH, FIRST)) else None


def _binds(query: Query, run: Run, number: int, when: tuple[str, ...]) -> bool:
    """Whether the newest event may stand where it does: its type, the equivalences, the conditions of this moment."""
    part, event = query.parts[number], run.last
    if part.type not in (event.type, "ANY") or any(
        event.values[name] != run.first.values[name] for name in query.shared
    ):
        return False
    bound = _named(query, run)
    for name, scope in query.scoped:
        inside = [other.values[name] for variable in scope & bound.keys() for other in bound[variable]]
        if part.variable in scope and any(cell != event.values[name] for cell in inside):
            return False
    now = {part.variable: len(run.bound[-1]) - 1}
    return all(
        holds(one.expression, bound, _kleene(query), now)
        for one in query.conditions
        if one.part == number and one.when in when
    )


def _may_leave(query: Query, run: Run) -> bool:
    """The conditions on `v[v.LEN]`, true or not once the part is done."""
    return all(
        holds(one.expression, _named(query, run), _kleene(query))
        for one in query.conditions
        if one.part == len(run.bound) - 1 and one.when == LAST
    )


def _accepts(query: Query, run: Run) -> bool:
    return len(run.bound) == len(query.parts) and _may_leave(query, run)


def _may_ignore(query: Query, run: Run, event: Event, taken: Run | None, begun: Run | None) -> bool:
    match query.select:
        case "skip_till_any_match":
            return True
        case "skip_till_next_match":
            at_kleene = query.parts[len(run.bound) - 1].kleene
            return taken is None if at_kleene else begun is None
        case "partition_contiguous":
            return any(event.values[name] != run.first.values[name] for name in query.shared)
    return False


def _ruled_out(query: Query, events: Sequence[Event], run: Run) -> bool:
    """Whether some event of a NOT stands where it must not."""
    return any(
        _between(query, negated, run, event) and _counts(query, negated, run, event)
        for negated in query.negated
        for event in events
    )


def _between(query: Query, negated: Negated, run: Run, event: Event) -> bool:
    begins, ends = negated.after == 0, negated.after == len(query.parts)
    before = None if begins else run.bound[negated.after - 1][-1]
    after = None if ends else run.bound[negated.after][0]
    if begins and run.last.time - event.time >= query.within:
        return False
    if negated.within is not None and before is not None and event.time - before.time >= negated.within:
        return False
    if ends and negated.within is None and event.time - run.first.time >= query.within:
        return False
    if before is not None and (event is before or _later(query, before, event)):
        return False
    return after is None or not (event is after or _later(query, event, after))


def _counts(query: Query, negated: Negated, run: Run, event: Event) -> bool:
    if negated.type not in (event.type, "ANY") or any(
        event.values[name] != run.first.values[name] for name in query.shared
    ):
        return False
    bound = _named(query, run)
    for name, scope in query.scoped:
        inside = [other.values[name] for variable in scope & bound.keys() for other in bound[variable]]
        if negated.variable in scope and any(cell != event.values[name] for cell in inside):
            return False
    both = bound | {negated.variable: (event,)}
    return all(holds(one, both, _kleene(query)) for one in query.ruled_out[negated.variable])


def _non_overlapping(query: Query, events: Sequence[Event], runs: list[Run]) -> list[Run]:
    """Of each partition: the earliest-ending, then earliest-starting; then the same among those that start later."""

    def order(run: Run) -> Any:
        spelt = [(event.place, number) for number, part in enumerate(run.bound) for event in part]
        return low(run.last), spelt

    def low(event: Event) -> int:
        """The place of the first of those that end at its time and number."""
        if query.select in ("contiguous", "partition_contiguous"):
            return event.place
        return min(other.place for other in events if (other.time, other.sequence) == (event.time, event.sequence))

    remaining: list[Run] = []
    ends: dict[Any, Event] = {}
    for run in sorted(runs, key=order):
        partition = tuple(run.first.values[name] for name in query.shared)
        if partition not in ends or _later(query, run.first, ends[partition]):
            remaining.append(run)
            ends[partition] = run.last
    return remaining


__all__ = ["LIMIT", "Run", "TooManyRunsError", "reference"]
