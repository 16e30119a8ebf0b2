"""Patterns to deterministic automata over variables, with NOTs as guards on the gaps between events.

Construction: Glushkov's position automaton (one position an atom, `{n,m}` unrolled), where a NOT is a marker that the
derivation passes between two positions; then determinisation by subsets, one subset a (last variable, residual), then
merging of equivalent states. In the result a sequence of (event, variable) pairs has exactly one run, so runs can be
counted for trends even where the pattern is ambiguous (`A+ OR SEQ(A, A+)`): this replaces GRETA's template (section
4.1), whose counts are of derivations.

skip_till_next_match is a condition on the gap too: after an event at position p, the next one comes at the first time
at which an event could follow p. Positions of one variable that the same variables may follow share that condition, and
mostly a state has but one. Where a state is of positions with other followers, `SEQ(A{1,2}, A, B)`, each derivation
lives by its own condition, and a trend counts while one does: the subsets are then those of the derivations alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

from trendlake.cep_core.errors import BadPatternError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.trends.compile.dfa import (
    Alternatives,
    Automaton,
    Cube,
    State,
    Transition,
    least,
    merge_equivalent,
)

MAX_POSITIONS = 4_000
MAX_STATES = 500
MAX_EFFORT = 4_000_000
"""Steps of the construction: optional parts side by side, and NOTs between them, multiply the ways between parts."""

_OPEN: Alternatives = frozenset({frozenset()})
_SHUT: Alternatives = frozenset()


@dataclass
class _Fragment:
    """A part's positions: where it begins and ends, and by which gaps it may be passed without an event."""

    first: dict[int, Alternatives] = field(default_factory=dict)
    last: dict[int, Alternatives] = field(default_factory=dict)
    empty: Alternatives = _SHUT


class _Effort:
    """The remainder of MAX_EFFORT."""

    def __init__(self) -> None:
        self.left = MAX_EFFORT

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise BadPatternError(
                "the pattern has too many ways from part to part", hint="use fewer optional parts, NOTs or {n,m}"
            )

    def both(self, left: Alternatives, right: Alternatives) -> Alternatives:
        self.spend(len(left) * len(right) + 1)
        if left == _OPEN or right == _OPEN:  # nothing to add to the other
            return right if left == _OPEN else left
        return least(a | b for a, b in product(left, right))

    def merge(self, into: dict[int, Alternatives], other: dict[int, Alternatives], via: Alternatives = _OPEN) -> None:
        for position, ways in other.items():
            passed = self.both(ways, via)
            if passed:
                before = into.get(position, _SHUT)
                self.spend(len(before))
                into[position] = least(before | passed) if before else passed


class _Glushkov:
    def __init__(self, guard_of: Callable[[s.Not], int]) -> None:
        self.variables: list[str] = []
        self.follow: dict[int, dict[int, Alternatives]] = {}
        self.guard_of = guard_of
        self.effort = _Effort()

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
                    self.effort.merge(union.first, piece.first)
                    self.effort.merge(union.last, piece.last)
                    union.empty = least(union.empty | piece.empty)
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
        joined = _Fragment(dict(left.first), dict(right.last), self.effort.both(left.empty, right.empty))
        self.effort.merge(joined.first, right.first, left.empty)
        self.effort.merge(joined.last, left.last, right.empty)
        return joined

    def _link(self, left: _Fragment, right: _Fragment) -> None:
        for position, ways in left.last.items():
            self.effort.merge(self.follow[position], right.first, ways)

    def _repeat(self, body: s.PatternNode, low: int, high: int | None) -> _Fragment:
        """`X{n,}` = X ... X X+ ; `X{n,m}` = X ... X (X (X ...)?)? : each copy follows its neighbour only."""
        pieces = [self.build(body) for _ in range(max(low, 1) if high is None else high)]
        if high is None:
            self._link(pieces[-1], pieces[-1])
        whole = _Fragment(empty=_OPEN)
        for index in range(len(pieces) - 1, -1, -1):
            whole = self._then(pieces[index], whole)
            if index >= low:
                whole.empty = least(whole.empty | _OPEN)
        return whole


def build(node: s.PatternNode, guard_of: Callable[[s.Not], int], next_match: bool = False) -> Automaton:
    """The automaton of a pattern without AND. `guard_of` gives each NOT its index. `next_match`: its trends are those
    that skip_till_next_match selects.

    Raises BadPatternError when the pattern accepts the empty sequence, or is too large.
    """
    glushkov = _Glushkov(guard_of)
    whole = glushkov.build(node)
    if whole.empty:
        raise BadPatternError(
            "the pattern can match the empty sequence", hint="one part at least must be there: + not *"
        )
    return merge_equivalent(_determinise(glushkov, whole, _Followers(glushkov, next_match)))


class _Followers:
    """skip_till_next_match as conditions on gaps: by what may follow a position, the one on what comes after it. Their
    numbers are below those of NOTs, rising with the number of variables."""

    def __init__(self, glushkov: _Glushkov, selects: bool) -> None:
        after = glushkov.follow.items() if selects else ()
        self.of = {p: tuple(sorted({glushkov.variables[q] for q in then})) for p, then in after if then}
        self.sets = sorted(set(self.of.values()), key=lambda names: (len(names), names))
        self.number = {names: place - len(self.sets) for place, names in enumerate(self.sets)}

    def via(self, position: int) -> Alternatives:
        """The condition on a gap after an event at the position."""
        return frozenset({frozenset({self.number[self.of[position]]})}) if position in self.of else _OPEN

    def cube(self, holds: frozenset[int], fails: frozenset[int]) -> Cube:
        """The conditions by what they are."""
        nots = [tuple(sorted(g for g in side if g >= 0)) for side in (holds, fails)]
        nexts = [tuple(self.sets[g] for g in sorted(side) if g < 0) for side in (holds, fails)]
        return Cube(nots[0], nots[1], nexts[0], nexts[1])


def _cubes(
    ways: dict[int, Alternatives], effort: _Effort, followers: _Followers
) -> Iterable[tuple[Cube, frozenset[int]]]:
    """Disjoint gap conditions with the positions each admits; conditions that admit none are left out."""
    guards = sorted({g for options in ways.values() for option in options for g in option})

    def split(index: int, holds: frozenset[int], fails: frozenset[int]) -> Iterable[tuple[Cube, frozenset[int]]]:
        effort.spend(len(ways))
        certain = frozenset(p for p, options in ways.items() if any(o <= holds for o in options))
        possible = frozenset(p for p, options in ways.items() if any(not (o & fails) for o in options))
        if not possible:
            return
        if certain == possible:
            yield followers.cube(holds, fails), certain
            return
        guard = guards[index]
        if followers.cube(holds | {guard}, fails).possible:
            yield from split(index + 1, holds | {guard}, fails)
        yield from split(index + 1, holds, fails | {guard})

    yield from split(0, frozenset(), frozenset())


def _determinise(glushkov: _Glushkov, whole: _Fragment, followers: _Followers) -> Automaton:
    index: dict[frozenset[int], int] = {}
    members: list[frozenset[int]] = []
    transitions: list[Transition] = []

    def expand(source: int | None, ways: dict[int, Alternatives]) -> None:
        by_variable: dict[str, dict[int, Alternatives]] = {}
        for position, options in ways.items():
            by_variable.setdefault(glushkov.variables[position], {})[position] = options
        for group in by_variable.values():
            for cube, subset in _cubes(group, glushkov.effort, followers):
                if subset not in index:
                    if len(members) >= MAX_STATES:
                        hint = "use fewer or smaller {n,m}"
                        if followers.of:
                            hint += ", or variables of their own for positions that share one"
                        raise BadPatternError(f"the pattern needs more than {MAX_STATES} states", hint=hint)
                    index[subset] = len(members)
                    members.append(subset)
                transitions.append(Transition(source, index[subset], cube))

    expand(None, whole.first)
    done = 0
    while done < len(members):
        ways: dict[int, Alternatives] = {}
        for position in members[done]:
            glushkov.effort.merge(ways, glushkov.follow[position], followers.via(position))
        expand(done, ways)
        done += 1
    states = []
    for subset in members:
        accepts = least(option for p in subset for option in whole.last.get(p, _SHUT))
        sets = tuple(sorted(tuple(sorted(option)) for option in accepts))
        states.append(State(glushkov.variables[min(subset)], sets))
    return Automaton(tuple(states), tuple(transitions))
