"""Comparisons of a column with constants, as an index answers them; and which conditions no event can make an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trendlake.cep_core.events.array_types import MOST_EXACT
from trendlake.cep_core.expressions.columnar import COMPARISONS, FLIPPED
from trendlake.cep_core.language import syntax as s

TypeOf = Callable[[str], Any]
"""The Arrow type of a normalised column."""


@dataclass(frozen=True)
class Comparison:
    """`name op value` for one of `values`: several where it is IN."""

    name: str
    op: str
    values: tuple[Any, ...]


def comparison_of(node: s.Expr, type_of: TypeOf) -> Comparison | None:
    """A condition as a comparison whose constants are of the column's own type, so that the order of the column's
    values decides it; None for any other."""
    match node:
        case s.Binary(op=op, left=s.Attribute() as read, right=right) if op in FLIPPED and op != "!=":
            constants = [right]
        case s.Binary(op=op, left=left, right=s.Attribute() as read) if op in FLIPPED and op != "!=":
            op, constants = FLIPPED[op], [left]
        case s.In(operand=s.Attribute() as read, choices=choices):
            op, constants = "=", [choice for choice in choices if not _is_null(choice)]  # nothing equals NULL
        case _:
            return None
    kind = type_of(read.name)
    values = tuple(_constant(constant, kind) for constant in constants)
    return None if None in values else Comparison(read.name, op, values)


def _is_null(node: s.Expr) -> bool:
    return isinstance(node, s.Literal) and node.value is None


def _constant(node: s.Expr, kind: Any) -> Any:
    """A literal's value, where comparing it with a column of a type takes no conversion that rounds or fails; else
    None."""
    sign = 1
    if isinstance(node, s.Unary) and node.op == "-":
        sign, node = -1, node.operand
    if not isinstance(node, s.Literal) or node.value is None:
        return None
    value = node.value
    if pa.types.is_string(kind) and isinstance(value, str):
        return value
    if pa.types.is_int64(kind) and type(value) is int and value < 2**63:
        return sign * value
    if pa.types.is_float64(kind) and type(value) is int and value <= MOST_EXACT:
        return sign * float(value)
    return sign * value if pa.types.is_float64(kind) and type(value) is float else None


def harmless(node: s.Expr, type_of: TypeOf) -> bool:
    """Whether a condition has a value of every event, be it NULL: then it may be asked of fewer events than without an
    index, and no error is missed. False for arithmetic, which may overflow, and for types that are converted."""
    if comparison_of(node, type_of) is not None:
        return True
    match node:
        case s.Binary(op="and" | "or", left=left, right=right):
            return harmless(left, type_of) and harmless(right, type_of)
        case s.Unary(op="not", operand=operand):
            return harmless(operand, type_of)
        case s.Unary(op="isnull", operand=s.Attribute()):
            return True
        case s.Binary(op="!=", left=s.Attribute() as read, right=right):
            return _constant(right, type_of(read.name)) is not None
        case s.Binary(op=op, left=s.Attribute() as a, right=s.Attribute() as b) if op in COMPARISONS:
            return bool(type_of(a.name) == type_of(b.name)) and not pa.types.is_decimal(type_of(a.name))
        case s.Attribute():
            return bool(pa.types.is_boolean(type_of(node.name)))
        case _:
            return False
