"""All derivations of a pattern over the events of one window, by recursion on the tree.

A derivation is a path of events, each at a position of the pattern, and the NOTs it passes, each with the gap it stands
in: gap k is between the k-th event and the next, gap 0 before the first, the last one after the last. Times increase,
and local and adjacent conditions hold: each speaks of one event or one adjacent pair, so nothing later mends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tests.reference.trends.events import Event
from tests.reference.trends.query import Query
from tests.reference.trends.values import OutsideLanguageError, evaluate
from trendlake.cep_core.language import syntax as s

Trend: TypeAlias = tuple[tuple[int, str], ...]
"""(place of the event, variable) pairs in order."""
Path: TypeAlias = tuple[tuple[int, s.Atom], ...]
"""(place of the event, position in the pattern) in order."""
Nots: TypeAlias = frozenset[tuple[int, s.Not]]
Derivation: TypeAlias = tuple[Path, Nots]

EMPTY: Derivation = ((), frozenset())


def trend_of(path: Path) -> Trend:
    """The path's trend: what stands under which variable, by whatever positions."""
    return tuple((place, position.variable) for place, position in path)


class TooManyTrendsError(Exception):
    """The enumeration passed its bound: the stream is too long to be enumerated. Nothing was answered."""


class Links:
    """Which event may stand under a variable, and which pair may be adjacent, by `where` and time alone."""

    def __init__(self, query: Query, events: Sequence[Event]) -> None:
        self.query = query
        self.events = events
        self._known: dict[tuple[tuple[int, str], tuple[int, str]], bool] = {}

    def stands(self, event: Event, atom: s.Atom) -> bool:
        """The event is of the atom's type and passes every local condition of its variable."""
        conditions = self.query.local.get(atom.variable, [])
        if atom.type_name not in (event.type, "ANY"):
            return False
        return all(evaluate(one, lambda read: column(event, read)) is True for one in conditions)

    def linked(self, left: tuple[int, str], right: tuple[int, str]) -> bool:
        """The right pair may follow the left one: later, and every adjacent condition of the two holds."""
        key = (left, right)
        if key not in self._known:
            self._known[key] = self._linked(left, right)
        return self._known[key]

    def _linked(self, left: tuple[int, str], right: tuple[int, str]) -> bool:
        before, after = self.events[left[0]], self.events[right[0]]
        if not before.time < after.time:
            return False
        return all(
            evaluate(one.condition, lambda read: column(after if read.next else before, read)) is True
            for one in self.query.adjacent
            if (one.left, one.right) == (left[1], right[1])
        )


def column(event: Event, read: s.Attribute) -> int | float | str | bool | None:
    """The event's value of an attribute. Raises OutsideLanguageError for a column no row has."""
    if read.name not in event.values:
        raise OutsideLanguageError(f"no attribute {read.name}")
    return event.values[read.name]


class Derivations:
    """The derivations of patterns over `events`, the events of one window."""

    def __init__(self, links: Links, events: Sequence[Event], limit: int) -> None:
        self.links = links
        self.events = events
        self.limit = limit

    def of(self, node: s.PatternNode) -> set[Derivation]:
        """Every derivation of the node. Raises TooManyTrendsError past the limit."""
        match node:
            case s.Atom():
                return {
                    (((event.place, node),), frozenset()) for event in self.events if self.links.stands(event, node)
                }
            case s.Not():
                return {((), frozenset({(0, node)}))}
            case s.Or(options=options):
                return set().union(*(self.of(option) for option in options))
            case s.Seq(parts=parts):
                derivations = {EMPTY}
                for part in parts:
                    derivations = self.then(derivations, self.of(part))
                return derivations
            case s.Repeat(body=body, low=low, high=high):
                return self.repeat(self.of(body), low, high)
        raise OutsideLanguageError("AND is allowed only outermost")

    def repeat(self, once: set[Derivation], low: int, high: int | None) -> set[Derivation]:
        """`once` concatenated n times, for every n from `low` to `high` (None: until nothing new comes)."""
        exactly = {EMPTY}
        for _ in range(low):
            exactly = self.then(exactly, once)
        derivations, newest, times = set(exactly), exactly, low
        while newest and times != high:
            newest = self.then(newest, once) - derivations
            derivations |= newest
            times += 1
            self._bound(derivations)
        return derivations

    def then(self, lefts: set[Derivation], rights: set[Derivation]) -> set[Derivation]:
        """Every left derivation followed by every right one whose first event may follow the left's last."""
        by_first: dict[tuple[int, str] | None, list[Derivation]] = {}
        for right in rights:
            by_first.setdefault(trend_of(right[0][:1])[0] if right[0] else None, []).append(right)
        derivations: set[Derivation] = set()
        for path, nots in lefts:
            for first, followers in by_first.items():
                if path and first is not None and not self.links.linked(trend_of(path[-1:])[0], first):
                    continue
                for more, more_nots in followers:
                    shifted = frozenset((gap + len(path), node) for gap, node in more_nots)
                    derivations.add((path + more, nots | shifted))
            self._bound(derivations)
        return derivations

    def _bound(self, derivations: set[Derivation]) -> None:
        if len(derivations) > self.limit:
            raise TooManyTrendsError(f"more than {self.limit} derivations")
