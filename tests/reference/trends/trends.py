"""`reference`: the answer to a query of kind trends, by building every trend and checking each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise, product, repeat
from typing import Any, TypeAlias

from tests.reference.trends.derive import (
    Derivation,
    Derivations,
    Links,
    Nots,
    Path,
    TooManyTrendsError,
    Trend,
    trend_of,
)
from tests.reference.trends.events import Event, events_of, windows
from tests.reference.trends.measures import maximal, measure
from tests.reference.trends.query import Agreement, Query, read
from tests.reference.trends.shape import shape_of, spelled_out
from tests.reference.trends.values import OutsideLanguageError, Value
from trendlake.cep_core.language import syntax as s

LIMIT = 1_000_000

Follows: TypeAlias = frozenset[tuple[s.Atom, s.Atom]]
"""(p, q): an event at position q may come right after one at p. See `Shape`."""


def reference(
    query: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, sequence: str | None = None, limit: int = LIMIT
) -> list[dict[str, Any]]:
    """Result rows: group columns, `window_start`, `window_end` (microseconds), measures, `_log10` companions.

    `rows` are as in the worked cases (`id`, `type`, `time` in seconds, attributes). Counts are ints, other
    measures floats, NULL is None. Results come by window, then group in no special order. Raises
    OutsideLanguageError for what has no meaning, TooManyTrendsError past `limit` derivations in a window.
    """
    asked = read(query)
    events = events_of(rows, sequence)
    _check_columns(asked, events)
    results: list[dict[str, Any]] = []
    for start, inside in windows(asked, events):
        for key, trends in _groups(asked, events, inside, limit).items():
            row = dict(zip(asked.group_by, key, strict=True))
            row |= {"window_start": start, "window_end": start + asked.within}
            for name, one in asked.measures.items():
                row |= measure(name, one, trends, events, list(asked.types))
            results.append(row)
    return results


def _check_columns(query: Query, events: Sequence[Event]) -> None:
    wanted = {agreement.attribute for agreement in query.agreements} | set(query.group_by)
    wanted |= {one.attribute for one in query.measures.values() if one.attribute}
    wanted |= {one.by[1] for one in query.measures.values() if one.by}
    if events and (unknown := wanted - set(events[0].values)):
        raise OutsideLanguageError(f"no attributes {sorted(unknown)}")


def _groups(query: Query, events: Sequence[Event], inside: Sequence[Event], limit: int) -> dict[Any, list[Any]]:
    """Group key -> its trends in one window (with AND: its unordered pairs of different trends)."""
    window = Window(query, events, inside, limit)
    by_side = [_by_group(query, events, window.trends(side)) for side in query.sides]
    groups: dict[Any, list[Any]] = {}
    for key in dict.fromkeys(key for side in by_side for key in side):
        together = by_side[0].get(key, [])
        if len(by_side) > 1:
            combinations = product(*(side.get(key, []) for side in by_side))
            together = list({frozenset(one) for one in combinations if len(set(one)) == len(one)})
        if query.output == "maximal":
            together = maximal(together)
        if together:
            groups[key] = together
    if query.empty_windows:
        for event in inside:
            groups.setdefault(tuple(event.values[name] for name in query.group_by), [])
    return groups


def _by_group(query: Query, events: Sequence[Event], trends: Iterable[Trend]) -> dict[Any, list[Trend]]:
    groups: dict[Any, list[Trend]] = {}
    for trend in trends:
        groups.setdefault(tuple(_group_value(query, events, trend, name) for name in query.group_by), []).append(trend)
    return groups


def _group_value(query: Query, events: Sequence[Event], trend: Trend, attribute: str) -> Value:
    """The value the trend's events in the attribute's scope agree on; NULL if it has no such event."""
    groups: set[Value] = set()
    for agreement in query.agreements:
        if agreement.attribute == attribute:
            groups |= _values(agreement, events, trend)
    if len(groups) > 1:
        raise OutsideLanguageError(f"a trend has no one {attribute} to be grouped by")
    return next(iter(groups), None)


def _values(agreement: Agreement, events: Sequence[Event], trend: Trend) -> set[Value]:
    return {
        events[place].values[agreement.attribute]
        for place, variable in trend
        if agreement.scope is None or variable in agreement.scope
    }


class Window:
    """One window: which derivations are trends."""

    def __init__(self, query: Query, events: Sequence[Event], inside: Sequence[Event], limit: int) -> None:
        self.query = query
        self.events = events
        self.links = Links(query, events)
        self.derivations = Derivations(self.links, inside, limit)
        self._inner: dict[s.PatternNode, dict[Trend, list[Derivation]]] = {}

    def trends(self, pattern: s.PatternNode) -> list[Trend]:
        """Every trend of the pattern: a set of pairs is one trend, whichever of its derivations is allowed.

        Only skip_till_next_match asks at which position an event stands; by the other selections, copies of an atom
        are one.
        """
        numbers = count() if self.query.select == "skip_till_next_match" else repeat(0)
        whole = spelled_out(pattern, numbers)
        follows = shape_of(whole).follows
        return [
            trend
            for trend, ways in self._derived(whole).items()
            if self.agree(trend)
            and any(self.nots_hold(nots, trend, ()) and self.selected(path, follows) for path, nots in ways)
        ]

    def _derived(self, pattern: s.PatternNode) -> dict[Trend, list[Derivation]]:
        if pattern not in self._inner:
            ways: dict[Trend, list[Derivation]] = {}
            for path, nots in self.derivations.of(pattern):
                ways.setdefault(trend_of(path), []).append((path, nots))
            self._inner[pattern] = ways
        return self._inner[pattern]

    def agree(self, pairs: Trend) -> bool:
        """All events agree on every equivalence attribute (NULL agrees with NULL)."""
        return all(len(_values(agreement, self.events, pairs)) <= 1 for agreement in self.query.agreements)

    def nots_hold(self, nots: Nots, trend: Trend, outside: Trend) -> bool:
        """No NOT has a trend in its gap. `outside`: the pairs of the trends around it, if it is a NOT's."""
        return not any(self._broken(node, gap, trend, outside) for gap, node in nots)

    def _broken(self, node: s.Not, gap: int, trend: Trend, outside: Trend) -> bool:
        around = outside + trend
        for inner, ways in self._derived(spelled_out(node.body, repeat(0))).items():
            if gap > 0 and not self._time(trend[gap - 1]) < self._time(inner[0]):
                continue
            if gap < len(trend) and not self._time(inner[-1]) < self._time(trend[gap]):
                continue
            if self.agree(around + inner) and any(self.nots_hold(nots, inner, around) for _, nots in ways):
                return True
        return False

    def _time(self, pair: tuple[int, str]) -> int:
        return self.events[pair[0]].time

    def selected(self, path: Path, follows: Follows) -> bool:
        """Every adjacent pair of the finished path skips only what `select` lets it skip."""
        return all(
            not any(self._forbidden(event, path, k, follows) for event in self.events)
            for k, _ in enumerate(pairwise(path))
        )

    def _forbidden(self, event: Event, path: Path, k: int, follows: Follows) -> bool:
        """The event may not be skipped between the k-th of the path and the next."""
        (left, position), (right, _) = path[k], path[k + 1]
        match self.query.select:
            case "skip_till_any_match":
                return False
            case "contiguous":
                return left < event.place < right
            case "partition_contiguous":
                mine = self.events[left].values
                same = all(event.values[name] == mine[name] for name in self.query.partition)
                return left < event.place < right and same
        if not self.events[left].time < event.time < self.events[right].time:
            return False
        return any(before == position and self._may_follow(event, after, path, k) for before, after in follows)

    def _may_follow(self, event: Event, position: s.Atom, path: Path, k: int) -> bool:
        """The event could have followed the k-th: it is of the trend's partition, scoped equivalence included."""
        trend, pair = trend_of(path), (event.place, position.variable)
        return self.links.stands(event, position) and self.links.linked(trend[k], pair) and self.agree((*trend, pair))


__all__ = ["TooManyTrendsError", "reference"]
