"""The automaton of a plan: a state for each position, and, where a condition may still ask it, for each set of
variables that have events already.

A run in a state has bound its newest event at the state's position. An edge binds one event more. Each edge knows
whether it binds the first event of its variable, and which variables have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trendlake.cep_core.errors import BadPatternError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.positions import Positions, Ways

MAX_STATES = 1_000
MAX_EDGES = 20_000

START = -1
"""The source of edges that bind the first event of a match."""


@dataclass(frozen=True, order=True)
class State:
    """`part`: the variable of the newest event, at `position`. `bound`: the variables with events, of those that
    conditions may still ask. `passed`: the NOTs on the way to it, where there are several ways."""

    part: int
    position: int
    bound: tuple[int, ...]
    passed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Edge:
    """From state `source` to `target`, which binds an event to `part`. `later`: the variable may have events already.
    `holds`: a run that can take this edge may not ignore the event under `skip_till_next_match`. `nots`: those on the
    way."""

    source: int
    target: int
    part: int
    later: bool
    holds: bool
    nots: frozenset[int]


@dataclass(frozen=True)
class States:
    """`edges`: those from START first, then those of each state; `leaving[k]`: the numbers of those of state k. `ends`:
    of each state the ways to end a match there. `after`: of each position the variables that may still bind events
    after it."""

    states: tuple[State, ...]
    edges: tuple[Edge, ...]
    leaving: tuple[range, ...]
    ends: tuple[Ways, ...]
    after: tuple[frozenset[int], ...]

    @property
    def starting(self) -> range:
        """The numbers of the edges from START."""
        return range(self.leaving[0].start)

    @property
    def unambiguous(self) -> bool:
        """Whether a match has but one run: never may an event be bound to one variable by two edges."""
        groups = ([self.edges[number].part for number in numbers] for numbers in (self.starting, *self.leaving))
        return all(len(set(parts)) == len(parts) for parts in groups)

    @property
    def in_order(self) -> bool:
        """Whether the parts of a match begin in their order, one after the other."""
        return all(edge.source == START or self.states[edge.source].part <= edge.part for edge in self.edges)

    @property
    def parts(self) -> list[int]:
        """The part of each state."""
        return [state.part for state in self.states]

    def bound(self, edge: Edge) -> frozenset[int]:
        """The variables with events before the edge, of those that conditions may still ask."""
        return frozenset() if edge.source == START else frozenset(self.states[edge.source].bound)

    def rest(self, edge: Edge) -> frozenset[int] | None:
        """The variables that may bind events after the edge's source; None: any, at the start."""
        return None if edge.source == START else self.after[self.states[edge.source].position]


def states_of(plan: MatchesPlan) -> States:
    """Made once for a plan object. Raises BadPatternError where there are too many."""
    known: States | None = plan.__dict__.get("_states")
    if known is None:
        known = plan.__dict__["_states"] = _Builder(plan).states()
    return known


class _Builder:
    def __init__(self, plan: MatchesPlan) -> None:
        self.positions: Positions = plan.positions
        number = {part.variable: number for number, part in enumerate(plan.parts)}
        self.parts = [number[variable] for variable in self.positions.variables]
        self.after = tuple(frozenset(number[name] for name in names) for names in self.positions.after)
        asked = [variables for variables in _asked(plan, number) if variables]
        self.tracked = [
            frozenset(one for variables in asked if variables & after for one in variables) for after in self.after
        ]
        self.index: dict[State, int] = {}
        self.steps: list[tuple[State | None, State, bool, bool, frozenset[int]]] = []

    def states(self) -> States:
        todo: list[State | None] = [None]
        while todo:
            source = todo.pop()
            for target in self._expand(source):
                if target not in self.index:
                    self.index[target] = len(self.index)
                    todo.append(target)
            if len(self.index) > MAX_STATES or len(self.steps) > MAX_EDGES:
                message = f"the pattern needs more than {MAX_STATES:,} states or {MAX_EDGES:,} edges"
                hint = "use fewer or smaller {n,m}, or fewer optional parts that conditions compare"
                raise BadPatternError(message, hint=hint)
        states = sorted(self.index)
        number: dict[State | None, int] = {state: k for k, state in enumerate(states)}
        number[None] = START
        edges = sorted(
            (
                Edge(number[source], number[target], target.part, later, holds, nots)
                for source, target, later, holds, nots in self.steps
            ),
            key=lambda edge: (edge.source, edge.target),
        )
        bounds = [0] * (len(states) + 2)
        for edge in edges:
            bounds[edge.source + 2] += 1
        for k in range(len(states) + 1):
            bounds[k + 1] += bounds[k]
        leaving = tuple(range(bounds[k + 1], bounds[k + 2]) for k in range(len(states)))
        ends = tuple(self.positions.end.get(state.position, frozenset()) for state in states)
        return States(tuple(states), tuple(edges), leaving, ends, self.after)

    def _expand(self, source: State | None) -> Iterable[State]:
        """The states that may come after `source` (None: the start), with the edges to them."""
        follow = self.positions.start if source is None else self.positions.follow[source.position]
        bound = set() if source is None else set(source.bound)
        depth = {} if source is None else self.positions.depth[source.position]
        deepest = max(depth.values(), default=0)
        for position, ways in follow.items():
            part = self.parts[position]
            bound_after = tuple(sorted((bound | {part}) & self.tracked[position]))
            for way in sorted(ways, key=sorted):
                target = State(part, position, bound_after, tuple(sorted(way)) if len(ways) > 1 else ())
                self.steps.append((source, target, part in bound, depth.get(position, 0) == deepest, way))
                yield target


def _asked(plan: MatchesPlan, number: Mapping[str, int]) -> Iterable[frozenset[int]]:
    """The variables of each condition and equivalence: which of them have events decides what is asked. Left out are
    conditions that ask the same of each event of one variable."""
    for condition in plan.conditions:
        reads = s.attributes(condition.expression)
        variables = frozenset(number[read.variable] for read in reads)
        alike = len(variables) == 1 and not any(isinstance(read, s.Indexed) for read in reads)
        if not alike:
            yield variables
    for _, scope in plan.scoped:
        yield frozenset(number[variable] for variable in scope if variable in number)
