"""Deterministic automata over variables: what a plan's trends are, and how sets of trends are cut and met.

A sequence of (event, variable) pairs has exactly one run, so runs can be counted for trends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Guards = frozenset[int]
"""NOTs (by index) that one derivation passes in one gap: all must hold."""
Alternatives = frozenset[Guards]
"""Ways to pass a gap: one must hold. No set contains another."""


@dataclass(frozen=True)
class Cube:
    """A gap condition: every guard of `holds` holds and every one of `fails` does not."""

    holds: tuple[int, ...] = ()
    fails: tuple[int, ...] = ()


@dataclass(frozen=True)
class Transition:
    """From `source` (None: the start of the trend) to `target`, over a gap that satisfies `gap`."""

    source: int | None
    target: int
    gap: Cube = Cube()


@dataclass(frozen=True)
class State:
    """`variable` binds the last event; a trend may end here if, for one set of `accepts`, all its guards hold."""

    variable: str
    accepts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Automaton:
    """Deterministic: two transitions from one source to states of one variable have disjoint gaps."""

    states: tuple[State, ...]
    transitions: tuple[Transition, ...]

    @property
    def starts(self) -> tuple[Transition, ...]:
        return tuple(t for t in self.transitions if t.source is None)

    @property
    def inner(self) -> tuple[Transition, ...]:
        return tuple(t for t in self.transitions if t.source is not None)

    @property
    def variables(self) -> tuple[str, ...]:
        """In order of first state."""
        return tuple(dict.fromkeys(state.variable for state in self.states))

    @property
    def guards(self) -> tuple[int, ...]:
        """The NOTs on its own gaps and endings, ascending."""
        found = {g for t in self.transitions for g in (*t.gap.holds, *t.gap.fails)}
        found |= {g for state in self.states for option in state.accepts for g in option}
        return tuple(sorted(found))

    @property
    def follows(self) -> frozenset[tuple[str, str]]:
        """(V, W): an event under W may come directly after one under V."""
        pairs = (
            (self.states[t.source].variable, self.states[t.target].variable) for t in self.inner if t.source is not None
        )
        return frozenset(pairs)


def least(sets: Iterable[Guards]) -> Alternatives:
    """Drop a set that contains another: whenever it holds, the smaller one does."""
    kept: list[Guards] = []
    for candidate in sorted(set(sets), key=len):
        if not any(smaller <= candidate for smaller in kept):
            kept.append(candidate)
    return frozenset(kept)


def merge_equivalent(automaton: Automaton) -> Automaton:
    """Moore's refinement: states of one variable with the same futures become one; states without a past or a future
    go."""
    useful = _useful(automaton)
    if not useful:
        return Automaton((), ())
    block = dict.fromkeys(useful, 0)
    leaving: dict[int, list[Transition]] = {q: [] for q in useful}
    for t in automaton.inner:
        if t.source in leaving and t.target in leaving:
            leaving[t.source].append(t)
    while True:
        signature: dict[int, object] = {}
        for q in useful:
            out = frozenset((block[t.target], t.gap) for t in leaving[q])
            signature[q] = (automaton.states[q], out)
        numbers: dict[object, int] = {}
        refined = {q: numbers.setdefault(signature[q], len(numbers)) for q in useful}
        if len(numbers) == len(set(block.values())):
            break
        block = refined
    block = refined
    order = {b: i for i, b in enumerate(dict.fromkeys(block[q] for q in useful))}
    state_of = {order[block[q]]: automaton.states[q] for q in useful}
    transitions = dict.fromkeys(
        Transition(None if t.source is None else order[block[t.source]], order[block[t.target]], t.gap)
        for t in automaton.transitions
        if t.target in block and (t.source is None or t.source in block)
    )
    return Automaton(tuple(state_of[i] for i in range(len(state_of))), tuple(transitions))


def _useful(automaton: Automaton) -> list[int]:
    alive = {q for q, state in enumerate(automaton.states) if state.accepts}
    grown = True
    while grown:
        before = len(alive)
        alive |= {t.source for t in automaton.inner if t.target in alive and t.source is not None}
        grown = len(alive) > before
    reached: set[int] = set()
    fresh = {t.target for t in automaton.starts}
    while fresh:
        reached |= fresh
        fresh = {t.target for t in automaton.inner if t.source in reached} - reached
    return [q for q in range(len(automaton.states)) if q in alive and q in reached]


def without(automaton: Automaton, variables: frozenset[str]) -> Automaton:
    """The trends that have no event under `variables`."""
    kept = [q for q, state in enumerate(automaton.states) if state.variable not in variables]
    index = {q: i for i, q in enumerate(kept)}
    transitions = tuple(
        Transition(None if t.source is None else index[t.source], index[t.target], t.gap)
        for t in automaton.transitions
        if t.target in index and (t.source is None or t.source in index)
    )
    return merge_equivalent(Automaton(tuple(automaton.states[q] for q in kept), transitions))


def requiring(automaton: Automaton, variables: frozenset[str]) -> Automaton:
    """The trends that have an event under one of `variables`: each state twice, before and after the first such
    event."""
    count = len(automaton.states)
    states = tuple(State(state.variable) for state in automaton.states) + automaton.states
    transitions = []
    for t in automaton.transitions:
        seen = count * (automaton.states[t.target].variable in variables)
        if t.source is None:
            transitions.append(Transition(None, t.target + seen, t.gap))
        else:
            transitions.append(Transition(t.source, t.target + seen, t.gap))
            transitions.append(Transition(t.source + count, t.target + count, t.gap))
    return merge_equivalent(Automaton(states, tuple(transitions)))


def intersect(left: Automaton, right: Automaton) -> Automaton:
    """The trends that both accept: the product, reached pairs only. Gaps and endings need both."""
    index: dict[tuple[int, int], int] = {}
    transitions: list[Transition] = []

    def reach(source: int | None, a: int | None, b: int | None) -> None:
        for t in left.transitions:
            for u in right.transitions:
                if t.source != a or u.source != b:
                    continue
                if left.states[t.target].variable != right.states[u.target].variable:
                    continue
                gap = Cube(tuple(sorted({*t.gap.holds, *u.gap.holds})), tuple(sorted({*t.gap.fails, *u.gap.fails})))
                if set(gap.holds) & set(gap.fails):
                    continue
                pair = (t.target, u.target)
                target = index.setdefault(pair, len(index))
                transitions.append(Transition(source, target, gap))

    reach(None, None, None)
    done = 0
    while done < len(index):
        a, b = list(index)[done]
        reach(done, a, b)
        done += 1
    states = []
    for a, b in index:
        accepts = least(frozenset(x) | frozenset(y) for x in left.states[a].accepts for y in right.states[b].accepts)
        states.append(State(left.states[a].variable, tuple(sorted(tuple(sorted(option)) for option in accepts))))
    return merge_equivalent(Automaton(tuple(states), tuple(dict.fromkeys(transitions))))
