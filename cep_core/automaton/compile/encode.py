"""Plans as tables of numbers for the kernels: arcs by epoch and state, conditions on events, programs for the
register."""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core.automaton.compile.arc_lifetimes import by_epoch
from trendlake.cep_core.automaton.compile.plan import EPSILON, IGNORE, WINDOW_END, Arc, AutomatonPlan
from trendlake.cep_core.expressions.bytecode import Instructions
from trendlake.cep_core.language import syntax as s


class Assembly(Instructions):
    """A plan as the kernels read it, without the events.

    `conditions`: conjunctions on events, each one bit of an event; bit 0 is always set. `row_of`: the row of each arc
    in the table of arcs: arcs that differ in their lifetimes only share one, and arcs share conditions and programs.
    `bounds`, `live` and `lists`: see `by_epoch`. By state: `is_final`; `ends`, it has arcs at the window's end;
    `is_loose`, it has epsilon arcs. `programs`: the table of arcs, the moves and the code, as in
    `cep_core.kernels.register_programs.Programs`.
    """

    def __init__(self, plan: AutomatonPlan) -> None:
        super().__init__(len(plan.register))
        self.plan = plan
        self.columns = plan.schema.families
        self.names = [field.name for field in plan.register]
        self.moves: list[tuple[int, int, int]] = []
        self.loose = {arc.source for arc in plan.arcs if arc.how == EPSILON}
        self.conditions: list[tuple[s.Expr, ...]] = []
        rows: dict[tuple[Any, ...], int] = {}
        self.row_of = [rows.setdefault((arc.how, *self._arc(arc)), len(rows)) for arc in plan.arcs]
        self.bounds, self.live, self.lists = by_epoch(plan, self.row_of)
        states = len(plan.states)
        self.is_final, self.ends, self.is_loose = (np.zeros(states, np.bool_) for _ in range(3))
        self.is_final[list(plan.final)] = True
        self.ends[[arc.source for arc in plan.arcs if arc.how == WINDOW_END]] = True
        self.is_loose[list(self.loose)] = True
        self.programs = (
            np.array([row[1:] for row in rows], np.int64),
            np.array(self.moves, np.int64).reshape(len(self.moves), 3),
            np.array(self.code, np.int64).reshape(len(self.code), 4),
        )

    def of_register(self, read: s.Attribute) -> bool:
        """Fields have no variable before them."""
        return not read.variable

    def load(self, read: s.Attribute) -> int:
        """Fields are the first slots."""
        return self.names.index(read.name)

    def attribute_family(self, read: s.Attribute) -> str:
        """Of a field, or of a column."""
        return self.columns[read.name] if read.variable else self.plan.register[self.load(read)].family

    def _arc(self, arc: Arc) -> tuple[int, ...]:
        """A row of the table of arcs."""
        when = self.once(("when", arc.when), lambda: self._when(arc.when))
        sets = self.once(("set", arc.sets), lambda: self._sets(arc.sets))
        condition = self.once(("local", arc.local), lambda: self._condition(arc.local))
        ignores = arc.how == IGNORE
        rests = ignores and arc.when is None and arc.source not in self.loose
        moved = [slot for _, slot, _ in self.moves[sets[2] : sets[3]]]
        reads = self.reads(when[0], when[1], [when[2]]) | self.reads(sets[0], sets[1], moved)
        return (arc.source, arc.target, condition, *when, *sets, reads, int(ignores), int(rests))

    def _condition(self, local: tuple[s.Expr, ...]) -> int:
        if not local:
            return 0
        self.conditions.append(local)
        return len(self.conditions)

    def _when(self, when: s.Expr | None) -> tuple[int, int, int]:
        if when is None:
            return 0, 0, -1
        low = len(self.code)
        slot = self.emit(when)
        return low, len(self.code), slot

    def _sets(self, sets: tuple[tuple[int, s.Expr], ...]) -> tuple[int, int, int, int]:
        low, first = len(self.code), len(self.moves)
        moves = []
        for index, value in sets:
            target = self.plan.register[index]
            slot = self.emit(value)
            if target.family == "double" and self.family(value) != "null":
                slot = self.as_real(slot, self.family(value))
            moves.append((index, slot, target.bits))
        self.moves += moves
        return low, len(self.code), first, len(self.moves)
