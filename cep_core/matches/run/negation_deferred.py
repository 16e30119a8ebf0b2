"""NOTs that must see the whole match: conditions on its events, or an equivalence with some of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product

import numpy as np

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.expressions.functions import Value
from trendlake.cep_core.expressions.scalar import Reader, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, Negation, is_fence, iterates
from trendlake.cep_core.matches.compile.registers import places
from trendlake.cep_core.matches.run.buffer import Chunk, Match, Step
from trendlake.cep_core.matches.run.closures import FINISHED, FOLDS
from trendlake.cep_core.matches.run.events import Stream


def match_of(plan: MatchesPlan, steps: Sequence[Step]) -> Match:
    """The match of a run's steps, given from first to last."""
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
        self.nots = [
            self._not(k, negation) for k, negation in enumerate(plan.negations) if not is_fence(plan, negation)
        ]

    @cached_property
    def time(self) -> list[int]:
        """Of each event, microseconds."""
        return list(self.stream.time.tolist())

    def ruled_out(self, match: Match) -> bool:
        """Whether an event of a NOT stands where it must not."""
        return any(rules_out(match) for rules_out in self.nots)

    def surviving(self, chunk: Chunk) -> Chunk:
        """The matches that no NOT rules out."""
        if not self.nots:
            return chunk
        mask: Bools = np.array([not self.ruled_out(match) for match in chunk.matches()], bool)
        return chunk.subset(mask)

    # --- NOT
    def _not(self, k: int, negation: Negation) -> Callable[[Match], bool]:
        stream, codes = self.stream, self.stream.codes
        low, high = stream.low.tolist(), stream.high.tolist()
        events = np.flatnonzero((stream.negated >> np.uint64(k)) & np.uint64(1))
        of_partition: dict[int, list[int]] = {}
        for event in events.tolist():
            of_partition.setdefault(int(codes[event]), []).append(event)
        conditions = [self._condition(negation, one) for one in negation.conditions if self._reads_match(negation, one)]
        agreements = [self._agreement(name, scope) for name, scope in self._scopes(negation)]

        def rules_out(match: Match) -> bool:
            candidates = of_partition.get(int(codes[match[0][0]]))
            if candidates is None:
                return False
            before, after = self._ends(negation, match)
            first = 0 if before is None else bisect_left(candidates, self.time[before], key=self.time.__getitem__)
            for event in candidates[first:]:
                if after is not None and low[event] > high[after]:
                    return False
                inside = event not in (before, after) and (before is None or high[event] >= low[before])
                if (
                    inside
                    and self._in_time(negation, match, event)
                    and all(holds(match, event) for holds in (*agreements, *conditions))
                ):
                    return True
            return False

        return rules_out

    def _ends(self, negation: Negation, match: Match) -> tuple[int | None, int | None]:
        """The events between which it looks, the window aside: not at those that are earlier or later."""
        before = match[negation.after - 1][-1] if negation.after else None
        after = match[negation.after][0] if negation.after < len(match) else None
        return before, after

    def _in_time(self, negation: Negation, match: Match, event: int) -> bool:
        """A NOT with a limit looks as far as that; a first or last one as far as a window that holds the match may
        reach."""
        if negation.within is not None:
            return self.time[event] - self.time[match[negation.after - 1][-1]] < negation.within
        if negation.after == 0:
            return self.time[match[-1][-1]] - self.time[event] < self.plan.within
        if negation.after == len(match):
            return self.time[event] - self.time[match[0][0]] < self.plan.within
        return True

    def _scopes(self, negation: Negation) -> list[tuple[str, frozenset[str]]]:
        """The equivalences that bind its events to some of the match's."""
        bound = set(self.part)
        return [(name, scope) for name, scope in self.plan.scoped if negation.variable in scope and scope & bound]

    def _agreement(self, name: str, scope: frozenset[str]) -> Callable[[Match, int], bool]:
        column = self.stream.values(name)
        part = min(self.part[variable] for variable in scope if variable in self.part)
        return lambda match, event: bool(column[event] == column[match[part][0]])

    def _reads_match(self, negation: Negation, condition: s.Expr) -> bool:
        return {read.variable for read in s.attributes(condition)} != {negation.variable}

    def _condition(self, negation: Negation, condition: s.Expr) -> Callable[[Match, int], bool]:
        """True of every event it speaks of: each of a Kleene variable's (`a.x`), or each but the first (`a[i].x`)."""
        styles = {
            read.variable: iterates(read)
            for read in s.attributes(condition)
            if read.variable in self.kleene and iterates(read)
        }
        numbers = {variable: number for number, variable in enumerate(styles)}
        run = compiled(condition, self._leaf(numbers, negation.variable))

        def holds(match: Match, event: int) -> bool:
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
