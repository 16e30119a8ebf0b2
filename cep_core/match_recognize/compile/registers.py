"""Registers: what conditions remember of the rows that are mapped so far.

Two ways to one row and place with equal registers have the same future.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from trendlake.cep_core.expressions.columnar import COMPARISONS
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.classes import Condition
from trendlake.cep_core.match_recognize.compile.leaves import Label, Leaf, Navigation, Total, every, leaves, whole
from trendlake.cep_core.match_recognize.compile.program import ACCEPT, Program

FEW_PLACES = 300
"""In a pattern of more places every place counts as one whose conditions read all registers."""


@dataclass(frozen=True)
class SomeRows:
    """The first (or last) `count` rows that are mapped to one of `variables`."""

    variables: tuple[str, ...]
    first: bool
    count: int


@dataclass(frozen=True)
class SomeLabels:
    """The variables of the first (or last) `count` rows that are mapped to one of `variables`, () for any."""

    variables: tuple[str, ...]
    first: bool
    count: int


@dataclass(frozen=True)
class AllLabels:
    """The variables of all rows."""


Register = SomeRows | SomeLabels | AllLabels | Total


@dataclass(frozen=True)
class LabelAt:
    """Where a navigation finds the variable of the row that it reaches: at `place` in a register, counted from its
    end where that is negative. Register None: a row that is not mapped yet has no variable."""

    register: Register | None
    place: int = 0


def by_of(read: Navigation) -> int:
    """How many rows a navigation goes on in the partition, below 0 for back."""
    return read.sign * whole(read.shift) if read.sign else 0


def rows_register(read: Navigation) -> SomeRows | None:
    """The register that holds the row from which a navigation starts; None where start and current row tell."""
    return SomeRows(read.variables, read.first, whole(read.offset) + 1) if read.variables else None


def label_at(read: Navigation) -> LabelAt | None:
    """Where CLASSIFIER() in a navigation's argument is found; None without it."""
    if not any(isinstance(one, Label) for one in every(read.argument)):
        return None
    offset, by = whole(read.offset), by_of(read)
    if read.variables and by:
        return LabelAt(AllLabels())
    if read.first:
        place = offset + by
        return LabelAt(SomeLabels(read.variables, True, place + 1) if place >= 0 else None, place)
    place = by - offset - 1
    return LabelAt(SomeLabels(read.variables, False, -place) if place < 0 else None, place)


def total_register(read: Total) -> Total:
    """The register of an aggregate: SUM and AVG of one argument share theirs."""
    if read.function not in ("SUM", "AVG"):
        return read
    return replace(read, function="SUM", family="double")


def registers_of(read: Leaf) -> tuple[Register, ...]:
    """The registers that a leaf of a condition reads."""
    match read:
        case Total():
            return (total_register(read),)
        case Navigation():
            label = label_at(read)
            registers = (rows_register(read), None if label is None else label.register)
            return tuple(one for one in registers if one is not None)
    return ()


def depends_on_labels(register: Register) -> bool:
    """Whether it differs among ways to one row: not if it is of all rows, whatever they are mapped to."""
    if isinstance(register, Total):
        return bool(register.variables) or any(isinstance(one, Label) for one in every(register))
    return True


class Registers:
    """`listed`: the registers of a pattern's conditions; `read`: of each variable those that its condition reads;
    `live`: of each place those that tell ways to it apart, because a condition of a place behind it reads them; `most`:
    where counts stop that are only compared with constants."""

    def __init__(self, program: Program, conditions: tuple[Condition, ...]) -> None:
        self.places: dict[Register, int] = {}
        self.read: dict[str, frozenset[int]] = {}
        for one in conditions:
            registers = [] if one.value is None else [each for leaf in leaves(one.value) for each in registers_of(leaf)]
            self.read[one.variable] = frozenset(self.places.setdefault(each, len(self.places)) for each in registers)
        self.listed = tuple(self.places)
        self.live = self._live(program)
        self.most = _most([one.value for one in conditions if one.value is not None])

    def _live(self, program: Program) -> list[tuple[int, ...]]:
        telling = {at for register, at in self.places.items() if depends_on_labels(register)}
        if not telling or program.length > FEW_PLACES:
            return [tuple(sorted(telling))] * program.length
        ways = [set(program.behind(place, last=False)) - {ACCEPT} for place in range(program.length)]
        result = [set[int]() for _ in ways]
        changed = True
        while changed:
            changed = False
            for place in range(program.length - 1, -1, -1):
                before = len(result[place])
                for way in ways[place]:
                    result[place] |= result[way] | (self.read[program.variables[way]] & telling)
                changed |= len(result[place]) > before
        return [tuple(sorted(one)) for one in result]


def _most(conditions: list[s.Expr]) -> dict[Register, int]:
    """Of each count that all conditions compare with whole numbers only, one more than the greatest of these: from
    there on it stays the same. `COUNT(A.*) < 3` tells 0, 1, 2, 3 and more apart."""
    most: dict[Register, int] = {}
    others: set[Register] = set()
    left = list(conditions)
    while left:
        node = left.pop()
        if isinstance(node, s.Binary) and node.op in COMPARISONS:
            for count, constant in ((node.left, node.right), (node.right, node.left)):
                if _is_count(count) and isinstance(constant, s.Literal) and type(constant.value) is int:
                    most[count] = max(most.get(count, 1), constant.value + 1)
                    break
            else:
                left += s.children(node)
        elif _is_count(node):
            others.add(node)
        else:
            left += s.children(node)
    return {register: value for register, value in most.items() if register not in others}


def _is_count(node: s.Expr) -> TypeGuard[Total]:
    return isinstance(node, Total) and node.function == "COUNT" and not node.distinct
