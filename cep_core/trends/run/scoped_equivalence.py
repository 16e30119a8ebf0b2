"""Equivalence of some variables only (`[P.vehicle, segment]`): runs in which it has become a matter of partitions.

For an attribute required of the variables X, a trend either has no event under X, or has one and then all of them carry
one value. So its trends are the disjoint union of those without X, and, for each value, those with X that use only
X-events of that value: each is an ordinary run. Where every variable of the trend is in X, and no NOT's, the value
simply
joins the partition. NOT's events in X carry the trend's value; if the trend has none, they agree among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trendlake.cep_core.events.array_types import Int32s
from trendlake.cep_core.trends.compile.dfa import Automaton, requiring, without
from trendlake.cep_core.trends.run.events import Events

Scope = tuple[str, frozenset[str]]


@dataclass(frozen=True)
class Run:
    """`automaton` over `events` parted by `partition` (a code a row). `open_scopes` still bind the NOTs of this run."""

    events: Events
    automaton: Automaton
    partition: Int32s
    open_scopes: tuple[Scope, ...]


def runs(events: Events, automaton: Automaton, scopes: tuple[Scope, ...]) -> Iterator[Run]:
    """Runs whose trends, together, are those of `automaton` under `scopes`, each once."""
    yield from _runs(events, automaton, scopes, (), automaton.watched)


def _runs(
    events: Events,
    automaton: Automaton,
    todo: tuple[Scope, ...],
    open_scopes: tuple[Scope, ...],
    variables: frozenset[str],
) -> Iterator[Run]:
    if not automaton.states:
        return
    plan = events.plan
    for name, scope in todo:
        rest = tuple(other for other in todo if other != (name, scope))
        mine = scope & variables
        if not mine:
            yield from _runs(events, automaton, rest, (*open_scopes, (name, scope)), variables)
            return
        if variables <= scope and not scope & _negated(events, automaton):
            continue
        bits = np.uint64(sum(1 << plan.variables.index(v) for v in mine))
        codes = events.codes((name,))
        for value in np.unique(codes[(events.matches & bits) != 0]):
            inside = events.restricted(name, scope, int(value))
            yield from _runs(inside, requiring(automaton, mine), rest, open_scopes, variables)
        yield from _runs(events, without(automaton, mine), rest, (*open_scopes, (name, scope)), variables)
        return
    partition = events.codes((*plan.shared, *(name for name, _ in todo)))
    yield Run(events, automaton, partition, open_scopes)


def _negated(events: Events, automaton: Automaton) -> set[str]:
    """Variables under the NOTs that this automaton meets, inner ones included."""
    variables: set[str] = set()
    for g in automaton.guards:
        variables |= set(events.plan.guards[g].variables) | _negated(events, events.plan.guards[g])
    return variables
