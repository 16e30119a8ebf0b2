"""The class of each condition of DEFINE, by what it reads: from it follows how matches are searched for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import (
    Label,
    Leaf,
    Navigation,
    Number,
    Total,
    every,
    leaves,
    mapped,
)
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.program import Program

Class = Literal["local", "numbered", "of the start", "registers"]
CLASSES: tuple[Class, ...] = ("local", "numbered", "of the start", "registers")
"""From the cheapest to the dearest."""


@dataclass(frozen=True)
class Condition:
    """The condition of a variable as it is asked, and its class; `value` None: any row."""

    variable: str
    value: s.Expr | None
    cls: Class


def conditions_of(plan: RowPatternPlan) -> tuple[Condition, ...]:
    """The condition of each variable, in the order of the pattern."""
    first = fixed_first(plan.program)
    defines = dict(plan.defines)
    result = []
    for variable in dict.fromkeys(plan.program.variables):
        value = defines.get(variable)
        if value is not None:
            value = mapped(value, lambda one: _of_first(one, first))
        result.append(Condition(variable, value, "local" if value is None else class_of(value)))
    return tuple(result)


def class_of_plan(plan: RowPatternPlan) -> Class:
    """The class of its dearest condition."""
    return max((one.cls for one in conditions_of(plan)), key=CLASSES.index)


def class_of(value: s.Expr) -> Class:
    return max((_class(leaf) for leaf in leaves(value)), key=CLASSES.index, default="local")


def _class(leaf: Leaf) -> Class:
    inner = list(every(leaf))
    if any(isinstance(one, Label) for one in inner) or (isinstance(leaf, Navigation | Total) and leaf.variables):
        return "registers"
    if isinstance(leaf, Total):
        return "of the start"
    own: Class = "numbered" if any(isinstance(one, Number) for one in inner) else "local"
    if isinstance(leaf, Navigation) and (leaf.first or not _is_zero(leaf.offset)):
        return "of the start"
    return own


def _is_zero(node: s.Expr) -> bool:
    return isinstance(node, s.Literal) and node.value == 0


def fixed_first(program: Program) -> frozenset[str]:
    """The variable of the first row of every match, if it is always the same and no later row is mapped to it."""
    begin, later = program.mask(None), 0
    for place in range(program.length):
        later |= program.mask(place)
    variables, again = variables_in(program, begin), variables_in(program, later)
    return frozenset(variables) if len(variables) == 1 and not variables & again else frozenset()


def variables_in(program: Program, mask: int) -> set[str]:
    """The variables of the places of a mask."""
    return {name for place, name in enumerate(program.variables) if mask >> place & 1}


def _of_first(node: s.Expr, first: frozenset[str]) -> s.Expr:
    """A navigation from the fixed first part as one from the first row."""
    if not isinstance(node, Navigation) or not first or set(node.variables) != first or not _is_zero(node.offset):
        return node
    if any(isinstance(one, Label) for one in every(node.argument)):
        return node
    return replace(node, variables=(), first=True)
