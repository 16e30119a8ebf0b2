"""Expressions of kind algebra as programs of the machine: every attribute is a leaf, loaded before they run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND, Dur
from trendlake.cep_core.algebra.kernels.arguments import Machine
from trendlake.cep_core.algebra.run.strings import Strings
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions.bytecode import Instructions
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s

NOWHERE = (0, 0, -1)


class Program(Instructions):
    """Code of several expressions over attributes of `family`. `loads`: the slot of each attribute that it reads."""

    def __init__(self, family: Resolve) -> None:
        super().__init__(0)
        self._family = family
        self.loads: dict[s.Attribute, int] = {}

    def of_register(self, read: s.Attribute) -> bool:
        return True

    def load(self, read: s.Attribute) -> int:
        if read not in self.loads:
            self.loads[read] = self.fresh()
        return self.loads[read]

    def attribute_family(self, read: s.Attribute) -> str:
        return self._family(read)

    def value(self, node: s.Expr, family: str | None = None) -> tuple[int, int, int]:
        """(first instruction, end, slot of the value); as `family`, if that is double."""
        low = len(self.code)
        slot = self.emit(node)
        if family == "double":
            slot = self.as_real(slot, self.family(node))
        return low, len(self.code), slot

    def all_of(self, parts: Sequence[s.Expr]) -> tuple[int, int, int]:
        """Of a conjunction; NOWHERE if it has no parts."""
        if not parts:
            return NOWHERE
        whole = parts[0]
        for part in parts[1:]:
            whole = s.Binary("and", whole, part)
        return self.value(whole)

    def attributes_of(self, side: str) -> dict[str, int]:
        """The attributes of one stream, and their slots."""
        return {r.name: slot for r, slot in self.loads.items() if r.variable == side and not isinstance(r, Dur)}

    def spans(self) -> Int64s:
        """The slots of durations (`kernels.arguments.WHOLE` ..), -1 where none reads them."""
        slots = {read.variable: slot for read, slot in self.loads.items() if isinstance(read, Dur)}
        return np.array([slots.get(side, -1) for side in ("", FIRST, SECOND, NOW)], np.int64)

    def machine(self, strings: Strings) -> Machine:
        """The programs, ready to run."""
        values = np.zeros(max(1, self.slots), np.int64)
        null = np.zeros(len(values), np.bool_)
        for slot, (constant, family) in self.constants.items():
            null[slot] = constant is None
            values[slot] = word(constant, family, strings)
        code = np.array(self.code, np.int64).reshape(len(self.code), 4)
        return Machine(code, values, values.view(np.float64), null, strings.table)


def word(value: Any, family: str, strings: Strings) -> int:
    """A constant as a word."""
    if value is None:
        return 0
    if family == "string":
        return strings.code(value)
    if family == "double":
        return int(np.array([float(value) + 0.0]).view(np.int64)[0])
    return int(value)


def texts_of(nodes: Iterable[s.Expr]) -> set[str]:
    """The strings that expressions name, or compute of such."""
    texts: set[str] = set()
    left = list(nodes)
    while left:
        node = left.pop()
        if isinstance(node, s.Literal) and node.kind == "string" and node.value is not None:
            texts.add(str(node.value))
        left += s.children(node)
    return texts
