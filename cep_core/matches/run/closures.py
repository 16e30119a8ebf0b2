"""Conditions and register moves as functions over one stream's columns: what the automaton calls at each event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from trendlake.cep_core.expressions.functions import Value
from trendlake.cep_core.expressions.scalar import Reader, bounded, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.registers import Ask, Slot, registers_of, scope_slot, seen_reads, slot_of_newest
from trendlake.cep_core.matches.compile.states import START, Edge

Columns: TypeAlias = Callable[[str], Sequence[Value]]
"""The values of an attribute, one an event."""
Register: TypeAlias = tuple[Any, ...]
Check: TypeAlias = Callable[[Register, int], bool]
Move: TypeAlias = Callable[[Register, int], Register]
Cell: TypeAlias = Callable[[Register, int], Any]


class Program:
    """`checks`: of each edge, conditions on the register before it and the event; `moves`: the register after. `ends`:
    of each state, conditions on the register where a match ends. Conditions on nothing but the event are left to
    `cep_core.matches.run.events.Stream`."""

    def __init__(self, plan: MatchesPlan, columns: Columns) -> None:
        self.plan = plan
        self.columns = columns
        self.registers = registers_of(plan)
        self.live = self.registers.live
        edges = self.registers.states.edges
        self.checks = [self._checks(edge) for edge in edges]
        self.moves = [self._moving(edge) for edge in edges]
        self.ends = [
            [self._check(ask, None, self.live[k]) for ask in asks] for k, asks in enumerate(self.registers.at_end)
        ]

    # --- conditions
    def _checks(self, edge: Edge) -> list[Check]:
        """NULL agrees with NULL: an equivalence parts the events as GROUP BY does."""
        questions, layout = self.registers.question_of(edge), self._before(edge)
        asked = [ask for ask in questions.asks if not self.registers.is_local(ask, edge)]
        checks = [self._check(ask, edge, layout) for ask in asked]
        for index in questions.scopes:
            slot = scope_slot(self.plan, index)
            checks.append(_agrees(self.columns(slot.name), layout.index(slot)))
        return checks

    def _check(self, ask: Ask, edge: Edge | None, layout: tuple[Slot, ...]) -> Check:
        seen: list[Slot] = []

        def leaf(read: s.Attribute) -> Reader:
            slot = self.registers.slot_of(ask, read, edge)
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

        run = compiled(self.plan.conditions[ask.condition].expression, leaf)
        if not seen:
            return lambda register, event: run(register, event, None) is True
        places = [layout.index(slot) for slot in seen]
        return lambda register, event: all(
            run(register, event, at) is True for at in product(*(register[place] for place in places))
        )

    # --- registers
    def _before(self, edge: Edge) -> tuple[Slot, ...]:
        """The register of a run that may take the edge."""
        return () if edge.source == START else self.live[edge.source]

    def _moving(self, edge: Edge) -> Move:
        before = self._before(edge)
        return _move([self._cell(edge, slot, before) for slot in self.live[edge.target]])

    def _cell(self, edge: Edge, slot: Slot, before: tuple[Slot, ...]) -> Cell:
        if self.registers.begins(edge, slot):
            return self._first(slot)
        place = before.index(slot)
        return self._next(slot, place, before) if self.registers.writes(edge, slot) else _copy(place)

    def _first(self, slot: Slot) -> Cell:
        """The slot's value after the first event."""
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

    def _next(self, slot: Slot, place: int, before: tuple[Slot, ...]) -> Cell:
        """The slot's value after one more event."""
        if slot.what == "first":
            return _copy(place)
        if slot.what == "seen":
            cells = [self._newest(slot.part, read, before) for read in seen_reads(self.plan, slot)]
            return lambda register, event: register[place] | {tuple(cell(register, event) for cell in cells)}
        fold, column = FOLDS[slot.function], self.columns(slot.name)
        return lambda register, event: fold(register[place], column[event])

    def _newest(self, part: int, read: s.Attribute, before: tuple[Slot, ...]) -> Cell:
        """The value that a condition reads of the event that part `part` is about to take."""
        slot = slot_of_newest(part, read)
        if slot is None:
            column = self.columns(read.name)
            return lambda register, event: column[event]
        place = before.index(slot)
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
