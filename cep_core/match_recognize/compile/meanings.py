"""Columns of a result that hold more than their type says: lengths of time, which are whole numbers, and lists of event
ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.leaves import Cell, Navigation, Total

LENGTHS = ("time_difference", "microseconds")
"""Functions that give a length of time."""
SAME_UNIT = ("MIN", "MAX", "SUM", "MAX_BY", "MIN_BY", "ANY_VALUE")
"""Aggregates of lengths that are lengths."""


class Computed(Protocol):
    """A column: of the clause that gives it, `value` is None; of the source, it has an `origin`."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> s.Expr | None: ...
    @property
    def origin(self) -> str: ...


class Meanings:
    """Of the columns `selected` from those of the clause, which are `measures` of the rows with the columns `inputs`.
    `event_id`: the column of ids in the source."""

    def __init__(
        self, inputs: Sequence[Computed], measures: Sequence[Computed], selected: Sequence[Computed], event_id: str
    ) -> None:
        self._event_id = event_id
        self._inputs = {column.name: column for column in inputs}
        self._measures = {column.name: column for column in measures}
        self._selected = selected

    @property
    def lengths(self) -> tuple[str, ...]:
        """Those of whole numbers that are microseconds."""
        measures = {name for name, one in self._measures.items() if self._is_length(one.value, self._input_lengths)}
        measures |= self._input_lengths - self._measures.keys()
        return tuple(one.name for one in self._selected if self._is_length(_or_itself(one), measures))

    @property
    def listed_ids(self) -> tuple[str, ...]:
        """Those of lists of event ids."""
        ids = {name for name, one in self._inputs.items() if one.origin == self._event_id}
        measures = {name for name, one in self._measures.items() if _lists(one.value, ids)}
        return tuple(one.name for one in self._selected if getattr(_or_itself(one), "name", "") in measures)

    @property
    def _input_lengths(self) -> set[str]:
        return {name for name, one in self._inputs.items() if self._is_length(one.value, set())}

    def _is_length(self, node: s.Expr | None, lengths: set[str]) -> bool:
        match node:
            case Cell(name=name):
                return name in lengths
            case s.Literal(kind="duration"):
                return True
            case s.SqlCall(function=function):
                return function in LENGTHS
            case Navigation(argument=argument):
                return self._is_length(argument, lengths)
            case Total(function=function, arguments=arguments):
                return function in SAME_UNIT and bool(arguments) and self._is_length(arguments[0], lengths)
            case s.Unary(op="-", operand=operand):
                return self._is_length(operand, lengths)
            case s.Binary(op="+" | "-", left=left, right=right):
                return self._is_length(left, lengths) and self._is_length(right, lengths)
        return False


def _or_itself(column: Computed) -> s.Expr:
    """The value of a column of SELECT; of one taken as it is, a read of it."""
    return column.value or Cell("", column.name, False, (0, 0))


def _lists(node: s.Expr | None, ids: set[str]) -> bool:
    if not isinstance(node, Total) or node.function != "ARRAY_AGG":
        return False
    (argument,) = node.arguments
    return isinstance(argument, Cell) and argument.name in ids
