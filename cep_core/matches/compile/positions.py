"""The positions of a pattern, and which may follow which (Glushkov's automaton), with the NOTs between them.

Each type of the pattern is a position. `P{n,m}` is n to m copies of P, and each copy has positions of its own:
`P{1,3}` -> `SEQ(P, SEQ(P, P?)?)`, `P{2,}` -> `SEQ(P, P+)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TypeAlias

from trendlake.cep_core.errors import BadPatternError
from trendlake.cep_core.language import syntax as s

MAX_POSITIONS = 1_000
MAX_EFFORT = 600_000
"""Steps of the construction: optional parts side by side, and NOTs between them, multiply the ways between parts."""

Ways: TypeAlias = frozenset[frozenset[int]]
"""Ways to pass from one position to another: the NOTs (their numbers) that each passes. No set contains another."""

OPEN: Ways = frozenset({frozenset()})
SHUT: Ways = frozenset()


@dataclass(frozen=True)
class Positions:
    """`variables`: of each position. `start`, `follow`, `end`: the ways to the positions that begin a match, to those
    that may come after a position, and from those that end a match. `depth`: in how many repetitions (`+`, `{2,5}`) a
    step from a position to one that may follow it stays."""

    variables: tuple[str, ...]
    start: Mapping[int, Ways]
    follow: tuple[Mapping[int, Ways], ...]
    end: Mapping[int, Ways]
    depth: tuple[Mapping[int, int], ...]

    def together(self, one: str, other: str) -> bool:
        """Whether a match may have events of both variables."""
        pairs = zip(self.variables, self.after, strict=True)
        return any((name == one and other in after) or (name == other and one in after) for name, after in pairs)

    def optional(self, variable: str) -> bool:
        """Whether a match may have no event of a variable: there is a way past all its positions."""
        todo = [position for position in self.start if self.variables[position] != variable]
        known = set(todo)
        while todo:
            position = todo.pop()
            if position in self.end:
                return True
            for other in self.follow[position]:
                if other not in known and self.variables[other] != variable:
                    known.add(other)
                    todo.append(other)
        return False

    @cached_property
    def after(self) -> tuple[frozenset[str], ...]:
        """Of each position the variables of those that may come after it, at once or later."""
        names = sorted(set(self.variables))
        bit = {name: 1 << k for k, name in enumerate(names)}
        masks = [0] * len(self.variables)
        changed = True
        while changed:
            changed = False
            for position in range(len(masks) - 1, -1, -1):
                mask = masks[position]
                for other in self.follow[position]:
                    mask |= masks[other] | bit[self.variables[other]]
                changed = changed or mask != masks[position]
                masks[position] = mask
        return tuple(frozenset(name for name in names if mask & bit[name]) for mask in masks)


@dataclass
class _Fragment:
    """The positions with which a part begins and ends, and the ways to pass it without an event."""

    first: dict[int, Ways] = field(default_factory=dict)
    last: dict[int, Ways] = field(default_factory=dict)
    empty: Ways = SHUT


def positions_of(node: s.PatternNode, number_of: Mapping[str, int]) -> Positions:
    """The positions of a checked pattern without AND. `number_of`: NOT variable -> its number. Raises BadPatternError
    for a pattern that is too large or can match the empty sequence."""
    builder = _Builder(number_of)
    whole = builder.build(node, 0)
    if whole.empty:
        message = "the pattern can match the empty sequence"
        raise BadPatternError(message, hint="one part at least must be there: + not *")
    follow, depth = tuple(builder.follow), tuple(builder.depth)
    return Positions(tuple(builder.variables), whole.first, follow, whole.last, depth)


class _Builder:
    def __init__(self, number_of: Mapping[str, int]) -> None:
        self.number_of = number_of
        self.variables: list[str] = []
        self.follow: list[dict[int, Ways]] = []
        self.depth: list[dict[int, int]] = []
        self.effort = MAX_EFFORT

    def build(self, node: s.PatternNode, depth: int) -> _Fragment:
        """`depth`: how many repetitions the node is in."""
        match node:
            case s.Atom(variable=variable):
                position = len(self.variables)
                if position >= MAX_POSITIONS:
                    hint = "use fewer or smaller {n,m}"
                    raise BadPatternError(f"the pattern has more than {MAX_POSITIONS:,} positions", hint=hint)
                self.variables.append(variable)
                self.follow.append({})
                self.depth.append({})
                return _Fragment({position: OPEN}, {position: OPEN})
            case s.Not(body=s.Atom(variable=variable)):
                return _Fragment(empty=frozenset({frozenset({self.number_of[variable]})}))
            case s.Seq(parts=parts):
                return self._chain([lambda part=part: self.build(part, depth) for part in parts], depth)  # type: ignore[misc]
            case s.Or(options=options):
                union = _Fragment()
                for option in options:
                    piece = self.build(option, depth)
                    self._merge(union.first, piece.first)
                    self._merge(union.last, piece.last)
                    union.empty = _least(union.empty | piece.empty)
                return union
            case s.Repeat(body=body, low=low, high=high):
                return self._repeat(body, low, high, depth)
        raise AssertionError(node)  # pragma: no cover - the pattern is checked

    def _chain(self, makers: Iterable[Callable[[], _Fragment]], depth: int) -> _Fragment:
        whole = _Fragment(empty=OPEN)
        for make in makers:
            whole = self._then(whole, make(), depth)
        return whole

    def _then(self, left: _Fragment, right: _Fragment, depth: int) -> _Fragment:
        self._link(left, right, depth)
        joined = _Fragment(dict(left.first), dict(right.last), self._both(left.empty, right.empty))
        self._merge(joined.first, right.first, left.empty)
        self._merge(joined.last, left.last, right.empty)
        return joined

    def _link(self, left: _Fragment, right: _Fragment, depth: int) -> None:
        for position, ways in left.last.items():
            self._merge(self.follow[position], right.first, ways)
            known = self.depth[position]
            for other in right.first:
                known[other] = max(known.get(other, 0), depth)

    def _repeat(self, body: s.PatternNode, low: int, high: int | None, depth: int) -> _Fragment:
        depth += high != 1
        pieces = [self.build(body, depth) for _ in range(max(low, 1) if high is None else high)]
        if high is None:
            self._link(pieces[-1], pieces[-1], depth)
        whole = _Fragment(empty=OPEN)
        for index in range(len(pieces) - 1, -1, -1):
            whole = self._then(pieces[index], whole, depth)
            if index >= low:
                whole.empty = _least(whole.empty | OPEN)
        return whole

    def _both(self, left: Ways, right: Ways) -> Ways:
        self._spend(len(left) * len(right) + 1)
        if left == OPEN or right == OPEN:
            return right if left == OPEN else left
        return _least(a | b for a, b in product(left, right))

    def _merge(self, into: dict[int, Ways], other: Mapping[int, Ways], via: Ways = OPEN) -> None:
        for position, ways in other.items():
            passed = self._both(ways, via)
            if passed:
                into[position] = _least(into.get(position, SHUT) | passed)

    def _spend(self, steps: int) -> None:
        self.effort -= steps
        if self.effort < 0:
            message = "the pattern has too many ways from part to part"
            raise BadPatternError(message, hint="use fewer optional parts, NOTs or {n,m}")


def _least(ways: Iterable[frozenset[int]]) -> Ways:
    """Those that contain no other: where fewer NOTs are enough, more are not asked."""
    known = set(ways)
    if len(known) == 1:
        return frozenset(known)
    return frozenset(one for one in known if not any(other < one for other in known))
