"""NOTs that must see the whole match: conditions on its events, or an equivalence with some of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.expressions.functions import Value
from trendlake.cep_core.expressions.scalar import Reader, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, Negation, is_fence, iterates
from trendlake.cep_core.matches.compile.registers import places
from trendlake.cep_core.matches.compile.states import START, states_of
from trendlake.cep_core.matches.run.buffer import Chunk, Match, Step
from trendlake.cep_core.matches.run.closures import FINISHED, FOLDS
from trendlake.cep_core.matches.run.events import Stream

Gap: TypeAlias = tuple[int | None, int | None]
"""The events between which a NOT looks; None: it stands first or last."""


def match_of(plan: MatchesPlan, steps: Sequence[tuple[int, int]]) -> Match:
    """The match of (event, part) pairs, given from first to last."""
    match: Match = [[] for _ in plan.parts]
    for event, part in steps:
        match[part].append(event)
    return match


class Finish:
    """Checks each finished run of a stream for the NOTs that are no fences (see `negation_inline`)."""

    def __init__(self, plan: MatchesPlan, stream: Stream) -> None:
        self.plan = plan
        self.stream = stream
        self.part = places(plan)
        self.kleene = {part.variable for part in plan.parts if part.kleene}
        self.nots = {
            k: self._not(k, negation) for k, negation in enumerate(plan.negations) if not is_fence(plan, negation)
        }
        self.states = states_of(plan)
        self.between = {(edge.source, edge.target): edge.nots & self.nots.keys() for edge in self.states.edges}

    @cached_property
    def time(self) -> list[int]:
        """Of each event, microseconds."""
        return list(self.stream.time.tolist())

    def ruled_out(self, steps: Sequence[Step]) -> bool:
        """Whether an event of a NOT stands where it must not. `steps`: of one run, from first to last."""
        if not self.nots:
            return False
        match = match_of(self.plan, [(event, self.states.states[state].part) for event, state in steps])
        before: int | None = None
        source = START
        for event, state in steps:
            if any(self.nots[k](match, (before, event)) for k in self.between[source, state]):
                return True
            before, source = event, state
        return all(
            any(k in self.nots and self.nots[k](match, (before, None)) for k in way) for way in self.states.ends[source]
        )

    def surviving(self, chunk: Chunk) -> Chunk:
        """The matches that no NOT rules out."""
        if not self.nots:
            return chunk
        mask: Bools = np.array([not self.ruled_out(steps) for steps in chunk.steps()], bool)
        return chunk.subset(mask)

    # --- NOT
    def _not(self, k: int, negation: Negation) -> Callable[[Match, Gap], bool]:
        stream, codes = self.stream, self.stream.codes
        low, high = stream.low.tolist(), stream.high.tolist()
        events = np.flatnonzero((stream.negated >> np.uint64(k)) & np.uint64(1))
        of_partition: dict[int, list[int]] = {}
        for event in events.tolist():
            of_partition.setdefault(int(codes[event]), []).append(event)
        conditions = [self._condition(negation, one) for one in negation.conditions if self._reads_match(negation, one)]
        agreements = [self._agreement(name, scope) for name, scope in self._scopes(negation)]

        def rules_out(match: Match, gap: Gap) -> bool:
            before, after = gap
            candidates = of_partition.get(int(codes[before if before is not None else after]))
            if candidates is None:
                return False
            ends = min(part[0] for part in match if part), max(part[-1] for part in match if part)
            first = 0 if before is None else bisect_left(candidates, self.time[before], key=self.time.__getitem__)
            for event in candidates[first:]:
                if after is not None and low[event] > high[after]:
                    return False
                inside = event not in (before, after) and (before is None or high[event] >= low[before])
                if (
                    inside
                    and self._in_time(negation, ends, gap, event)
                    and all(holds(match, event) for holds in (*agreements, *conditions))
                ):
                    return True
            return False

        return rules_out

    def _in_time(self, negation: Negation, ends: tuple[int, int], gap: Gap, event: int) -> bool:
        """A NOT with a limit looks as far as that; a first or last one as far as a window that holds the match may
        reach. `ends`: the first and the last event of the match."""
        before, after = gap
        if negation.within is not None and before is not None:
            return self.time[event] - self.time[before] < negation.within
        if before is None:
            return self.time[ends[1]] - self.time[event] < self.plan.within
        if after is None:
            return self.time[event] - self.time[ends[0]] < self.plan.within
        return True

    def _scopes(self, negation: Negation) -> list[tuple[str, frozenset[str]]]:
        """The equivalences that bind its events to some of the match's."""
        bound = set(self.part)
        return [(name, scope) for name, scope in self.plan.scoped if negation.variable in scope and scope & bound]

    def _agreement(self, name: str, scope: frozenset[str]) -> Callable[[Match, int], bool]:
        column = self.stream.values(name)
        parts = sorted(self.part[variable] for variable in scope if variable in self.part)

        def agrees(match: Match, event: int) -> bool:
            first = next((match[part][0] for part in parts if match[part]), event)
            return bool(column[event] == column[first])

        return agrees

    def _reads_match(self, negation: Negation, condition: s.Expr) -> bool:
        return {read.variable for read in s.attributes(condition)} != {negation.variable}

    def _condition(self, negation: Negation, condition: s.Expr) -> Callable[[Match, int], bool]:
        """True of every event it speaks of: each of a Kleene variable's (`a.x`), or each but the first (`a[i].x`). A
        variable without events leaves nothing to ask."""
        styles = {
            read.variable: iterates(read)
            for read in s.attributes(condition)
            if read.variable in self.kleene and iterates(read)
        }
        numbers = {variable: number for number, variable in enumerate(styles)}
        names = {read.variable for read in s.attributes(condition)} - {negation.variable}
        run = compiled(condition, self._leaf(numbers, negation.variable))

        def holds(match: Match, event: int) -> bool:
            if not all(match[self.part[name]] for name in names):
                return True
            ranges = [range(style == "later", len(match[self.part[name]])) for name, style in styles.items()]
            return all(run(match, event, at) is True for at in product(*ranges))

        return holds

    # --- values of a match
    def _leaf(self, numbers: dict[str, int], negated: str) -> Callable[[s.Attribute], Reader]:
        """Readers of (match, event under NOT, for each iterating variable the number of its event, from 0)."""

        def leaf(read: s.Attribute) -> Reader:
            column = self.stream.values(read.name)
            if read.variable == negated:
                return lambda match, event, at: column[event]
            part = self.part[read.variable]
            if isinstance(read, s.Indexed) and read.index in ("1", "LEN"):
                end = 0 if read.index == "1" else -1
                return lambda match, event, at: column[match[part][end]]
            if read.variable not in numbers:
                return lambda match, event, at: column[match[part][0]]
            number = numbers[read.variable]
            if isinstance(read, s.Indexed) and read.function:
                return lambda match, event, at: aggregate(
                    read.function, [column[one] for one in match[part][: at[number]]]
                )
            back = 1 if isinstance(read, s.Indexed) and read.index == "i-1" else 0
            return lambda match, event, at: column[match[part][at[number] - back]]

        return leaf


def aggregate(function: str, cells: Sequence[Value]) -> Value:
    """SQL's aggregate of some values: NULLs are skipped; of none, a count is 0 and all else NULL."""
    state = None
    for cell in cells:
        state = FOLDS[function](state, cell)
    if state is None:
        return 0 if function == "count" else None
    return FINISHED[function](state) if function in FINISHED else state
