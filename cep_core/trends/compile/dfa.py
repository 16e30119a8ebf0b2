"""Deterministic automata over variables: what a plan's trends are, and how sets of trends are cut and met.

A sequence of (event, variable) pairs has exactly one run, so runs can be counted for trends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

from trendlake.cep_core.fingerprint import ADDED

Guards = frozenset[int]
"""Conditions (by number; a NOT's is its index) of one derivation on one gap: all must hold."""
Alternatives = frozenset[Guards]
"""Ways to pass a gap: one must hold. No set contains another."""


Variables = tuple[str, ...]
"""A set of variables, sorted."""


@dataclass(frozen=True)
class Cube:
    """A gap condition: every NOT of `holds` holds and every one of `fails` does not. And, if skip_till_next_match
    selects: for every set of `next`, the event after the gap comes at the first time at which an event under one of
    these variables could follow the one before it; for every set of `later`, it does not."""

    holds: tuple[int, ...] = ()
    fails: tuple[int, ...] = ()
    next: tuple[Variables, ...] = field(default=(), metadata=ADDED)
    later: tuple[Variables, ...] = field(default=(), metadata=ADDED)

    @property
    def possible(self) -> bool:
        """Whether some gap satisfies it. The event after the gap is under a variable of all these sets, so what comes
        first among more variables comes first among fewer."""
        return not set(self.holds) & set(self.fails) and not any(
            set(fewer) <= set(more) for fewer in self.later for more in self.next
        )

    def __and__(self, other: Cube) -> Cube:
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return Cube(*(tuple(sorted({*a, *b})) for a, b in pairs))


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
    def watched(self) -> frozenset[str]:
        """Variables whose events matter to its trends: its own, and those that may not be skipped."""
        return frozenset(self.variables).union(*(names for t in self.inner for names in (*t.gap.next, *t.gap.later)))

    @property
    def guards(self) -> tuple[int, ...]:
        """The NOTs on its own gaps and endings, ascending."""
        guards = {g for t in self.transitions for g in (*t.gap.holds, *t.gap.fails)}
        guards |= {g for state in self.states for option in state.accepts for g in option}
        return tuple(sorted(guards))

    @property
    def follows(self) -> frozenset[tuple[str, str]]:
        """(V, W): an event under W may come directly after one under V."""
        pairs = (
            (self.states[t.source].variable, self.states[t.target].variable) for t in self.inner if t.source is not None
        )
        return frozenset(pairs)


def least(sets: Iterable[Guards]) -> Alternatives:
    """Drop a set that contains another: whenever it holds, the smaller one does."""
    smallest: list[Guards] = []
    for candidate in sorted(set(sets), key=len):
        if not any(smaller <= candidate for smaller in smallest):
            smallest.append(candidate)
    return frozenset(smallest)


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
    states = [q for q, state in enumerate(automaton.states) if state.variable not in variables]
    index = {q: i for i, q in enumerate(states)}
    transitions = tuple(
        Transition(None if t.source is None else index[t.source], index[t.target], t.gap)
        for t in automaton.transitions
        if t.target in index and (t.source is None or t.source in index)
    )
    return merge_equivalent(Automaton(tuple(automaton.states[q] for q in states), transitions))


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


def of_length(automaton: Automaton, variables: frozenset[str], low: int, high: int | None) -> Automaton:
    """The trends that have `low` to `high` events (None: no bound) under one of `variables`: each state once for each
    number of such events so far. Without a bound the last number includes all larger ones."""
    most = low if high is None else high
    index: dict[tuple[int, int], int] = {}
    transitions: dict[Transition, None] = {}
    leaving: dict[int | None, list[Transition]] = {}
    for t in automaton.transitions:
        leaving.setdefault(t.source, []).append(t)
    todo: list[tuple[int | None, int]] = [(None, 0)]
    while todo:
        q, before = todo.pop()
        for t in leaving.get(q, ()):
            count = before + (automaton.states[t.target].variable in variables)
            if count > most and high is not None:
                continue
            place = (t.target, min(count, most))
            if place not in index:
                index[place] = len(index)
                todo.append(place)
            transitions[Transition(None if q is None else index[q, before], index[place], t.gap)] = None
    states = [automaton.states[q] if count >= low else State(automaton.states[q].variable) for q, count in index]
    return merge_equivalent(Automaton(tuple(states), tuple(transitions)))


def implied(automaton: Automaton) -> Automaton:
    """The automaton without `next` where that adds nothing: where `next` names all variables that may follow the event,
    so that it means the first time of any of them. That holds for a state made of positions with the same followers."""
    out: dict[int | None, set[str]] = {}
    for t in automaton.inner:
        out.setdefault(t.source, set()).add(automaton.states[t.target].variable)
    plain = {q: (tuple(sorted(names)),) for q, names in out.items()}
    usual = [q for q in plain if all(t.gap.next == plain[q] for t in automaton.inner if t.source == q)]
    return Automaton(
        automaton.states,
        tuple(replace(t, gap=replace(t.gap, next=())) if t.source in usual else t for t in automaton.transitions),
    )


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
                gap = t.gap & u.gap
                if not gap.possible:
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
