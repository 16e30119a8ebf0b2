"""Conditions and register moves as functions over one stream's columns: what the automaton calls at each event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from trendlake.cep_core.expressions.functions import Value
from trendlake.cep_core.expressions.scalar import Reader, bounded, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.registers import (
    Slot,
    is_local,
    live_slots,
    moments,
    scope_parts,
    scope_slot,
    seen_reads,
    slot_of,
    slot_of_newest,
)

Columns: TypeAlias = Callable[[str], Sequence[Value]]
"""The values of an attribute, one an event."""
Register: TypeAlias = tuple[Any, ...]
Check: TypeAlias = Callable[[Register, int], bool]
Move: TypeAlias = Callable[[Register, int], Register]
Cell: TypeAlias = Callable[[Register, int], Any]


class Program:
    """`begin[k]`, `take[k]`: conditions on an event as first, or as one more, event of part k, given the register of
    the run before; `leave[k]`: on a run that ends part k. `enter[k]`, `extend[k]`: the register after. Conditions on
    nothing but the event are left to `cep_core.matches.run.events.Stream`."""

    def __init__(self, plan: MatchesPlan, columns: Columns) -> None:
        self.plan = plan
        self.columns = columns
        self.live = live_slots(plan)
        count = len(plan.parts)
        self.begin: list[list[Check]] = [[] for _ in range(count)]
        self.take: list[list[Check]] = [[] for _ in range(count)]
        self.leave: list[list[Check]] = [[] for _ in range(count)]
        lists = {"begin": self.begin, "take": self.take, "leave": self.leave}
        for index, condition in enumerate(plan.conditions):
            for moment in moments(plan, condition):
                if not is_local(plan, index, moment):
                    lists[moment][condition.part].append(self._check(index, moment))
        for index in range(len(plan.scoped)):
            self._agreements(index)
        self.enter = [self._entering(k) for k in range(count)]
        self.extend = [self._extending(k) for k in range(count)]

    @property
    def plain(self) -> bool:
        """Whether no run remembers anything, and no condition speaks of more than an event."""
        return not any(self.live) and not any((*self.begin, *self.take, *self.leave))

    # --- conditions
    def _check(self, index: int, moment: str) -> Check:
        condition = self.plan.conditions[index]
        layout = self._before(condition.part) if moment == "begin" else self.live[condition.part]
        seen: list[Slot] = []

        def leaf(read: s.Attribute) -> Reader:
            slot = slot_of(self.plan, index, read, moment)
            if slot is None:
                column = self.columns(read.name)
                return lambda register, event, at: column[event]
            place = layout.index(slot)
            if slot.what == "seen":
                if slot not in seen:
                    seen.append(slot)
                number, inner = seen.index(slot), seen_reads(self.plan, slot).index(read)
                return lambda register, event, at: at[number][inner]
            if slot.what == "running":
                finished = FINISHED.get(slot.function)
                if finished is not None:
                    return lambda register, event, at: finished(register[place])
            return lambda register, event, at: register[place]

        run = compiled(condition.expression, leaf)
        if not seen:
            return lambda register, event: run(register, event, None) is True
        places = [layout.index(slot) for slot in seen]
        return lambda register, event: all(
            run(register, event, at) is True for at in product(*(register[place] for place in places))
        )

    def _agreements(self, index: int) -> None:
        """NULL agrees with NULL: an equivalence parts the events as GROUP BY does."""
        parts = scope_parts(self.plan, index)
        for number in parts:
            slot = scope_slot(self.plan, index)
            column = self.columns(slot.name)
            if number > parts[0]:
                self.begin[number].append(_agrees(column, self._before(number).index(slot)))
            if self.plan.parts[number].kleene:
                self.take[number].append(_agrees(column, self.live[number].index(slot)))

    # --- registers
    def _before(self, k: int) -> tuple[Slot, ...]:
        """The register of a run that may begin part k."""
        return self.live[k - 1] if k else ()

    def _entering(self, k: int) -> Move:
        before = self._before(k)
        return _move([_copy(before.index(slot)) if slot.part < k else self._first(slot) for slot in self.live[k]])

    def _extending(self, k: int) -> Move:
        return _move([_copy(i) if slot.part < k else self._next(slot, i) for i, slot in enumerate(self.live[k])])

    def _first(self, slot: Slot) -> Cell:
        """The slot's value when its part begins."""
        if slot.what == "seen":
            reads = seen_reads(self.plan, slot)
            if any(isinstance(read, s.Indexed) for read in reads):
                return lambda register, event: frozenset()
            columns = [self.columns(read.name) for read in reads]
            return lambda register, event: frozenset((tuple(column[event] for column in columns),))
        column = self.columns(slot.name)
        if slot.what == "running":
            fold = FOLDS[slot.function]
            return lambda register, event: fold(None, column[event])
        return lambda register, event: column[event]

    def _next(self, slot: Slot, place: int) -> Cell:
        """The slot's value when its part takes one more event."""
        if slot.what in ("first", "scope"):
            return _copy(place)
        if slot.what == "seen":
            cells = [self._newest(slot.part, read) for read in seen_reads(self.plan, slot)]
            return lambda register, event: register[place] | {tuple(cell(register, event) for cell in cells)}
        column = self.columns(slot.name)
        if slot.what == "running":
            fold = FOLDS[slot.function]
            return lambda register, event: fold(register[place], column[event])
        return lambda register, event: column[event]

    def _newest(self, part: int, read: s.Attribute) -> Cell:
        """The value that a condition reads of the event that part `part` is about to take."""
        slot = slot_of_newest(part, read)
        if slot is None:
            column = self.columns(read.name)
            return lambda register, event: column[event]
        place = self.live[part].index(slot)
        finished = FINISHED.get(slot.function)
        return _copy(place) if finished is None else lambda register, event: finished(register[place])


def _agrees(column: Sequence[Value], place: int) -> Check:
    return lambda register, event: bool(column[event] == register[place])


def _copy(place: int) -> Cell:
    return lambda register, event: register[place]


def _move(cells: list[Cell]) -> Move:
    if not cells:
        return lambda register, event: ()
    if len(cells) == 1:
        only = cells[0]
        return lambda register, event: (only(register, event),)
    return lambda register, event: tuple([cell(register, event) for cell in cells])


def _sum(total: Any, value: Value) -> Any:
    """NaN where infinities have cancelled, until it is read."""
    if value is None or total is None:
        return total if value is None else value
    return total + value if type(total) is float else bounded(total + value)


def _mean(state: Any, value: Value) -> Any:
    total, count = state or (None, 0)
    return (total, count) if value is None else (_sum(total, value), count + 1)


FOLDS: Mapping[str, Callable[[Any, Value], Any]] = {
    "count": lambda count, value: (count or 0) + (value is not None),
    "sum": _sum,
    "avg": _mean,
    "min": lambda least, value: least if value is None else value if least is None else min(least, value),
    "max": lambda most, value: most if value is None else value if most is None else max(most, value),
}
"""State of a running aggregate (None: no event yet) and one more value -> the state. NULLs are skipped; sums are made
from left to right."""
FINISHED: Mapping[str, Callable[[Any], Value]] = {
    "sum": lambda total: None if total is None else bounded(total),
    "avg": lambda state: None if not state[1] else bounded(float(state[0]) / state[1]),
}
"""The aggregate's value, where it is not its state."""
