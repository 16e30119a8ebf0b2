"""Expressions as instructions of `cep_core.kernels.vm`: three-address code over typed slots. Data, no functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from trendlake.cep_core.expressions import opcodes as m
from trendlake.cep_core.expressions.columnar import constant
from trendlake.cep_core.expressions.functions import Function, clock_of, function_of
from trendlake.cep_core.expressions.types import infer
from trendlake.cep_core.language import syntax as s

_WHOLE = {"+": m.ADD, "-": m.SUBTRACT, "*": m.MULTIPLY, "%": m.REMAINDER}
_WHOLE |= {"=": m.EQ, "!=": m.NE, "<": m.LT, "<=": m.LE, ">": m.GT, ">=": m.GE}
_REAL = {"+": m.ADD_F, "-": m.SUBTRACT_F, "*": m.MULTIPLY_F, "/": m.DIVIDE_F, "%": m.REMAINDER_F}
_REAL |= {"=": m.EQ_F, "!=": m.NE_F, "<": m.LT_F, "<=": m.LE_F, ">": m.GT_F, ">=": m.GE_F}
_MIXED = {"=": m.EQ_M, "!=": m.NE_M, "<": m.LT_M, "<=": m.LE_M, ">": m.GT_M, ">=": m.GE_M}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ONE = {"not": m.NOT, "isnull": m.IS_NULL}


class Instructions(ABC):
    """Code that grows, with its constants and leaves. The first of the `slots` are the register.

    `constants`: slot -> (value, family). `leaves`: (expression of the event, or what else the kind knows how to compute
    of it, family, slot), computed once an event.
    `code`: rows (operation, target, a, b). `cases`: whether some program asks for lower or upper case of a string of
    the register; `texts`: whether some program looks into strings; `zone`: whose clock some program reads. A kind says
    which attributes are of the register, and their families.
    """

    exact = True
    """Whether a whole number is compared with a double as it is; else as a double, by `as_real`."""

    def __init__(self, slots: int) -> None:
        self.fields_end = self.slots = slots
        self.constants: dict[int, tuple[Any, str]] = {}
        self.leaves: list[tuple[Any, str, int]] = []
        self.code: list[tuple[int, int, int, int]] = []
        self.cases = False
        self.texts = False
        self.zone: str | None = None
        self.results: dict[Any, Any] = {}

    @abstractmethod
    def of_register(self, read: s.Attribute) -> bool:
        """Whether the register holds it; else the event does."""

    @abstractmethod
    def load(self, read: s.Attribute) -> int:
        """The slot that holds a value of the register."""

    @abstractmethod
    def attribute_family(self, read: s.Attribute) -> str:
        """Its family."""

    def once(self, key: Any, make: Any) -> Any:
        """The result of `make` at the first call with this `key`."""
        if key not in self.results:
            self.results[key] = make()
        return self.results[key]

    def family(self, node: s.Expr) -> str:
        """The family of an expression."""
        return infer(node, self.attribute_family)

    def fresh(self) -> int:
        """A slot of its own."""
        self.slots += 1
        return self.slots - 1

    def constant(self, value: Any, family: str) -> int:
        """The slot of a constant."""

        def make() -> int:
            slot = self.fresh()
            self.constants[slot] = value, family
            return slot

        return int(self.once(("constant", family, type(value), value), make))

    def leaf(self, node: Any, family: str) -> int:
        """The slot of an expression of the event."""

        def make() -> int:
            slot = self.fresh()
            self.leaves.append((node, family, slot))
            return slot

        return int(self.once(("leaf", node), make))

    def op(self, operation: int, a: int, b: int = 0) -> int:
        """One instruction; the slot of its value."""
        to = self.fresh()
        self.code.append((operation, to, a, b))
        return to

    def reads(self, low: int, high: int, slots: Iterable[int]) -> int:
        """A bit for each field of the register among `slots` and the operands of code[low:high]."""
        operands = {operand for row in self.code[low:high] for operand in row[2:]}
        return sum(1 << slot for slot in {*operands, *slots} if 0 <= slot < self.fields_end)

    def as_real(self, slot: int, family: str) -> int:
        """The slot's value as a double."""
        return slot if family in ("double", "null") else self.op(m.TO_REAL, slot)

    def emit(self, node: s.Expr) -> int:
        """Code for `node`; the slot that will hold its value."""
        read = s.attributes(node)
        if not read:
            # a plan with parameters is explained, not run
            return self.constant(node if s.parameters(node) else constant(node), self.family(node))
        if not any(self.of_register(attribute) for attribute in read):
            return self.leaf(node, self.family(node))
        match node:
            case s.Attribute():
                return self.load(node)
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
                self.zone = clock_of(function) or self.zone
                return self._call(function_of(function), [(self.emit(a), self.family(a)) for a in arguments])
        raise AssertionError(node)  # pragma: no cover - the cases are all there are

    def pair(self, op: str, a: tuple[int, str], b: tuple[int, str]) -> int:
        """One operator on two slots, whole where both are, else real."""
        if self.exact and op in _MIXED and {a[1], b[1]} == {"int", "double"}:
            whole, real, mixed = (a, b, op) if a[1] == "int" else (b, a, _TURNED[op])
            return self.op(_MIXED[mixed], whole[0], real[0])
        if op == "/" or "double" in (a[1], b[1]):
            return self.op(_REAL[op], self.as_real(*a), self.as_real(*b))
        return self.op(_WHOLE[op], a[0], b[0])

    def _call(self, function: Function, arguments: list[tuple[int, str]]) -> int:
        if function.divisor is not None:
            divisor = self.constant(function.divisor, "double")
            return self.op(function.operation, self.as_real(*arguments[0]), divisor)
        real = any(family == "double" for _, family in arguments)
        operation = function.operation_of(real=real)
        if function.takes:
            self.cases = self.cases or operation in (m.LOWER, m.UPPER)
            self.texts = self.texts or operation == m.CONTAINS
            return self.op(operation, *(slot for slot, _ in arguments))
        slots = [self.as_real(*argument) if real else argument[0] for argument in arguments]
        slot = slots[0]
        for other in slots[1:]:
            slot = self.op(operation, slot, other)
        return slot
