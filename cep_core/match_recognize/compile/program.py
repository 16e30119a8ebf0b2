"""PATTERN as places and the ways between them.

A place stands for one variable written out: `A{2,4}` has four. From each place, and from the begin, lead ways in the
order of preference: to places that may take the next row, and to the end of the match. A way to a place that a
preferred way leads to already is left out: what follows is the same.

The rule of iterations without a row belongs here and only here: where an iteration ends without a row, and as many as
are asked for are done, the loop is left. So what runs knows no loops that take no row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from trendlake.cep_core.match_recognize.compile import syntax as r

MOST_PARTS = 10_000
ACCEPT = -1
"""The end of the match, among places."""

_OUTSIDE = 1_000_000


def parts_of(part: r.Part) -> int:
    """How many variables, anchors and `()` a pattern has, its bounds and permutations written out."""
    match part:
        case r.Sequence(parts=parts) | r.Alternatives(options=parts):
            return sum(map(parts_of, parts))
        case r.Permute(parts=parts):
            return sum(map(parts_of, parts)) << (len(parts) - 1)
        case r.Excluded(body=body):
            return parts_of(body)
        case r.Repeat(body=body, low=low, high=high):
            return parts_of(body) * (max(low, 1) if high is None else high)
        case _:
            return 1


@dataclass(frozen=True)
class _Step:
    """An instruction. `sort`: place, split, first (row), last (row), begin or end of an iteration, accept. `to`: where
    to go on, best first; of an end: where to go after an iteration without a row, and after any other."""

    sort: str
    to: tuple[int, ...] = ()
    level: int = 0
    place: int = 0


@dataclass(frozen=True)
class Program:
    """`variables`: of each place; `excluded`: whether its rows are left out of ALL ROWS PER MATCH."""

    variables: tuple[str, ...]
    excluded: tuple[bool, ...]
    steps: tuple[_Step, ...]
    entry: int
    after: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.variables)

    def begin(self, *, first: bool) -> tuple[int, ...]:
        """The ways from before a row, which is the partition's first one or not."""
        return self._ways(("begin", first), self.entry, first, False)

    def behind(self, place: int, *, last: bool) -> tuple[int, ...]:
        """The ways from behind a row that a place took, which is the partition's last one or not. Behind the last one
        they are ACCEPT or none."""
        return self._ways((place, last), self.after[place], False, last)

    def mask(self, place: int | None) -> int:
        """The places to which ways lead from behind a row that a place took, a bit each; from before any row for None.
        ACCEPT is the bit behind those of all places. It is known without the order of the ways, at less cost."""
        if place is None:
            return self._mask((self.entry, _OUTSIDE), "first") | self._mask((self.entry, _OUTSIDE), "")
        return self._mask((self.after[place], _OUTSIDE), "")

    def ends(self, place: int) -> bool:
        """Whether a match may end behind the partition's last row, if a place took it."""
        return bool(self._mask((self.after[place], _OUTSIDE), "last") >> self.length)

    def _mask(self, start: tuple[int, int], anchor: str) -> int:
        """`anchor`: the sort of anchors that hold."""
        known = self._masks.setdefault(anchor, {})
        left = [start]
        while left:
            state = left[-1]
            if state in known:
                left.pop()
                continue
            following = self._following(*state, anchor)
            unknown = [one for one in following if one not in known]
            if unknown:
                left += unknown
                continue
            step = self.steps[state[0]]
            own = 1 << step.place if step.sort == "place" else 1 << self.length if step.sort == "accept" else 0
            for one in following:
                own |= known[one]
            known[state] = own
            left.pop()
        return known[start]

    def _following(self, at: int, began: int, anchor: str) -> list[tuple[int, int]]:
        """The states behind one between two rows; see `_closure`."""
        step = self.steps[at]
        match step.sort:
            case "split":
                return [(to, began) for to in step.to]
            case "begin":
                return [(step.to[0], min(began, step.level))]
            case "end":
                without, other = step.to
                return [(without if began <= step.level else other, began if began < step.level else _OUTSIDE)]
            case "first" | "last" if step.sort == anchor:
                return [(step.to[0], began)]
        return []

    @cached_property
    def _masks(self) -> dict[str, dict[tuple[int, int], int]]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[object, bool], tuple[int, ...]]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_known", "_masks")}

    def _ways(self, key: tuple[object, bool], start: int, first: bool, last: bool) -> tuple[int, ...]:
        if key not in self._known:
            self._known[key] = self._closure(start, first, last)
        return self._known[key]

    def _closure(self, start: int, first: bool, last: bool) -> tuple[int, ...]:
        """Depth first, best first. A state is a step, and how far out the outermost iteration is that began on the way:
        it and those within have no row yet."""
        result: dict[int, None] = {}
        seen: set[tuple[int, int]] = set()
        left = [(start, _OUTSIDE)]
        while left:
            at, began = left.pop()
            if (at, began) in seen:
                continue
            seen.add((at, began))
            step = self.steps[at]
            if step.sort == "accept":
                result.setdefault(ACCEPT)
                if last:
                    break
            elif step.sort == "place":
                if not last:
                    result.setdefault(step.place)
            elif step.sort == "split":
                left.extend((to, began) for to in reversed(step.to))
            elif step.sort == "begin":
                left.append((step.to[0], min(began, step.level)))
            elif step.sort == "end":
                without, other = step.to
                empty = began <= step.level
                left.append((without if empty else other, began if began < step.level else _OUTSIDE))
            elif first if step.sort == "first" else last:
                left.append((step.to[0], began))
        return tuple(result)


def nullable(part: r.Part) -> bool:
    """Whether a pattern can be without a row."""
    match part:
        case r.Variable():
            return False
        case r.Sequence(parts=parts) | r.Permute(parts=parts):
            return all(map(nullable, parts))
        case r.Alternatives(options=options):
            return any(map(nullable, options))
        case r.Excluded(body=body):
            return nullable(body)
        case r.Repeat(body=body, low=low):
            return low == 0 or nullable(body)
        case _:
            return True


def program_of(pattern: r.Part) -> Program:
    """The program of a pattern of at most MOST_PARTS parts."""
    builder = _Builder()
    accept = builder.add(_Step("accept"))
    entry = builder.build(pattern, accept, 0, False)
    last = len(builder.variables) - 1
    steps = tuple(replace(step, place=last - step.place) if step.sort == "place" else step for step in builder.steps)
    return Program(
        tuple(reversed(builder.variables)),
        tuple(reversed(builder.excluded)),
        steps,
        entry,
        tuple(reversed(builder.after)),
    )


class _Builder:
    """Builds from the end: each part is given the step to go on at."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.variables: list[str] = []
        self.excluded: list[bool] = []
        self.after: list[int] = []

    def add(self, step: _Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def build(self, part: r.Part, then: int, level: int, out: bool) -> int:
        """The step that a part begins with. `level`: how many iterations it is in; `out`: whether in `{- -}`."""
        match part:
            case r.Variable(name=name):
                self.variables.append(name)
                self.excluded.append(out)
                self.after.append(then)
                return self.add(_Step("place", place=len(self.variables) - 1))
            case r.Empty():
                return then
            case r.Anchor(last=last):
                return self.add(_Step("last" if last else "first", (then,)))
            case r.Sequence(parts=parts):
                for one in reversed(parts):
                    then = self.build(one, then, level, out)
                return then
            case r.Alternatives(options=options):
                return self.add(_Step("split", tuple(self.build(one, then, level, out) for one in options)))
            case r.Excluded(body=body):
                return self.build(body, then, level, True)
            case r.Permute(parts=parts):
                return self._permute(parts, then, level, out)
            case r.Repeat():
                return self._repeat(part, then, level, out)

    def _permute(self, parts: tuple[r.Part, ...], then: int, level: int, out: bool) -> int:
        """A split for each set of parts that are done: those that are left, in the order written."""
        every = (1 << len(parts)) - 1
        steps = {every: then}
        for done in range(every - 1, -1, -1):
            left = [at for at in range(len(parts)) if not done >> at & 1]
            ways = tuple(self.build(parts[at], steps[done | 1 << at], level, out) for at in left)
            steps[done] = self.add(_Step("split", ways))
        return steps[0]

    def _repeat(self, part: r.Repeat, then: int, level: int, out: bool) -> int:
        empty = nullable(part.body)

        def choice(again: int) -> int:
            return self.add(_Step("split", (again, then) if part.greedy else (then, again)))

        def iteration(without: int, other: int) -> int:
            """One iteration, and where it goes on."""
            if not empty:
                return self.build(part.body, other, level, out)
            end = self.add(_Step("end", (without, other), level))
            return self.add(_Step("begin", (self.build(part.body, end, level + 1, out),), level))

        if part.high is None:
            at = self.add(_Step("split"))  # filled in below: the loop comes back to it
            again = iteration(then, at)
            self.steps[at] = _Step("split", (again, then) if part.greedy else (then, again))
            begin = again if part.low else at
            done = max(part.low, 1)
        else:
            begin, done = then, part.high
            if done > part.low:
                begin = iteration(then, then)
                for _ in range(done - 1, part.low, -1):
                    begin = iteration(then, choice(begin))
                begin = choice(begin)
                done = part.low
                if not done:
                    return begin
                begin = iteration(then, begin)
            elif done:
                begin = iteration(then, then)
        for _ in range(done - 1):
            begin = iteration(begin, begin)
        return begin
