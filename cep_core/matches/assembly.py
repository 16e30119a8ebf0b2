"""A plan as tables of numbers: what a run must fulfil to bind an event, and what it remembers then, as instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cep_core import syntax as s
from cep_core.instructions import Instructions
from cep_core.kernels import machine as m
from cep_core.kernels.registers import MOST_FIELDS
from cep_core.matches.plan import MatchesPlan, aggregated
from cep_core.matches.registers import (
    Slot,
    is_local,
    live_slots,
    moments,
    scope_parts,
    scope_slot,
    slot_of,
)

Array = Any


class NotCompiledError(Exception):
    """The register does not fit fixed fields: it holds sets of values, or too many of them."""


@dataclass(frozen=True)
class Agreement:
    """The leaf that says which events agree on a column: NULL agrees with NULL."""

    name: str


class Assembly(Instructions):
    """`tables`: arcs, moves and code for `kernels.match_steps`.

    The register has a field for each slot that is live in some state (`registers`), an average two; those that are not
    live in a state are NULL there, so that equal registers are equal rows.
    """

    def __init__(self, plan: MatchesPlan) -> None:
        self.plan = plan
        self.columns = plan.schema.families
        self.live = live_slots(plan)
        self.fields: dict[Slot, int] = {}
        count = 0
        for slot in sorted({slot for state in self.live for slot in state}):
            if slot.what == "seen":
                raise NotCompiledError
            self.fields[slot] = count
            count += 2 if slot.function == "avg" else 1
        if count > MOST_FIELDS:
            raise NotCompiledError
        super().__init__(count)
        self.width = count + 1
        self.index, self.moment = 0, ""
        self.moves: list[tuple[int, int, int]] = []
        arcs = []
        for k in range(len(plan.parts)):
            arcs += [
                self._arc([("take", k)], lambda k=k: self._extend(k)),  # type: ignore[misc]
                self._arc([("leave", k - 1), ("begin", k)], lambda k=k: self._enter(k)),  # type: ignore[misc]
                self._arc([("leave", k)], lambda: None),
            ]
        self.tables: tuple[Array, ...] = tuple(
            np.array(rows, np.int64).reshape(len(rows), width)
            for rows, width in ((arcs, 12), (self.moves, 3), (self.code, 4))
        )

    # --- what Instructions asks
    def of_register(self, read: s.Attribute) -> bool:
        return slot_of(self.plan, self.index, read, self.moment) is not None

    def load(self, read: s.Attribute) -> int:
        slot = slot_of(self.plan, self.index, read, self.moment)
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
        return self.columns[slot.name]

    # --- arcs
    def _arc(self, asked: list[tuple[str, int]], sets: Callable[[], None]) -> tuple[int, ...]:
        """A row of `kernels.registers`: all conditions of some moments, then what is remembered."""
        low, when = len(self.code), -1
        for slot in [slot for moment, part in asked for slot in self._conditions(moment, part)]:
            when = slot if when < 0 else self.op(m.AND, when, slot)
        middle, first = len(self.code), len(self.moves)
        sets()
        return 0, 0, 0, low, middle, when, middle, len(self.code), first, len(self.moves), 0, 0

    def _conditions(self, moment: str, part: int) -> list[int]:
        """The slots of what must hold at a moment of a part, beside what the event alone tells."""
        found = []
        self.moment = moment
        for index, condition in enumerate(self.plan.conditions):
            self.index = index
            here = condition.part == part and moment in moments(self.plan, condition)
            if here and not is_local(self.plan, index, moment):
                found.append(self.emit(condition.expression))
        for index in range(len(self.plan.scoped)):
            parts = scope_parts(self.plan, index)
            goes_on = moment == "take" and part in parts and self.plan.parts[part].kleene
            if goes_on or (moment == "begin" and part in parts[1:]):
                slot = scope_slot(self.plan, index)
                found.append(self.op(m.EQ, self.fields[slot], self.leaf(Agreement(slot.name), "int")))
        return found

    def _enter(self, k: int) -> None:
        """The register of a run whose part k has just begun."""
        before = self.live[k - 1] if k else ()
        for slot in before:
            if slot not in self.live[k]:
                for field in range(self.fields[slot], self.fields[slot] + (2 if slot.function == "avg" else 1)):
                    self.moves.append((field, self.constant(None, "null"), 0))
        for slot in self.live[k]:
            if slot.part < k:
                continue
            field, value = self.fields[slot], self._event(slot)
            if slot.function in ("count", "avg"):
                self.moves.append((field + (slot.function == "avg"), self._known(value), 0))
            if slot.function != "count":
                self.moves.append((field, value, 0))

    def _extend(self, k: int) -> None:
        """The register of a run whose part k has taken one more event."""
        for slot in self.live[k]:
            if slot.part < k or slot.what in ("first", "scope"):
                continue
            field, value = self.fields[slot], self._event(slot)
            real = self._family(slot) == "double"
            if slot.what == "last":
                self.moves.append((field, value, 0))
                continue
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
        """What the event has to say for the slot."""
        if slot.what == "scope":
            return self.leaf(Agreement(slot.name), "int")
        if self._family(slot) == "other":
            raise NotCompiledError
        return self.leaf(s.Attribute("", slot.name), self._family(slot))

    def _known(self, value: int) -> int:
        return self.op(m.NOT, self.op(m.IS_NULL, value))
