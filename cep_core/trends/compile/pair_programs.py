"""Conditions that mix both events in one side of a comparison, as programs of `cep_core.kernels.vm`.

`S.p - NEXT(S).p > S.q` -> leaves S.p, NEXT(S).p, S.q, computed once an event; code: subtract, compare.
"""

from __future__ import annotations

from collections.abc import Mapping

from trendlake.cep_core.expressions import opcodes as m
from trendlake.cep_core.expressions.bytecode import Instructions
from trendlake.cep_core.language import syntax as s

BEYOND = 2**10
"""A whole number times this leaves 64 bits, and so stops the program, where it is 2^53 or more, or less than -2^53:
a double might not hold it."""


class PairPrograms(Instructions):
    """Programs of the conditions on pairs (V, W), one after the other. A leaf is (expression of one event, V, W); it is
    W's where it reads NEXT. `ranges`: of each program code[low:high], the slot of its value, and the leaves that no
    program of the pair before it has."""

    def __init__(self, families: Mapping[str, str]) -> None:
        super().__init__(0)
        self.exact = False  # columns that are sorted or searched hold doubles: such numbers are refused everywhere
        self._families = families
        self._pair = ("", "")
        self.ranges: list[tuple[int, int, int, int, int]] = []

    def add(self, pair: tuple[str, str], condition: s.Expr) -> None:
        """One more condition. The conditions of a pair are added one after the other."""
        self._pair = pair
        low, first = len(self.code), len(self.leaves)
        slot = self.emit(condition)
        self.ranges.append((low, len(self.code), slot, first, len(self.leaves)))

    def emit(self, node: s.Expr) -> int:
        if len({read.next for read in s.attributes(node)}) == 1:
            return self.leaf((node, *self._pair), self.family(node))
        return super().emit(node)

    def as_real(self, slot: int, family: str) -> int:
        if family not in ("double", "null"):
            self.op(m.MULTIPLY, slot, self.constant(BEYOND, "int"))
        return super().as_real(slot, family)

    def of_register(self, read: s.Attribute) -> bool:
        return True

    def load(self, read: s.Attribute) -> int:
        raise AssertionError(read)  # pragma: no cover - an attribute is a leaf

    def attribute_family(self, read: s.Attribute) -> str:
        return self._families[read.name]
