"""A plan as tables of numbers: what a run must fulfil to bind an event, and what it remembers then, as instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions import opcodes as m
from trendlake.cep_core.expressions.bytecode import Instructions
from trendlake.cep_core.expressions.columnar import FLIPPED
from trendlake.cep_core.expressions.opcodes import MOST_FIELDS
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan, aggregated, iterates
from trendlake.cep_core.matches.compile.registers import (
    Ask,
    Registers,
    Slot,
    registers_of,
    scope_slot,
    seen_reads,
    slot_of_newest,
)
from trendlake.cep_core.matches.compile.states import START, Edge


class NotCompiledError(Exception):
    """The register does not fit fixed fields: it holds sets of values, or there are too many."""


@dataclass(frozen=True)
class Agreement:
    """The leaf that says which events agree on a column: NULL agrees with NULL."""

    name: str


@dataclass(frozen=True)
class Extreme:
    """The extreme value in place of the set of values that a condition asks about one by one: `read op other` is true
    of every event of a Kleene part if it is true of the greatest value (`op` is < or <=; else of the least) and none is
    NULL; and of no event at all, always."""

    read: s.Attribute
    op: str
    other: s.Expr

    @property
    def greatest(self) -> bool:
        return self.op in ("<", "<=")


def extreme(plan: MatchesPlan, slot: Slot) -> Extreme:
    """Of a `seen` slot. Raises NotCompiledError where the condition is no inequality of one value and the rest."""
    reads = seen_reads(plan, slot)
    match plan.conditions[slot.condition].expression:
        case s.Binary(op="<" | "<=" | ">" | ">=" as op, left=left, right=right) if len(reads) == 1:
            for side, sign, other in ((left, op, right), (right, FLIPPED[op], left)):
                if side == reads[0] and slot_of_newest(slot.part, reads[0]) is None and not _sets(plan, slot, other):
                    return Extreme(reads[0], sign, other)
    raise NotCompiledError("a register holds the distinct values that a condition asks about")


def _sets(plan: MatchesPlan, slot: Slot, other: s.Expr) -> bool:
    """Whether the rest of the slot's condition reads a set of values too, where it is asked of the slot."""
    registers = registers_of(plan)
    return any(
        (known := registers.slot_of(ask, read, edge)) is not None and known.what == "seen"
        for ask, edge in registers.all_asks()
        if ask.condition == slot.condition and slot in registers.slots_of(ask, edge)
        for read in s.attributes(other)
    )


def _size(slot: Slot) -> int:
    """Fields of a slot: an average has its sum and its count, an extreme whether there was a NULL."""
    return 2 if slot.function == "avg" or slot.what == "seen" else 1


class Assembly(Instructions):
    """`tables`: arcs, moves and code for `cep_core.matches.kernels.step`.

    The register has a field or two for each slot that is live in some state (`registers`); those that are not live in a
    state are NULL there, so that equal registers are equal rows. Raises NotCompiledError.
    """

    def __init__(self, plan: MatchesPlan) -> None:
        self.plan = plan
        self.columns = plan.schema.families
        self.registers: Registers = registers_of(plan)
        self.live = self.registers.live
        self.fields: dict[Slot, int] = {}
        self.extremes: dict[Slot, Extreme] = {}
        count = 0
        for slot in sorted({slot for state in self.live for slot in state}):
            self.fields[slot] = count
            count += _size(slot)
            if slot.what == "seen":
                self.extremes[slot] = extreme(plan, slot)
        if count > MOST_FIELDS:
            raise NotCompiledError(f"registers of {count} fields")
        super().__init__(count)
        self.width = count + 1
        self.ask = Ask(-1, newest=True)
        self.edge: Edge | None = None
        self.moves: list[tuple[int, int, int]] = []
        known: dict[Any, int] = {}
        arcs: list[tuple[int, ...]] = []

        def row(key: Any, make: Callable[[], tuple[int, ...]]) -> int:
            if key not in known:
                known[key] = len(arcs)
                arcs.append(make())
            return known[key]

        edges = self.registers.states.edges
        self.rows = [row(self._key(edge), lambda edge=edge: self._of_edge(edge)) for edge in edges]  # type: ignore[misc]
        """Of each edge its row of `arcs`."""
        self.end_rows = [
            row((None, asks), lambda asks=asks: self._arc(None, asks, (), lambda: None)) if asks else -1  # type: ignore[misc]
            for asks in self.registers.at_end
        ]
        """Of each state the row that is asked where a match ends; -1: none."""
        self.tables: tuple[Int64s, ...] = tuple(
            np.array(rows, np.int64).reshape(len(rows), width)
            for rows, width in ((arcs, 13), (self.moves, 3), (self.code, 4))
        )

    # --- what Instructions asks
    def of_register(self, read: s.Attribute) -> bool:
        return self.registers.slot_of(self.ask, read, self.edge) is not None

    def load(self, read: s.Attribute) -> int:
        slot = self.registers.slot_of(self.ask, read, self.edge)
        if slot is None:
            raise AssertionError(read)  # pragma: no cover - asked of what the register holds
        field, family = self.fields[slot], self._family(slot)
        if slot.function == "avg":
            return self.op(m.DIVIDE_F, self.as_real(field, family), self.op(m.TO_REAL, field + 1))
        if slot.function == "sum" and family == "double":
            return self.op(m.ADD_F, field, self.constant(0.0, "double"))  # NULL where infinities have cancelled
        return field

    def attribute_family(self, read: s.Attribute) -> str:
        family = self.columns[read.name]
        return aggregated(read, family) if isinstance(read, s.Indexed) and read.function else family

    def _family(self, slot: Slot) -> str:
        """Of the column it is made from."""
        return self.columns[self._column(slot)]

    def _column(self, slot: Slot) -> str:
        return self.extremes[slot].read.name if slot.what == "seen" else slot.name

    # --- arcs
    def _key(self, edge: Edge) -> Any:
        """The key of an edge's program: equal keys have one program."""
        questions = self.registers.question_of(edge)
        live = self._before(edge), self.live[edge.target]
        return edge.part, edge.later, questions, live if any(live) else ()

    def _before(self, edge: Edge) -> tuple[Slot, ...]:
        return () if edge.source == START else self.live[edge.source]

    def _of_edge(self, edge: Edge) -> tuple[int, ...]:
        questions = self.registers.question_of(edge)
        return self._arc(edge, questions.asks, questions.scopes, lambda: self._move(edge))

    def _arc(
        self, edge: Edge | None, asks: tuple[Ask, ...], scopes: tuple[int, ...], sets: Callable[[], None]
    ) -> tuple[int, ...]:
        """A row of `cep_core.kernels.register_programs`: all conditions that are asked, then what is remembered."""
        low, when = len(self.code), -1
        for slot in self._conditions(edge, asks, scopes):
            when = slot if when < 0 else self.op(m.AND, when, slot)
        middle, first = len(self.code), len(self.moves)
        sets()
        end, last = len(self.code), len(self.moves)
        reads = self.reads(low, end, [when, *(slot for _, slot, _ in self.moves[first:])])
        return 0, 0, 0, low, middle, when, middle, end, first, last, reads, 0, 0

    def _conditions(self, edge: Edge | None, asks: tuple[Ask, ...], scopes: tuple[int, ...]) -> list[int]:
        """The slots of the conditions that must hold, without those on the event alone."""
        self.edge = edge
        programs = []
        for ask in asks:
            if edge is None or not self.registers.is_local(ask, edge):
                self.ask = ask
                programs.append(self._condition(self.plan.conditions[ask.condition].expression))
        for index in scopes:
            slot = scope_slot(self.plan, index)
            programs.append(self.op(m.EQ, self.fields[slot], self.leaf(Agreement(slot.name), "int")))
        return programs

    def _condition(self, expression: s.Expr) -> int:
        slot = next((one for one in self.registers.slots_of(self.ask, self.edge) if one.what == "seen"), None)
        if slot is None:
            return self.emit(expression)
        asked = self.extremes[slot]
        field, other = self.fields[slot], (self.emit(asked.other), self.family(asked.other))
        holds = self.pair(asked.op, (field, self.columns[asked.read.name]), other)
        none = self.op(m.IS_NULL, field)
        return self.op(m.AND, self.op(m.NOT, field + 1), self.op(m.OR, none, holds))

    def _move(self, edge: Edge) -> None:
        """The register of a run that has taken the edge."""
        after = self.live[edge.target]
        for slot in self._before(edge):
            if slot not in after:
                for field in range(self.fields[slot], self.fields[slot] + _size(slot)):
                    self.moves.append((field, self.constant(None, "null"), 0))
        for slot in after:
            if not self.registers.writes(edge, slot):
                continue
            if self.registers.begins(edge, slot):
                self._begin(slot)
            elif slot.what != "first":
                self._extend(slot)

    def _begin(self, slot: Slot) -> None:
        """The slot's value after the first event."""
        field, value = self.fields[slot], self._event(slot)
        if slot.what == "seen":
            later = iterates(self.extremes[slot].read) == "later"
            missing = self.constant(False, "boolean") if later else self.op(m.IS_NULL, value)
            self.moves.append((field, self.constant(None, "null") if later else value, 0))
            self.moves.append((field + 1, missing, 0))
            return
        if slot.function in ("count", "avg"):
            self.moves.append((field + (slot.function == "avg"), self._known(value), 0))
        if slot.function != "count":
            self.moves.append((field, value, 0))

    def _extend(self, slot: Slot) -> None:
        """The slot's value after one more event."""
        field, value = self.fields[slot], self._event(slot)
        real = self._family(slot) == "double"
        if slot.what == "seen":
            pair = (m.GREATEST, m.GREATEST_F) if self.extremes[slot].greatest else (m.LEAST, m.LEAST_F)
            best = pair[real]
            self.moves.append((field, self.op(best, field, value), 0))
            self.moves.append((field + 1, self.op(m.OR, field + 1, self.op(m.IS_NULL, value)), 0))
            return
        if slot.function in ("count", "avg"):
            count = field + (slot.function == "avg")
            self.moves.append((count, self.op(m.ADD, count, self._known(value)), 0))
        if slot.function in ("sum", "avg"):
            self.moves.append((field, self.op(m.PLUS_F if real else m.PLUS, field, value), 0))
        elif slot.function == "min":
            self.moves.append((field, self.op(m.LEAST_F if real else m.LEAST, field, value), 0))
        elif slot.function == "max":
            self.moves.append((field, self.op(m.GREATEST_F if real else m.GREATEST, field, value), 0))

    def _event(self, slot: Slot) -> int:
        """The leaf by which the event gives the slot's value."""
        if slot.what == "scope":
            return self.leaf(Agreement(slot.name), "int")
        if self._family(slot) == "other":
            raise NotCompiledError(f"a register holds {slot.name}, which is no number, string, boolean or time")
        return self.leaf(s.Attribute("", self._column(slot)), self._family(slot))

    def _known(self, value: int) -> int:
        return self.op(m.NOT, self.op(m.IS_NULL, value))


def assembled(plan: MatchesPlan) -> Assembly:
    """The plan's tables, made once for a plan object. Raises NotCompiledError."""
    assembly: Assembly | None = plan.__dict__.get("_assembly")
    if assembly is None:
        assembly = plan.__dict__["_assembly"] = Assembly(plan)
    return assembly
