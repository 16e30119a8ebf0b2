"""Plans as tables of numbers for the kernels: arcs by epoch and state, conditions on events, programs for the
register."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cep_core import syntax as s
from cep_core.afa.epochs import by_epoch
from cep_core.afa.kernels import machine as m
from cep_core.afa.plan import EPSILON, IGNORE, WINDOW_END, Arc, AutomatonPlan
from cep_core.typing_rules import infer
from cep_core.values import constant

Array = Any

_WHOLE = {
    "+": m.ADD, "-": m.SUBTRACT, "*": m.MULTIPLY, "%": m.REMAINDER,
    "=": m.EQ, "!=": m.NE, "<": m.LT, "<=": m.LE, ">": m.GT, ">=": m.GE, "least": m.LEAST, "greatest": m.GREATEST,
}  # fmt: skip
_REAL = {
    "+": m.ADD_F, "-": m.SUBTRACT_F, "*": m.MULTIPLY_F, "/": m.DIVIDE_F, "%": m.REMAINDER_F,
    "=": m.EQ_F, "!=": m.NE_F, "<": m.LT_F, "<=": m.LE_F, ">": m.GT_F, ">=": m.GE_F,
    "least": m.LEAST_F, "greatest": m.GREATEST_F,
}  # fmt: skip
_ONE = {"not": m.NOT, "isnull": m.IS_NULL, "hour": m.HOUR, "dayofweek": m.DAY_OF_WEEK, "lower": m.LOWER,
        "upper": m.UPPER}  # fmt: skip


ENDS = 10
"""Among the tables: which states have arcs at the window's end."""


@dataclass
class Assembly:
    """What the kernels read of a plan, the events apart. `slots`: how many the machine has; the first are the register.

    `constants`: slot -> (value, family). `leaves`: (subexpression of the event, family, slot), computed once an event.
    `conditions`: conjunctions on events, each one bit of an event; bit 0 is always set.
    """

    slots: int
    constants: dict[int, tuple[Any, str]] = field(default_factory=dict)
    leaves: list[tuple[s.Expr, str, int]] = field(default_factory=list)
    conditions: list[tuple[s.Expr, ...]] = field(default_factory=list)
    code: list[tuple[int, int, int, int]] = field(default_factory=list)
    cases: bool = False
    """Whether a program asks for lower or upper case of a string of the register."""
    row_of: list[int] = field(default_factory=list)
    """The row of each arc in the first table: arcs that differ in their lifetimes only share one."""
    tables: tuple[Array, ...] = ()


def assemble(plan: AutomatonPlan) -> Assembly:
    """Compile every arc. Arcs that share conditions and programs share their code."""
    found = Assembly(len(plan.register))
    compiler = _Compiler(plan, found)
    known: dict[tuple[Any, ...], int] = {}
    found.row_of = [known.setdefault((arc.how, *compiler.arc(arc)), len(known)) for arc in plan.arcs]
    bounds, live, lists = by_epoch(plan, found.row_of)
    states = len(plan.states)
    final, ends, loose = (np.zeros(states, np.bool_) for _ in range(3))
    final[list(plan.final)] = True
    ends[[arc.source for arc in plan.arcs if arc.how == WINDOW_END]] = True
    loose[[arc.source for arc in plan.arcs if arc.how == EPSILON]] = True
    found.tables = (
        np.array([row[1:] for row in known], np.int64),
        np.array(compiler.moves, np.int64).reshape(len(compiler.moves), 3),
        np.array(found.code, np.int64).reshape(len(found.code), 4),
        *lists, final, ends, loose, bounds, live, np.flatnonzero(final),
    )  # fmt: skip
    return found


class _Compiler:
    def __init__(self, plan: AutomatonPlan, assembly: Assembly) -> None:
        self.plan = plan
        self.out = assembly
        self.columns = plan.schema.families
        self.names = [f.name for f in plan.register]
        self.moves: list[tuple[int, int, int]] = []
        self.known: dict[Any, Any] = {}
        self.loose = {arc.source for arc in plan.arcs if arc.how == EPSILON}

    def arc(self, arc: Arc) -> tuple[int, ...]:
        """A row of `frontier`'s table of arcs."""
        when = self._once(("when", arc.when), lambda: self._when(arc.when))
        sets = self._once(("set", arc.sets), lambda: self._sets(arc.sets))
        condition = self._once(("local", arc.local), lambda: self._condition(arc.local))
        ignores = arc.how == IGNORE
        rests = ignores and arc.when is None and arc.source not in self.loose
        return (arc.source, arc.target, condition, *when, *sets, int(ignores), int(rests))

    def _once(self, key: Any, make: Any) -> Any:
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def _condition(self, local: tuple[s.Expr, ...]) -> int:
        if not local:
            return 0
        self.out.conditions.append(local)
        return len(self.out.conditions)

    def _when(self, when: s.Expr | None) -> tuple[int, int, int]:
        if when is None:
            return 0, 0, -1
        low = len(self.out.code)
        slot = self.emit(when)
        return low, len(self.out.code), slot

    def _sets(self, sets: tuple[tuple[int, s.Expr], ...]) -> tuple[int, int, int, int]:
        low, first = len(self.out.code), len(self.moves)
        moves = []
        for index, value in sets:
            target = self.plan.register[index]
            slot = self.emit(value)
            if target.family == "double" and self.family(value) != "null":
                slot = self.as_real(slot, self.family(value))
            moves.append((index, slot, target.bits))
        self.moves += moves
        return low, len(self.out.code), first, len(self.moves)

    # --- expressions
    def family(self, node: s.Expr) -> str:
        return infer(node, lambda a: self.columns[a.name] if a.variable else self._field(a.name).family)

    def _field(self, name: str) -> Any:
        return self.plan.register[self.names.index(name)]

    def fresh(self) -> int:
        self.out.slots += 1
        return self.out.slots - 1

    def constant(self, value: Any, family: str) -> int:
        def make() -> int:
            slot = self.fresh()
            self.out.constants[slot] = value, family
            return slot

        return int(self._once(("constant", family, type(value), value), make))

    def op(self, operation: int, a: int, b: int = 0) -> int:
        to = self.fresh()
        self.out.code.append((operation, to, a, b))
        return to

    def as_real(self, slot: int, family: str) -> int:
        return slot if family in ("double", "null") else self.op(m.TO_REAL, slot)

    def emit(self, node: s.Expr) -> int:
        """Code for `node`; the slot that will hold its value."""
        read = s.attributes(node)
        if not read:
            return self.constant(constant(node), self.family(node))
        if all(attribute.variable for attribute in read):
            return int(self._once(("leaf", node), lambda: self._leaf(node)))
        match node:
            case s.Attribute(name=name):
                return self.names.index(name)
            case s.Unary(op="-", operand=operand):
                real = self.family(operand) == "double"
                return self.op(m.NEGATE_F if real else m.NEGATE, self.emit(operand))
            case s.Unary(op=op, operand=operand):
                return self.op(_ONE[op], self.emit(operand))
            case s.Binary(op=op, left=left, right=right) if op in ("and", "or"):
                return self.op(m.AND if op == "and" else m.OR, self.emit(left), self.emit(right))
            case s.Binary(op=op, left=left, right=right):
                return self.pair(op, (self.emit(left), self.family(left)), (self.emit(right), self.family(right)))
            case s.In(operand=operand, choices=choices):
                value = self.emit(operand), self.family(operand)
                slot = self.pair("=", value, (self.emit(choices[0]), self.family(choices[0])))
                for choice in choices[1:]:
                    slot = self.op(m.OR, slot, self.pair("=", value, (self.emit(choice), self.family(choice))))
                return slot
            case s.Call(function=function, arguments=arguments):
                return self._call(function, [(self.emit(a), self.family(a)) for a in arguments])
        raise AssertionError(node)  # pragma: no cover - the cases are all there are

    def _leaf(self, node: s.Expr) -> int:
        slot = self.fresh()
        self.out.leaves.append((node, self.family(node), slot))
        return slot

    def pair(self, op: str, a: tuple[int, str], b: tuple[int, str]) -> int:
        """One operator on two slots, whole where both are, else real."""
        if op == "/" or "double" in (a[1], b[1]):
            return self.op(_REAL[op], self.as_real(*a), self.as_real(*b))
        return self.op(_WHOLE[op], a[0], b[0])

    def _call(self, function: str, arguments: list[tuple[int, str]]) -> int:
        if function == "abs":
            return self.op(m.ABS_F if arguments[0][1] == "double" else m.ABS, arguments[0][0])
        if function in _ONE:
            self.out.cases = self.out.cases or function in ("lower", "upper")
            return self.op(_ONE[function], arguments[0][0])
        real = any(family == "double" for _, family in arguments)
        slots = [self.as_real(*argument) if real else argument[0] for argument in arguments]
        operation = m.COALESCE if function == "coalesce" else (_REAL if real else _WHOLE)[function]
        slot = slots[0]
        for other in slots[1:]:
            slot = self.op(operation, slot, other)
        return slot
