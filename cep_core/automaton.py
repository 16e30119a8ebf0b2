"""Patterns to deterministic automata over variables, with NOTs as guards on the gaps between events.

Construction: Glushkov's position automaton (one position an atom, `{n,m}` unrolled), where a NOT is a marker that the
derivation passes between two positions; then determinisation by subsets, one subset a (last variable, residual), then
merging of equivalent states. In the result a sequence of (event, variable) pairs has exactly one run, so runs can be
counted for trends even where the pattern is ambiguous (`A+ OR SEQ(A, A+)`): this replaces GRETA's template (section
4.1), whose counts are of derivations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

from cep_core import syntax as s
from cep_core.errors import BadPatternError

MAX_POSITIONS = 4_000
MAX_STATES = 500

Guards = frozenset[int]
"""NOTs (by index) that one derivation passes in one gap: all must hold."""
Alternatives = frozenset[Guards]
"""Ways to pass a gap: one must hold. No set contains another."""

_OPEN: Alternatives = frozenset({frozenset()})
_SHUT: Alternatives = frozenset()


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


@dataclass
class _Fragment:
    """A part's positions: where it begins and ends, and by which gaps it may be passed without an event."""

    first: dict[int, Alternatives] = field(default_factory=dict)
    last: dict[int, Alternatives] = field(default_factory=dict)
    empty: Alternatives = _SHUT


def _least(sets: Iterable[Guards]) -> Alternatives:
    """Drop a set that contains another: whenever it holds, the smaller one does."""
    kept: list[Guards] = []
    for candidate in sorted(set(sets), key=len):
        if not any(smaller <= candidate for smaller in kept):
            kept.append(candidate)
    return frozenset(kept)


def _both(left: Alternatives, right: Alternatives) -> Alternatives:
    return _least(a | b for a, b in product(left, right))


def _merge(into: dict[int, Alternatives], other: dict[int, Alternatives], via: Alternatives = _OPEN) -> None:
    for position, ways in other.items():
        passed = _both(ways, via)
        if passed:
            into[position] = _least(into.get(position, _SHUT) | passed)


class _Glushkov:
    def __init__(self, guard_of: Callable[[s.Not], int]) -> None:
        self.variables: list[str] = []
        self.follow: dict[int, dict[int, Alternatives]] = {}
        self.guard_of = guard_of

    def build(self, node: s.PatternNode) -> _Fragment:
        match node:
            case s.Atom(variable=variable):
                position = len(self.variables)
                if position >= MAX_POSITIONS:
                    raise BadPatternError(f"the pattern unrolls to more than {MAX_POSITIONS} events")
                self.variables.append(variable)
                self.follow[position] = {}
                return _Fragment({position: _OPEN}, {position: _OPEN})
            case s.Not():
                return _Fragment(empty=frozenset({frozenset({self.guard_of(node)})}))
            case s.Seq(parts=parts):
                return self._chain([lambda part=part: self.build(part) for part in parts])  # type: ignore[misc]
            case s.Or(options=options):
                union = _Fragment()
                for option in options:
                    piece = self.build(option)
                    _merge(union.first, piece.first)
                    _merge(union.last, piece.last)
                    union.empty = _least(union.empty | piece.empty)
                return union
            case s.Repeat(body=body, low=low, high=high):
                return self._repeat(body, low, high)
            case s.And():
                raise BadPatternError("AND stands outermost only")

    def _chain(self, makers: Iterable[Callable[[], _Fragment]]) -> _Fragment:
        whole = _Fragment(empty=_OPEN)
        for make in makers:
            whole = self._then(whole, make())
        return whole

    def _then(self, left: _Fragment, right: _Fragment) -> _Fragment:
        self._link(left, right)
        joined = _Fragment(dict(left.first), dict(right.last), _both(left.empty, right.empty))
        _merge(joined.first, right.first, left.empty)
        _merge(joined.last, left.last, right.empty)
        return joined

    def _link(self, left: _Fragment, right: _Fragment) -> None:
        for position, ways in left.last.items():
            _merge(self.follow[position], right.first, ways)

    def _repeat(self, body: s.PatternNode, low: int, high: int | None) -> _Fragment:
        """`X{n,}` = X ... X X+ ; `X{n,m}` = X ... X (X (X ...)?)? : each copy follows its neighbour only."""
        pieces = [self.build(body) for _ in range(max(low, 1) if high is None else high)]
        if high is None:
            self._link(pieces[-1], pieces[-1])
        whole = _Fragment(empty=_OPEN)
        for index in range(len(pieces) - 1, -1, -1):
            whole = self._then(pieces[index], whole)
            if index >= low:
                whole.empty = _least(whole.empty | _OPEN)
        return whole


def build(node: s.PatternNode, guard_of: Callable[[s.Not], int]) -> Automaton:
    """The automaton of a pattern without AND. `guard_of` gives each NOT its index.

    Raises BadPatternError when the pattern accepts the empty sequence, or is too large.
    """
    glushkov = _Glushkov(guard_of)
    whole = glushkov.build(node)
    if whole.empty:
        raise BadPatternError(
            "the pattern can match the empty sequence", hint="one part at least must be there: + not *"
        )
    return _merge_equivalent(_determinise(glushkov, whole))


def _cubes(ways: dict[int, Alternatives]) -> Iterable[tuple[Cube, frozenset[int]]]:
    """Disjoint gap conditions with the positions each admits; conditions that admit none are left out."""
    guards = sorted({g for options in ways.values() for option in options for g in option})

    def split(index: int, holds: frozenset[int], fails: frozenset[int]) -> Iterable[tuple[Cube, frozenset[int]]]:
        certain = frozenset(p for p, options in ways.items() if any(o <= holds for o in options))
        possible = frozenset(p for p, options in ways.items() if any(not (o & fails) for o in options))
        if not possible:
            return
        if certain == possible:
            yield Cube(tuple(sorted(holds)), tuple(sorted(fails))), certain
            return
        guard = guards[index]
        yield from split(index + 1, holds | {guard}, fails)
        yield from split(index + 1, holds, fails | {guard})

    yield from split(0, frozenset(), frozenset())


def _determinise(glushkov: _Glushkov, whole: _Fragment) -> Automaton:
    index: dict[frozenset[int], int] = {}
    members: list[frozenset[int]] = []
    transitions: list[Transition] = []

    def expand(source: int | None, ways: dict[int, Alternatives]) -> None:
        by_variable: dict[str, dict[int, Alternatives]] = {}
        for position, options in ways.items():
            by_variable.setdefault(glushkov.variables[position], {})[position] = options
        for group in by_variable.values():
            for cube, subset in _cubes(group):
                if subset not in index:
                    if len(members) >= MAX_STATES:
                        raise BadPatternError(
                            f"the pattern needs more than {MAX_STATES} states", hint="use fewer or smaller {n,m}"
                        )
                    index[subset] = len(members)
                    members.append(subset)
                transitions.append(Transition(source, index[subset], cube))

    expand(None, whole.first)
    done = 0
    while done < len(members):
        ways: dict[int, Alternatives] = {}
        for position in members[done]:
            _merge(ways, glushkov.follow[position])
        expand(done, ways)
        done += 1
    states = []
    for subset in members:
        accepts = _least(option for p in subset for option in whole.last.get(p, _SHUT))
        sets = tuple(sorted(tuple(sorted(option)) for option in accepts))
        states.append(State(glushkov.variables[min(subset)], sets))
    return Automaton(tuple(states), tuple(transitions))


def _merge_equivalent(automaton: Automaton) -> Automaton:
    """Moore's refinement: states of one variable with the same futures become one; states without a past or a future
    go."""
    useful = _useful(automaton)
    if not useful:
        return Automaton((), ())
    block = dict.fromkeys(useful, 0)
    while True:
        signature: dict[int, object] = {}
        for q in useful:
            out = frozenset(
                (block[t.target], t.gap) for t in automaton.transitions if t.source == q and t.target in useful
            )
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
    return _merge_equivalent(Automaton(tuple(automaton.states[q] for q in kept), transitions))


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
    return _merge_equivalent(Automaton(states, tuple(transitions)))


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
        accepts = _least(frozenset(x) | frozenset(y) for x in left.states[a].accepts for y in right.states[b].accepts)
        states.append(State(left.states[a].variable, tuple(sorted(tuple(sorted(option)) for option in accepts))))
    return _merge_equivalent(Automaton(tuple(states), tuple(dict.fromkeys(transitions))))
