"""`reference`: the matches of a query, by building every run of NFA^b (Agrawal et al. 2008, section 3) on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.reference.matches.query import Negated, Query, read
from tests.reference.matches.reading import holds, measure
from tests.reference.matches.remainder import Around, Next, Remainder, endings, following, last_nots, variables, whole
from tests.reference.trends.events import Event, events_of
from tests.reference.trends.values import OutsideLanguageError, evaluate
from trendlake.cep_core.language import syntax as s

LIMIT = 100_000


class TooManyRunsError(Exception):
    """More runs at one moment, or more matches, than the enumeration was given leave to build."""


@dataclass(frozen=True)
class Run:
    """The events bound so far, each with its variable, in order; the NOTs that are passed before each; what remains of
    the pattern, and the repetitions around the newest part; and `stops`, the events that it could not ignore: it binds
    no event that is later than one of them."""

    steps: tuple[tuple[Event, str], ...]
    passed: tuple[frozenset[str], ...]
    rest: Remainder
    around: Around = ()
    stops: tuple[Event, ...] = ()

    @property
    def first(self) -> Event:
        return self.steps[0][0]

    @property
    def last(self) -> Event:
        return self.steps[-1][0]


def reference(
    query: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, sequence: str | None = None, limit: int = LIMIT
) -> list[dict[str, Any]]:
    """Rows: `start` and `end` (microseconds), for each variable the ids of its events, measures. In no order.

    `rows` are as in the worked cases. Raises OutsideLanguageError for what has no meaning, TooManyRunsError.
    """
    asked = read(query)
    events = [_with_derived(asked, event) for event in events_of(rows, sequence)]
    names = set(asked.shared) | {name for name, _ in asked.scoped}
    if events and names - set(events[0].values):
        raise OutsideLanguageError(f"no attributes {names}")
    finished = [run for run in _finished(asked, events, limit) if not _ruled_out(asked, events, run)]
    runs = list({tuple((event.place, name) for event, name in run.steps): run for run in finished}.values())
    if asked.output == "non_overlap":
        runs = _non_overlapping(asked, events, runs)
    known = max((event.time for event in events), default=0)
    limits = [asked.negated[name].within or 0 for name in last_nots(asked.tree)]
    known_rows = [_row(asked, run) for run in runs if run.last.time + max(limits, default=0) <= known]
    return [row for row in known_rows if _holds(asked, row)]


def _holds(query: Query, row: Mapping[str, Any]) -> bool:
    return all(evaluate(one, lambda read: row[read.name]) is True for one in query.having)


def _with_derived(query: Query, event: Event) -> Event:
    more = {name: evaluate(one, lambda read: event.values[read.name]) for name, one in query.derived.items()}
    return replace(event, values={**event.values, **more})


def _row(query: Query, run: Run) -> dict[str, Any]:
    bound = _named(query, run)
    row: dict[str, Any] = {"start": run.first.time, "end": run.last.time}
    row |= {name: [event.values["event_id"] for event in events] for name, events in bound.items()}
    return row | {name: measure(text, bound, _kleene(query)) for name, text in query.measures.items()}


def _named(query: Query, run: Run) -> dict[str, tuple[Event, ...]]:
    return {part.variable: tuple(e for e, name in run.steps if name == part.variable) for part in query.parts}


def _kleene(query: Query) -> set[str]:
    return {part.variable for part in query.parts if part.kleene}


def _finished(query: Query, events: Sequence[Event], limit: int) -> Iterator[Run]:
    """Every accepting run: all runs are kept, each reads each event. A match may have several runs."""
    runs: list[Run] = []
    count = 0
    for event in events if query.possible else ():
        after: list[Run] = []
        for run in (*runs, Run((), (), whole(query.tree))):
            if run.steps and event.time - run.first.time >= query.within:
                continue
            if any(_later(query, event, stop) for stop in run.stops):
                continue
            if run.steps and not _later(query, event, run.last):
                after.append(run)
                continue
            ways = [(one, _binds(query, run, one, event)) for one in following(run.rest)]
            for _, moved in ways:
                if moved is not None:
                    after.append(moved)
                    if _accepts(query, moved):
                        count += 1
                        yield moved
            if run.steps:
                ignored = _may_ignore(query, run, event, ways)
                after.append(run if ignored else replace(run, stops=(*run.stops, event)))
        runs = [run for run in after if run.rest]
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


def _binds(query: Query, run: Run, step: Next, event: Event) -> Run | None:
    """The run with the event at the next place: its type, the equivalences and the conditions must hold."""
    name = step.atom.variable
    first = run.first if run.steps else event
    if step.atom.type_name not in (event.type, "ANY") or any(
        event.values[column] != first.values[column] for column in query.shared
    ):
        return None
    moved = Run((*run.steps, (event, name)), (*run.passed, step.nots), step.rest, step.around)
    bound = _named(query, moved)
    for column, scope in query.scoped:
        inside = {other.values[column] for variable in scope & bound.keys() for other in bound[variable]}
        if name in scope and len(inside) > 1:
            return None
    return moved if _true_so_far(query, bound, variables(step.rest)) else None


def _true_so_far(query: Query, bound: Mapping[str, Sequence[Event]], coming: set[str]) -> bool:
    """Whether the conditions are true of all choices of the events bound. Where `v[v.LEN]` is read and more events of v
    may come it is not known yet."""
    kleene = _kleene(query)
    return all(
        holds(condition, bound, kleene)
        for condition in query.conditions
        if not any(
            isinstance(read, s.Indexed) and read.index == "LEN" and read.variable in coming
            for read in s.attributes(condition)
        )
    )


def _accepts(query: Query, run: Run) -> bool:
    return bool(endings(run.rest)) and _true_so_far(query, _named(query, run), set())


def _may_ignore(query: Query, run: Run, event: Event, ways: Sequence[tuple[Next, Run | None]]) -> bool:
    match query.select:
        case "skip_till_any_match":
            return True
        case "skip_till_next_match":
            depths = [_depth(run.around, step.around) for step, _ in ways]
            within = zip(depths, ways, strict=True)
            return not any(depth == max(depths) and moved is not None for depth, (_, moved) in within)
        case "partition_contiguous":
            return any(event.values[name] != run.first.values[name] for name in query.shared)
    return False


def _depth(one: Around, other: Around) -> int:
    """How many repetitions both are in."""
    pairs = list(zip(one, other, strict=False))
    return next((depth for depth, (a, b) in enumerate(pairs) if a is not b), len(pairs))


def _ruled_out(query: Query, events: Sequence[Event], run: Run) -> bool:
    """Whether, whatever way its last NOTs are passed, some event of a NOT stands where it must not."""
    edges = [event for event, _ in run.steps]
    gaps = list(zip((None, *edges[:-1]), edges, run.passed, strict=True))
    if any(_stands(query, events, run, name, before, after) for before, after, names in gaps for name in names):
        return True
    return all(any(_stands(query, events, run, name, edges[-1], None) for name in names) for names in endings(run.rest))


def _stands(
    query: Query, events: Sequence[Event], run: Run, name: str, before: Event | None, after: Event | None
) -> bool:
    """Whether some event of a NOT is between two events of the run; None: the NOT is first or last."""
    negated = query.negated[name]
    return any(
        _between(query, negated, run, event, before, after) and _counts(query, negated, run, event) for event in events
    )


def _between(query: Query, negated: Negated, run: Run, event: Event, before: Event | None, after: Event | None) -> bool:
    if before is None and run.last.time - event.time >= query.within:
        return False
    if negated.within is not None and before is not None and event.time - before.time >= negated.within:
        return False
    if after is None and negated.within is None and event.time - run.first.time >= query.within:
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
        number = {part.variable: place for place, part in enumerate(query.parts)}
        spelt = [(event.place, number[name]) for event, name in run.steps]
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
