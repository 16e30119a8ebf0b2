"""Conditions and registers as tables of numbers, for the compiled search."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions.bytecode import Instructions
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.classes import Condition, class_of
from trendlake.cep_core.match_recognize.compile.leaves import (
    Label,
    Leaf,
    Navigation,
    Number,
    Total,
    every,
    family_of,
    leaves,
    whole,
)
from trendlake.cep_core.match_recognize.compile.program import Program
from trendlake.cep_core.match_recognize.compile.registers import (
    AllLabels,
    Register,
    Registers,
    SomeLabels,
    SomeRows,
    by_of,
    label_at,
    rows_register,
    total_register,
)
from trendlake.cep_core.match_recognize.kernels import search as k

MOST_WORDS = 64
"""Words of all registers; what remembers more is searched in Python."""

_ALL = 2**62
"""More rows than there are."""
_VALUES = {"MIN": (k.LEAST, k.LEAST_REAL), "MAX": (k.GREATEST, k.GREATEST_REAL), "ANY_VALUE": (k.ANY, k.ANY)}
_VALUES |= {"BOOL_AND": (k.LEAST, k.LEAST), "BOOL_OR": (k.GREATEST, k.GREATEST)}


class NotCompiledError(Exception):
    """A condition that only the search in Python asks."""


class Assembly(Instructions):
    """`conditions`, `loads` and `updates` as `kernels.search.Asked` has them. `fields`: the first word of each
    register; `sums`: the columns of doubles that are summed up. Raises NotCompiledError."""

    def __init__(self, program: Program, conditions: tuple[Condition, ...]) -> None:
        super().__init__(0)
        self.memory = Registers(program, conditions)
        self.variables = [one.variable for one in conditions]
        self.every = (1 << len(self.variables)) - 1
        self.fields: dict[Register, int] = {}
        self.sums: list[int] = []
        self._loads: dict[int, list[int]] = {}
        """Of each slot how it is filled; of a sum of doubles its unit is known when the rows are."""
        first: list[int] = []
        updates = []
        for register in self.memory.listed:
            self.fields[register] = len(first)
            row, words = self._update(register)
            updates.append(row)
            first += words
        if len(first) > MOST_WORDS:
            raise NotCompiledError
        loads: list[list[int]] = []
        asked = []
        for one in conditions:
            if one.value is None or one.cls == "local":
                asked.append([0, 0, -1, 0, 0])
                continue
            low, before = len(self.code), len(loads)
            result = self.emit(_compilable(one.value))
            loads += [self._loads[self._slot_of(leaf)] for leaf in dict.fromkeys(leaves(one.value)) if _is_read(leaf)]
            loads += self._of_row(low, result)
            asked.append([low, len(self.code), result, before, len(loads)])
        self.start = np.array(first, np.int64)
        self.live = np.zeros((program.length, len(first)), np.bool_)
        for place, live in enumerate(self.memory.live):
            for at in live:
                low = self.fields[self.memory.listed[at]]
                self.live[place, low : low + updates[at][k.SIZE]] = True
        self.conditions, self.loads, self.updates = _table(asked, 5), _table(loads, 7), _table(updates, 7)

    def _of_row(self, low: int, result: int) -> list[list[int]]:
        """Loads of the leaves that code from `low` on reads: parts of a condition that read the row and its
        neighbours."""
        used = {operand for row in self.code[low:] for operand in row[2:]} | {result}
        return [
            [slot, k.AT_BACK, column, 0, 0, 0, 0]
            for column, (node, _, slot) in enumerate(self.leaves)
            if slot in used and slot not in self._loads
        ]

    def _slot_of(self, read: s.Attribute) -> int:
        return self.load(read)

    # --- what Instructions asks

    def of_register(self, read: s.Attribute) -> bool:
        return isinstance(read, Leaf) and _is_read(read)

    def attribute_family(self, read: s.Attribute) -> str:
        return family_of(read)

    def load(self, read: s.Attribute) -> int:
        def make() -> int:
            slot = self.fresh()
            assert isinstance(read, Leaf)
            self._loads[slot] = [slot, *self._source(read)]
            return slot

        return int(self.once(("load", read), make))

    # --- registers

    def _column(self, node: s.Expr, family: str) -> int:
        """The column of values of an argument."""
        if any(isinstance(one, Label | Number) for one in every(node)):
            raise NotCompiledError
        slot = self.leaf(node, family)
        return next(at for at, (_, _, one) in enumerate(self.leaves) if one == slot)

    def _mask(self, variables: tuple[str, ...]) -> int:
        if not variables:
            return self.every
        return sum(1 << self.variables.index(name) for name in variables)

    def _update(self, register: Register) -> tuple[list[int], list[int]]:
        """How a row changes a register, and its words before the first row."""
        low = self.fields[register]
        match register:
            case SomeRows(variables=variables, first=first, count=count):
                return [k.ROWS, low, count, first, 0, self._mask(variables), 0], [-1] * min(count, MOST_WORDS + 1)
            case SomeLabels(variables=variables, first=first, count=count):
                return [k.LABELS, low, count, first, 0, self._mask(variables), 0], [-1] * min(count, MOST_WORDS + 1)
            case AllLabels():
                raise NotCompiledError
        return self._update_of_total(register, low)

    def _update_of_total(self, total: Total, low: int) -> tuple[list[int], list[int]]:
        mask, most = self._mask(total.variables), min(self.memory.most.get(total, _ALL), _ALL)
        if total.rows:
            return [k.COUNT, low, 1, most, -1, mask, 0], [0]
        if total.distinct or total.function not in ("COUNT", "SUM", "AVG", *_VALUES):
            raise NotCompiledError
        column, real = self._column(total.arguments[0], total.kinds[0]), total.kinds[0] == "double"
        if total.function == "COUNT":
            return [k.COUNT, low, 1, most, column, mask, 0], [0]
        if total.function in _VALUES:
            return [_VALUES[total.function][real], low, 2, 0, column, mask, 0], [0, 0]
        if not real:
            return [k.SUM, low, 3, 0, column, mask, 0], [0, 0, 0]
        return [k.SUM_REAL, low, 3, 0, column, mask, 2 * self._sum(column)], [0, 0, 0]

    def _sum(self, column: int) -> int:
        if column not in self.sums:
            self.sums.append(column)
        return self.sums.index(column)

    # --- reads

    def _source(self, read: Leaf) -> list[int]:
        """Source, column, word, offset, shift and unit of a load."""
        match read:
            case Number():
                return [k.NUMBER, 0, 0, 0, 0, -1]
            case Total():
                return self._of_total(read)
            case Navigation():
                return self._of_navigation(read)
        raise NotCompiledError  # pragma: no cover - CLASSIFIER() of the current row is a literal

    def _of_total(self, read: Total) -> list[int]:
        word, function = self.fields[total_register(read)], read.function
        if read.rows or function == "COUNT":
            return [k.COUNTED, 0, word, 0, 0, -1]
        if function in _VALUES:
            return [k.VALUE, 0, word, 0, 0, -1]
        if read.kinds[0] != "double":
            return [k.WHOLE_SUM if function == "SUM" else k.MEAN, 0, word, 0, 0, -1]
        source = k.REAL_SUM if function == "SUM" else k.MEAN
        return [source, 0, word, 0, 0, self._sum(self._column(read.arguments[0], "double"))]

    def _of_navigation(self, read: Navigation) -> list[int]:
        offset, at = whole(read.offset), label_at(read)
        if at is not None:
            if not isinstance(read.argument, Label) or at.register is None:
                raise NotCompiledError
            # of the last rows the newest is the last word, before which -1 stands for those that there are not
            place = at.place if at.place >= 0 else at.place + getattr(at.register, "count", 0)
            return [k.LABEL, 0, self.fields[at.register] + place, 0 if read.variables else offset, 0, -1]
        column = self._column(read.argument, read.family)
        register = rows_register(read)
        if register is None:
            return [k.AT_START if read.first else k.AT_BACK, column, 0, offset, by_of(read), -1]
        place = offset if read.first else register.count - 1 - offset
        return [k.AT_ROW, column, self.fields[register] + place, 0, by_of(read), -1]


def _is_read(read: s.Attribute) -> bool:
    """Whether a leaf is more than the row and its neighbours."""
    return class_of(read) != "local"


def _compilable(node: s.Expr) -> s.Expr:
    """A condition whose operations the machine has. Raises NotCompiledError."""
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, s.SqlCall) and class_of(one) != "local":
            raise NotCompiledError
        left.extend(s.children(one))
    return node


def _table(rows: list[list[int]], width: int) -> Int64s:
    return np.array(rows, np.int64).reshape(len(rows), width)
